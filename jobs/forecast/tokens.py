"""Count what a sample asks of every model: sentences, prompts, tokens, and how many of those the prefix cache spares."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from ragassay.jobs.config import Job
from ragassay.pipeline.engines.prepare import load_tokenizer
from ragassay.pipeline.rows import Row, good_rows
from ragassay.pipeline.slm.config import Slm
from ragassay.pipeline.slm.prefix_tree import PrefixTree
from ragassay.pipeline.slm.prompt import PromptBuilder, PromptEncoder
from ragassay.pipeline.slm.row_prompts import prompt_order
from ragassay.pipeline.slm.score import calls, in_token_order, row_digest
from ragassay.pipeline.split import load_splitter, split
from ragassay.pipeline.stages.rerank import found_of
from ragassay.pipeline.token_tree.tree import size
from ragassay.pipeline.uncertainty.config import Uncertainty
from ragassay.pipeline.uncertainty.prompt import answer_encoder
from ragassay.pipeline.uncertainty.reader import Prompt, packs
from ragassay.schemas.columns import Status


@dataclass
class Asked:
    """What one SLM is asked about a stretch of rows; of a served one, whose tokens nobody knows here, the prompts alone.

    Attributes:
        prompts: Different prompts.
        tokens: Their tokens, shared ones counted every time.
        computed: Those that the engine has to run, if its prefix cache never has to evict.
        distinct: Those of the tree of a call's prompts: what the engine would have to run if all that is shared were run once.
        windowed: Rows whose context is cut into windows.
        too_long: Rows that leave no room for a context.
    """

    prompts: int = 0
    tokens: int = 0
    computed: int = 0
    distinct: int = 0
    windowed: int = 0
    too_long: int = 0


@dataclass
class Counted:
    """A stretch of rows, counted.

    Attributes:
        rows: Rows of it.
        sentences: Their sentences.
        chars: Characters of questions, contexts and responses.
        repeated: Rows with the question, context and response of an earlier row of the sample.
        statuses: Rows that can't be scored, by status.
        asked: What each SLM is asked.
        reranked: Tokens of the prompts that put passages in order.
    """

    rows: int = 0
    sentences: int = 0
    chars: int = 0
    repeated: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    asked: dict[str, Asked] = field(default_factory=dict)
    reranked: int = 0


def count_stretches(job: Job, stretches: Sequence[pa.Table]) -> list[Counted]:
    """Count stretches one after another; what an earlier one had is reused by a later one.

    Args:
        job: The job.
        stretches: Rows as the stage `split` leaves them.
    """
    nlp = load_splitter(job.splitter.name, job.splitter.language)
    askers = [_Asker(slm, nlp) for slm in job.slms if not slm.engine.SERVED]
    readings = [_Reading(members[0]) for members in job.readings]
    served = [slm for slm in job.slms if slm.engine.SERVED]
    encoder = answer_encoder(job.rerank, load_tokenizer(job.rerank)) if job.rerank else None
    seen: set[bytes] = set()
    result = []
    for table in stretches:
        _, rows = good_rows(table)
        counted = Counted(rows=table.num_rows, sentences=sum(len(row.sentences) for row in rows))
        counted.statuses.update(status for status in table["status"].to_pylist() if status != Status.OK)
        counted.chars = sum(len(row.question) + len(row.response) + sum(map(len, row.context)) for row in rows)
        new: dict[bytes, Row] = {}
        for row in rows:
            new.setdefault(row_digest(row), row)
        different = [row for digest, row in new.items() if digest not in seen]
        counted.repeated = len(rows) - len(different)
        seen.update(new)
        counted.asked = {asker.slm.name: asker.count(different) for asker in askers}
        counted.asked |= {reading.name: reading.count(different) for reading in readings}
        counted.asked |= {slm.name: Asked(prompts=sum(map(len, map(slm.texts, different)))) for slm in served}
        counted.reranked = _reranked_tokens(table, encoder) if encoder else 0
        result.append(counted)
    return result


def _reranked_tokens(table: pa.Table, encoder: PromptEncoder) -> int:
    """Tokens of every different passage with its question behind it, of the rows whose passages are put in order."""
    pairs = {(found.question, passage) for found in found_of(table)[1] if found.has_order for passage in found.worded}
    encoded = encoder.encode([("", [passage], [question]) for question, passage in sorted(pairs)])
    return sum(len(one.head) + len(one.tails[0]) for one in encoded)


class _Asker:
    """One SLM's prompts, and the tree of all that it was asked."""

    def __init__(self, slm: Slm, nlp: Any) -> None:
        self.slm = slm
        self._builder = PromptBuilder(slm, load_tokenizer(slm))
        self._limit = slm.window() - 1
        self._tree = PrefixTree(slm.cache_block)
        self._nlp = nlp

    def count(self, rows: Sequence[Row]) -> Asked:
        asked = Asked()
        ordered = sorted(rows, key=prompt_order)
        for call in calls(ordered, self.slm, self._builder, self._limit, lambda text: split(self._nlp, [text])[0]):
            prompts = in_token_order(call)
            asked.prompts += len(prompts)
            asked.tokens += sum(map(len, prompts))
            asked.computed += sum(map(self._tree.add, prompts))
            asked.distinct += size(prompts)
            asked.windowed += sum(plan.windows > 1 for plan in call)
            asked.too_long += sum(plan.error is not None for plan in call)
        return asked


class _Reading:
    """What a model of `uncertainty` reads: each response once behind its context, what rows of a pass share once; of its own
    answers the prompts alone, since nobody knows them here."""

    def __init__(self, member: Uncertainty) -> None:
        self.name = member.name
        self._logged = member.text == "response"
        self._encoder = answer_encoder(member, load_tokenizer(member))

    def count(self, rows: Sequence[Row]) -> Asked:
        encoded = self._encoder.encode([(row.question, row.context, [row.response if self._logged else ""]) for row in rows])
        prompts: list[Prompt] = [(one.head, one.tails[0]) for one in encoded]
        trees = [[tuple(prompts[i][0] + prompts[i][1]) for i in pack] for pack in packs(prompts)]
        computed = sum(map(size, trees))
        tokens = sum(len(prompt) for tree in trees for prompt in tree)
        return Asked(prompts=len(rows), tokens=tokens, computed=computed, distinct=computed)
