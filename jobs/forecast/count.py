"""Count the work of a sample per model: sentences, prompts, tokens, and tokens that the prefix cache reuses."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass, field, replace
from typing import Any

import pyarrow as pa

from ragassay.jobs.config.job import Job
from ragassay.pipeline.engines.light_tokenizer import load_light_tokenizer
from ragassay.pipeline.engines.text_protocol import Messages
from ragassay.pipeline.reasoning.config import Reasoner
from ragassay.pipeline.reasoning.cost_budget import estimate_tokens
from ragassay.pipeline.reasoning.prompt import make_chat
from ragassay.pipeline.rows import Row, select_ok_rows
from ragassay.pipeline.slm.config import Slm
from ragassay.pipeline.slm.evidence import add_evidence, without_whole_response
from ragassay.pipeline.slm.prompt import PromptBuilder, PromptEncoder
from ragassay.pipeline.slm.row_prompts import prefix_sort_key
from ragassay.pipeline.slm.score import RowScore, assign_prompts_to_rows, group_prompts_by_call, hash_row
from ragassay.pipeline.slm.score_served import render_prompts
from ragassay.pipeline.slm.token_reuse import PrefixTree
from ragassay.pipeline.stages.rerank import select_rerank_rows
from ragassay.pipeline.text.split import load_splitter, split_sentences
from ragassay.pipeline.token_tree.tree import count_tree_tokens
from ragassay.pipeline.uncertainty.config import Uncertainty
from ragassay.pipeline.uncertainty.model import PromptAndText, pack_prompts
from ragassay.pipeline.uncertainty.prompt import make_answer_encoder
from ragassay.schemas.columns import Status

TYPICAL_EXPLANATION_TOKENS = 80
"""Tokens of a typical explanation, with a quote and one or two sentences; a rule of thumb."""

EXPLAINER = "explain sentences"
"""Key of the explainer's workload. It contains a space, so it is never the name of a model."""


@dataclass(frozen=True)
class Workload:
    """Work of one model for some rows.

    Attributes:
        prompts: Distinct prompts.
        prompt_tokens: Their tokens, with shared prefixes counted in every prompt; for a served model estimated at 4 bytes per
            token.
        computed_tokens: Tokens that one of our engines computes. vLLM's prefix cache, assumed never to evict, reuses whole
            blocks of all earlier calls; PyTorch shares the prefixes of one call.
        distinct_tokens: Tokens that it would compute if every prefix that prompts of one call share were computed once.
        windowed_rows: Rows whose context has several windows.
        too_long_rows: Rows that leave no room for a context.
        answer_tokens: Tokens of typical answers of a served model.
        max_answer_tokens: Tokens of its answers if all have the maximum length.
    """

    prompts: float = 0
    prompt_tokens: float = 0
    computed_tokens: float = 0
    distinct_tokens: float = 0
    windowed_rows: float = 0
    too_long_rows: float = 0
    answer_tokens: float = 0
    max_answer_tokens: float = 0

    @staticmethod
    def combine(workloads: "Sequence[Workload]", factor: float = 1) -> "Workload":
        """Return the sum of workloads, multiplied by a factor."""
        return Workload(*(factor * sum(numbers) for numbers in zip(*map(astuple, workloads), strict=True)))


NO_WORK = Workload()


@dataclass
class SegmentCounts:
    """Counts of one segment of the sample.

    Attributes:
        rows: Number of rows.
        sentences: Their sentences.
        chars: Characters of questions, contexts and responses.
        repeated_rows: Rows with the question, context and response of an earlier row of the sample.
        statuses: Rows that can't be scored, by status.
        workloads: Work per model: SLMs, models of `uncertainty` (under their first member), re-ranking, and the judge of the
            cascade; and of explaining every sentence.
    """

    rows: int = 0
    sentences: int = 0
    chars: int = 0
    repeated_rows: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    workloads: dict[str, Workload] = field(default_factory=dict)

    @property
    def scorable_rows(self) -> int:
        """Number of rows that can be scored."""
        return self.rows - self.statuses.total()


CountWork = Callable[[Sequence[Row]], Workload]


def count_segments(job: Job, segments: Sequence[pa.Table]) -> list[SegmentCounts]:
    """Count the work of segments, in order; a later segment reuses the prefixes and the results of earlier ones.

    Args:
        job: The job.
        segments: Rows after the stage `split`.

    Raises:
        ModelError: A model can't be found.
    """
    nlp = load_splitter(job.splitting.pipeline, job.splitting.language)
    slms = job.scoring_slms
    counters = {slm.name: _make_served_counter(slm) if slm.engine.IS_SERVED else _make_local_counter(slm, nlp) for slm in slms}
    counters |= {group[0].name: _make_reading_counter(group[0]) for group in job.members.reading_groups}
    encoder = make_answer_encoder(job.members.rerank, load_light_tokenizer(job.members.rerank)) if job.members.rerank else None
    seen: set[bytes] = set()
    segment_counts = []
    for table in segments:
        _, rows = select_ok_rows(table)
        row_of: dict[bytes, Row] = {}
        for row in rows:
            row_of.setdefault(hash_row(row), row)
        new_rows = [row for digest, row in row_of.items() if digest not in seen]
        seen.update(row_of)
        workloads = {name: count_work(new_rows) for name, count_work in counters.items()}
        if encoder:
            workloads["rerank"] = Workload(prompt_tokens=_count_rerank_tokens(table, encoder))
        if job.escalation.explainer:
            workloads[EXPLAINER] = _count_explanations(job.escalation.explainer, rows)
        segment_counts.append(
            SegmentCounts(
                rows=table.num_rows,
                sentences=sum(len(row.sentences) for row in rows),
                chars=sum(len(row.question) + len(row.response) + sum(map(len, row.context)) for row in rows),
                repeated_rows=len(rows) - len(new_rows),
                statuses=Counter(status for status in table["status"].to_pylist() if status != Status.OK),
                workloads=workloads,
            )
        )
    return segment_counts


def _count_rerank_tokens(table: pa.Table, encoder: PromptEncoder) -> int:
    """Count the tokens of every distinct pair of passage and question, of the rows whose passages are re-ranked."""
    pairs = {
        (row.question, passage)
        for row in select_rerank_rows(table)[1]
        if row.can_be_ranked
        for passage in row.nonempty_passages
    }
    encoded = encoder.encode([("", [passage], [question]) for question, passage in sorted(pairs)])
    return sum(len(prompt.head) + len(prompt.tails[0]) for prompt in encoded)


def _make_local_counter(slm: Slm, nlp: Any) -> CountWork:
    """Make the counter of an SLM's prompts; it keeps the prefix tree of all prompts that it has counted."""
    builder, tree = PromptBuilder(slm, load_light_tokenizer(slm)), PrefixTree(slm.cache_block_size)

    def count_calls(rows: Sequence[Row], slm: Slm, workloads: list[Workload]) -> Iterator[RowScore]:
        """Count the work of rows, and yield a result per row: all sentences have the same value."""
        for call in group_prompts_by_call(
            rows, slm, builder, slm.get_window() - 1, lambda text: split_sentences(nlp, [text])[0]
        ):
            prompts = assign_prompts_to_rows(call)
            distinct_tokens = count_tree_tokens(prompts)
            workloads.append(
                Workload(
                    prompts=len(prompts),
                    prompt_tokens=sum(map(len, prompts)),
                    computed_tokens=distinct_tokens if slm.cache_block_size == 1 else sum(map(tree.add, prompts)),
                    distinct_tokens=distinct_tokens,
                    windowed_rows=sum(plan.windows > 1 for plan in call),
                    too_long_rows=sum(plan.error is not None for plan in call),
                )
            )
            for plan in call:
                zeros = [0.0] * len(plan.prompts)
                yield RowScore(zeros, zeros, status=plan.status, error=plan.error)

    def count(rows: Sequence[Row]) -> Workload:
        ordered = sorted(rows, key=prefix_sort_key)
        workloads: list[Workload] = []
        results = list(count_calls(ordered, slm, workloads))
        if not slm.evidence:
            return Workload.combine(workloads)
        of_parts: list[Workload] = []
        add_evidence(ordered, results, slm, lambda parts: count_calls(parts, without_whole_response(slm), of_parts))
        workloads += (replace(workload, windowed_rows=0, too_long_rows=0) for workload in of_parts)
        return Workload.combine(workloads)

    return count


def _make_reading_counter(member: Uncertainty) -> CountWork:
    """Make the counter of a model of `uncertainty`.

    It reads each response once after its context, and computes the shared prefixes of a pass once. If the model samples its own
    answers, their tokens are unknown and only the prompts count.
    """
    reads_response, encoder = member.text == "response", make_answer_encoder(member, load_light_tokenizer(member))

    def count(rows: Sequence[Row]) -> Workload:
        encoded = encoder.encode([(row.question, row.context, [row.response if reads_response else ""]) for row in rows])
        prompts: list[PromptAndText] = [(prompt.head, prompt.tails[0]) for prompt in encoded]
        trees = [[tuple(prompts[i][0] + prompts[i][1]) for i in pack] for pack in pack_prompts(prompts)]
        computed_tokens = sum(map(count_tree_tokens, trees))
        prompt_tokens = sum(len(prompt) for tree in trees for prompt in tree)
        return Workload(len(rows), prompt_tokens, computed_tokens, distinct_tokens=computed_tokens)

    return count


def _make_served_counter(slm: Slm) -> CountWork:
    """Make the counter of requests to a server; each answer is one token."""

    def count(rows: Sequence[Row]) -> Workload:
        prompts = (prompt for row in rows for prompt in render_prompts(slm, row))
        return _count_chats(([{"role": "user", "content": prompt}] for prompt in prompts), 1, 1)

    return count


def _count_explanations(reasoner: Reasoner, rows: Sequence[Row]) -> Workload:
    """Count the chats about all sentences, since any may be flagged. Identical chats count each time."""
    chats = (
        make_chat(reasoner.strategy, reasoner.categories, row.context, row.question, row.response, sentence)
        for row in rows
        for sentence in row.sentences
    )
    return _count_chats(chats, min(TYPICAL_EXPLANATION_TOKENS, reasoner.max_tokens), reasoner.max_tokens)


def _count_chats(chats: Iterable[Messages], answer_tokens: int, max_answer_tokens: int) -> Workload:
    tokens = [estimate_tokens([chat]) for chat in chats]
    count = len(tokens)
    return Workload(
        prompts=count,
        prompt_tokens=sum(tokens),
        answer_tokens=answer_tokens * count,
        max_answer_tokens=max_answer_tokens * count,
    )
