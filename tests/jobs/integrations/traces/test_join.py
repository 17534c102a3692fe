"""Test the join of a trace's spans: one row, with a note about everything unusual."""

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragassay.jobs.input.documents import Document
from ragassay.jobs.integrations.traces.join import _find_inner_spans, join_spans, merge_duplicates
from ragassay.jobs.integrations.traces.span import Span, SpanKind

DAY = 86_400_000_000
A, B, C = (Document(f"Text {name}.", name) for name in "abc")


def span(name: str, parent: str | None = None, at: int = 0, **fields: object) -> Span:
    values = {"start": DAY + at, "end": DAY + at + 1, "name": name, **fields}
    return Span("t", name, parent, **values)  # type: ignore[arg-type]


ROOT = span("root", question="Q?", response="A.", end=DAY + 99)
RETRIEVER = span("r", "root", 1, kind=SpanKind.RETRIEVER, documents=(A, B))
GENERATION = span("g", "root", 5, kind=SpanKind.GENERATION, response="A from g.", model="m")
TRACE = [ROOT, RETRIEVER, GENERATION]


def passage_ids(spans: list[Span]) -> list[str | None]:
    return [passage["id"] for passage in join_spans(spans).row["context"] or []]


def test_a_trace_becomes_one_row() -> None:
    joined = join_spans(TRACE)
    row = {name: joined.row[name] for name in ("row_id", "question", "response", "root_span_id", "generation_span_id", "model")}
    assert row == {
        "row_id": "t", "question": "Q?", "response": "A.", "root_span_id": "root", "generation_span_id": "g", "model": "m",
    }  # fmt: skip
    assert (joined.day, joined.is_open, joined.notes, joined.row["trace_note"]) == ("1970-01-02", False, [], None)
    assert passage_ids(TRACE) == ["a", "b"]


@given(st.randoms(use_true_random=False), st.lists(st.sampled_from(TRACE), max_size=4))
def test_order_and_duplicates_do_not_matter(random: Random, duplicates: list[Span]) -> None:
    spans = [*TRACE, *duplicates]
    random.shuffle(spans)
    assert join_spans(spans) == join_spans(TRACE)


def test_a_later_report_of_a_span_replaces_an_open_one() -> None:
    open_spans = [replace(span, end=None, response=None, documents=None) for span in TRACE]
    assert join_spans(open_spans).is_open and join_spans([*open_spans, *TRACE]) == join_spans(
        [*TRACE, *open_spans]
    ) == join_spans(TRACE)
    update = replace(ROOT, question=None, name=None)
    assert join_spans([*open_spans, update, *TRACE[1:]]).row["question"] == "Q?"
    assert merge_duplicates([ROOT, replace(ROOT, response="A later.")])[0].response == "A later."


def test_cycles_and_missing_roots_are_noted() -> None:
    cycle = [replace(ROOT, parent_id="g"), replace(RETRIEVER, parent_id="g"), replace(GENERATION, parent_id="root")]
    joined = join_spans(cycle)
    assert (
        joined.is_open and joined.notes == ["no root"] and joined.row["response"] == "A." and passage_ids(cycle) == ["a", "b"]
    )
    orphan = join_spans([replace(ROOT, parent_id="elsewhere"), RETRIEVER, GENERATION])
    assert orphan.is_open and orphan.notes == ["no root"] and orphan.row["root_span_id"] == "root"
    self_parent = replace(ROOT, parent_id="root")
    assert join_spans([self_parent]).row["question"] == "Q?"
    assert not join_spans([replace(ROOT, parent_id="elsewhere", root=True), RETRIEVER]).is_open


def test_of_two_roots_the_one_with_the_question_is_used() -> None:
    second = span("second", question="Something else?", at=-5)
    joined = join_spans([second, *TRACE])
    assert joined.notes == ["several roots"] and joined.row["question"] == "Q?" and joined.row["response"] == "A."
    roots = [span("one", question="Q?"), span("two", at=3, response="An answer.")]
    assert join_spans(roots).row["question"] == "Q?" and join_spans(roots).is_open


def test_a_generation_answers_if_the_root_has_no_response() -> None:
    root = replace(ROOT, response=None)
    failed = span("g2", "root", 9, kind=SpanKind.GENERATION, response="Half an", failed=True)
    inner = span("g3", "r", 8, kind=SpanKind.GENERATION, response="A rewritten query")
    judge = [span("e", "root", 20, kind=SpanKind.EVALUATOR), span("g4", "e", 21, kind=SpanKind.GENERATION, response="Yes")]
    joined = join_spans([root, RETRIEVER, GENERATION, failed, inner, *judge])
    assert (joined.row["response"], joined.row["generation_span_id"], joined.is_open) == ("A from g.", "g", False)
    without_response = join_spans([replace(root, failed=True), RETRIEVER])
    assert (
        without_response.notes == ["no response", "it failed"]
        and not without_response.is_open
        and join_spans([root, RETRIEVER]).is_open
    )


def test_passages_are_those_that_the_model_received() -> None:
    second = span("r2", "root", 2, kind=SpanKind.RETRIEVER, documents=(B, C))
    reranked = span("k", "root", 3, kind=SpanKind.RERANKER, documents=(C, A))
    after = span("r3", "root", 4, kind=SpanKind.RETRIEVER, documents=(B,))
    inside = span("r4", "r", 2, kind=SpanKind.RETRIEVER, documents=(A, B, C))
    assert passage_ids([ROOT, RETRIEVER, second]) == ["a", "b", "c"]
    assert passage_ids([ROOT, RETRIEVER, second, reranked, after]) == ["c", "a", "b"]
    assert passage_ids([ROOT, RETRIEVER, inside]) == ["a", "b"]
    assert passage_ids([ROOT, replace(RETRIEVER, documents=None), inside]) == ["a", "b", "c"]
    ids_only = replace(reranked, documents=(Document(None, "c"),))
    assert passage_ids([ROOT, RETRIEVER, ids_only]) == ["a", "b"]


@pytest.mark.parametrize(
    ("documents", "note", "context"),
    [
        ((), "its retrieval found nothing", None),
        (None, "its retrieval found nothing", None),
        ((Document(None, "a"),), "its retrieval returned ids only", [{"id": "a", "text": None}]),
        (
            (A, Document(None, "x")),
            "some of its passages are ids only",
            [{"id": "a", "text": "Text a."}, {"id": "x", "text": None}],
        ),
        ((Document("Words."),), None, [{"id": None, "text": "Words."}]),
    ],
)
def test_missing_passages_are_noted(documents: tuple[Document, ...] | None, note: str | None, context: object) -> None:
    joined = join_spans([ROOT, replace(RETRIEVER, documents=documents)])
    assert joined.row["trace_note"] == note and joined.row["context"] == context
    assert join_spans([ROOT]).notes == ["no retrieval"]


def test_traces_without_times_go_to_an_unknown_day() -> None:
    joined = join_spans([replace(span, start=None, end=None) for span in TRACE])
    assert joined.day == "unknown" and joined.row["start_time"] is None


PARENTS = st.lists(st.none() | st.integers(0, 12), min_size=1, max_size=12)


@given(PARENTS, st.sets(st.integers(0, 11)))
def test_inner_spans_equal_those_of_a_walk_from_each_span(parents: list[int | None], marked: set[int]) -> None:
    spans = [span(str(i), None if parent is None else str(parent)) for i, parent in enumerate(parents)]
    by_id = {item.span_id: item for item in spans}

    def is_marked(item: Span) -> bool:
        return int(item.span_id) in marked

    inner_ids = set()
    for start in spans:
        visited, at = {start.span_id}, start
        while at.parent_id in by_id and at.parent_id not in visited:
            at = by_id[at.parent_id]
            visited.add(at.span_id)
            if is_marked(at):
                inner_ids.add(start.span_id)
    assert _find_inner_spans(spans, is_marked) == inner_ids


def test_attack_a_deep_chain_of_spans_is_joined() -> None:
    chain = [span(f"s{i}", f"s{i - 1}" if i else "root", i) for i in range(20_000)]
    joined = join_spans(
        [ROOT, *chain, span("g", "s19999", 30_000, kind=SpanKind.GENERATION, response="Deep.", end=DAY + 40_000)]
    )
    assert joined.row["generation_span_id"] == "g" and not joined.is_open
