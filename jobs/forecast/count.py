"""Count what a sample asks of every model: sentences, prompts, tokens, and how many of those the prefix cache spares."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import astuple, dataclass, field
from typing import Any

import pyarrow as pa

from ragassay.jobs.config.job import Job
from ragassay.pipeline.engines.prepare import load_tokenizer
from ragassay.pipeline.engines.text import Messages
from ragassay.pipeline.reasoning.config import Reasoner
from ragassay.pipeline.reasoning.cost_budget import estimate_tokens
from ragassay.pipeline.reasoning.prompt import make_chat
from ragassay.pipeline.rows import Row, select_ok_rows
from ragassay.pipeline.slm.config import Slm
from ragassay.pipeline.slm.prefix_tree import PrefixTree
from ragassay.pipeline.slm.prompt import PromptBuilder, PromptEncoder
from ragassay.pipeline.slm.row_prompts import prefix_sort_key
from ragassay.pipeline.slm.score import group_calls, hash_row, sort_prompts
from ragassay.pipeline.slm.served import render_prompt
from ragassay.pipeline.stages.rerank import select_rerank_rows
from ragassay.pipeline.text.split import load_splitter, split_sentences
from ragassay.pipeline.token_tree.tree import count_tree_tokens
from ragassay.pipeline.uncertainty.config import Uncertainty
from ragassay.pipeline.uncertainty.model import PromptAndText, pack_prompts
from ragassay.pipeline.uncertainty.prompt import make_answer_encoder
from ragassay.schemas.columns import Status

USUAL_ANSWER = 80
"""Tokens of a usual explanation, a quote and a sentence or two: a rule of thumb, until `explain` has been run."""

EXPLAINED = "explain sentences"
"""What explaining is asked, among the names of models, none of which has a space."""


@dataclass(frozen=True)
class Asked:
    """What a model is asked about rows.

    Attributes:
        prompts: Different prompts.
        tokens: Their tokens, shared ones counted every time; of a model that is asked by text, by 4 bytes a token.
        computed: Those that an engine of ours has to run, if its prefix cache never has to evict.
        distinct: Those of the tree of a call's prompts: what the engine would have to run if all that is shared were run once.
        windowed: Rows whose context is cut into windows.
        too_long: Rows that leave no room for a context.
        answers: Tokens of usual answers of a model that is asked by text.
        most_answers: Tokens of answers that are all as long as they may be.
    """

    prompts: float = 0
    tokens: float = 0
    computed: float = 0
    distinct: float = 0
    windowed: float = 0
    too_long: float = 0
    answers: float = 0
    most_answers: float = 0

    @staticmethod
    def total(parts: "Sequence[Asked]", factor: float = 1) -> "Asked":
        """The sum of parts, so many times."""
        return Asked(*(factor * sum(numbers) for numbers in zip(*map(astuple, parts), strict=True)))


NOTHING = Asked()


@dataclass
class Counted:
    """A stretch of rows, counted.

    Attributes:
        rows: Rows of it.
        sentences: Their sentences.
        chars: Characters of questions, contexts and responses.
        repeated: Rows with the question, context and response of an earlier row of the sample.
        statuses: Rows that can't be scored, by status.
        asked: What each model is asked: an SLM, a reading of `uncertainty` (by the first of its members), what puts passages in
            order, the judge of the cascade; and what explaining every sentence asks.
    """

    rows: int = 0
    sentences: int = 0
    chars: int = 0
    repeated: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    asked: dict[str, Asked] = field(default_factory=dict)

    @property
    def responses(self) -> int:
        """Rows that can be scored."""
        return self.rows - self.statuses.total()


Count = Callable[[Sequence[Row]], Asked]


def count_stretches(job: Job, stretches: Sequence[pa.Table]) -> list[Counted]:
    """Count stretches one after another; what an earlier one had is reused by a later one.

    Args:
        job: The job.
        stretches: Rows as the stage `split` leaves them.

    Raises:
        ModelError: A model can't be found.
    """
    nlp = load_splitter(job.splitting.pipeline, job.splitting.language)
    slms = job.scoring_slms
    counts = {slm.name: _count_served(slm) if slm.engine.IS_SERVED else _count_local(slm, nlp) for slm in slms}
    counts |= {members[0].name: _count_read(members[0]) for members in job.members.reading_groups}
    encoder = make_answer_encoder(job.members.rerank, load_tokenizer(job.members.rerank)) if job.members.rerank else None
    seen: set[bytes] = set()
    result = []
    for table in stretches:
        _, rows = select_ok_rows(table)
        new: dict[bytes, Row] = {}
        for row in rows:
            new.setdefault(hash_row(row), row)
        different = [row for digest, row in new.items() if digest not in seen]
        seen.update(new)
        asked = {name: count(different) for name, count in counts.items()}
        if encoder:
            asked["rerank"] = Asked(tokens=_reranked_tokens(table, encoder))
        if job.escalation.explainer:
            asked[EXPLAINED] = _count_explained(job.escalation.explainer, rows)
        result.append(
            Counted(
                rows=table.num_rows,
                sentences=sum(len(row.sentences) for row in rows),
                chars=sum(len(row.question) + len(row.response) + sum(map(len, row.context)) for row in rows),
                repeated=len(rows) - len(different),
                statuses=Counter(status for status in table["status"].to_pylist() if status != Status.OK),
                asked=asked,
            )
        )
    return result


def _reranked_tokens(table: pa.Table, encoder: PromptEncoder) -> int:
    """Tokens of every different passage with its question behind it, of the rows whose passages are put in order."""
    pairs = {
        (found.question, passage)
        for found in select_rerank_rows(table)[1]
        if found.can_be_ranked
        for passage in found.nonempty_passages
    }
    encoded = encoder.encode([("", [passage], [question]) for question, passage in sorted(pairs)])
    return sum(len(one.head) + len(one.tails[0]) for one in encoded)


def _count_local(slm: Slm, nlp: Any) -> Count:
    """An SLM's prompts, in the tree of all that it was asked."""
    builder, tree = PromptBuilder(slm, load_tokenizer(slm)), PrefixTree(slm.cache_block_size)

    def count(rows: Sequence[Row]) -> Asked:
        ordered, parts = sorted(rows, key=prefix_sort_key), []
        for call in group_calls(ordered, slm, builder, slm.get_window() - 1, lambda text: split_sentences(nlp, [text])[0]):
            prompts = sort_prompts(call)
            parts.append(
                Asked(
                    prompts=len(prompts),
                    tokens=sum(map(len, prompts)),
                    computed=sum(map(tree.add, prompts)),
                    distinct=count_tree_tokens(prompts),
                    windowed=sum(plan.windows > 1 for plan in call),
                    too_long=sum(plan.error is not None for plan in call),
                )
            )
        return Asked.total(parts)

    return count


def _count_read(member: Uncertainty) -> Count:
    """What a model of `uncertainty` reads: each response once behind its context, what rows of a pass share once; of its own
    answers the prompts alone, since nobody knows them here."""
    logged, encoder = member.text == "response", make_answer_encoder(member, load_tokenizer(member))

    def count(rows: Sequence[Row]) -> Asked:
        encoded = encoder.encode([(row.question, row.context, [row.response if logged else ""]) for row in rows])
        prompts: list[PromptAndText] = [(one.head, one.tails[0]) for one in encoded]
        trees = [[tuple(prompts[i][0] + prompts[i][1]) for i in pack] for pack in pack_prompts(prompts)]
        computed = sum(map(count_tree_tokens, trees))
        tokens = sum(len(prompt) for tree in trees for prompt in tree)
        return Asked(prompts=len(rows), tokens=tokens, computed=computed, distinct=computed)

    return count


def _count_served(slm: Slm) -> Count:
    """The requests to a server, whose answers are one token each."""

    def count(rows: Sequence[Row]) -> Asked:
        prompts = (render_prompt(slm, row, text) for row in rows for text in slm.texts_to_judge(row))
        return _asked_by_text(([{"role": "user", "content": prompt}] for prompt in prompts), 1, 1)

    return count


def _count_explained(reasoner: Reasoner, rows: Sequence[Row]) -> Asked:
    """The chats about all sentences, since any may turn out flagged. One that comes again word for word counts again."""
    chats = (
        make_chat(reasoner.strategy, reasoner.categories, row.context, row.question, row.response, sentence)
        for row in rows
        for sentence in row.sentences
    )
    return _asked_by_text(chats, min(USUAL_ANSWER, reasoner.max_tokens), reasoner.max_tokens)


def _asked_by_text(chats: Iterable[Messages], answer: int, most: int) -> Asked:
    tokens = [estimate_tokens([chat]) for chat in chats]
    return Asked(prompts=len(tokens), tokens=sum(tokens), answers=answer * len(tokens), most_answers=most * len(tokens))
