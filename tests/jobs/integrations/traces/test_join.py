"""Spans of one trace, in every odd shape: one row, that says what is odd."""

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragassay.jobs.input.documents import Document
from ragassay.jobs.integrations.traces.join import _inside, joined, unique
from ragassay.jobs.integrations.traces.spans import Kind, Span

DAY = 86_400_000_000
A, B, C = (Document(f"Text {name}.", name) for name in "abc")


def span(name: str, parent: str | None = None, at: int = 0, **more: object) -> Span:
    known = {"start": DAY + at, "end": DAY + at + 1, "name": name, **more}
    return Span("t", name, parent, **known)  # type: ignore[arg-type]


ROOT = span("root", question="Q?", response="A.", end=DAY + 99)
RETRIEVER = span("r", "root", 1, kind=Kind.RETRIEVER, documents=(A, B))
GENERATION = span("g", "root", 5, kind=Kind.GENERATION, response="A from g.", model="m")
TRACE = [ROOT, RETRIEVER, GENERATION]


def passages(spans: list[Span]) -> list[str | None]:
    return [passage["id"] for passage in joined(spans).row["context"] or []]


def test_a_trace() -> None:
    found = joined(TRACE)
    row = {name: found.row[name] for name in ("row_id", "question", "response", "root_span_id", "generation_span_id", "model")}
    assert row == {
        "row_id": "t", "question": "Q?", "response": "A.", "root_span_id": "root", "generation_span_id": "g", "model": "m",
    }  # fmt: skip
    assert (found.day, found.open, found.notes, found.row["trace_note"]) == ("1970-01-02", False, [], None)
    assert passages(TRACE) == ["a", "b"]


@given(st.randoms(use_true_random=False), st.lists(st.sampled_from(TRACE), max_size=4))
def test_order_and_copies_change_nothing(random: Random, again: list[Span]) -> None:
    spans = [*TRACE, *again]
    random.shuffle(spans)
    assert joined(spans) == joined(TRACE)


def test_a_span_that_was_told_before_it_ended() -> None:
    begun = [replace(one, end=None, response=None, documents=None) for one in TRACE]
    assert joined(begun).open and joined([*begun, *TRACE]) == joined([*TRACE, *begun]) == joined(TRACE)
    update = replace(ROOT, question=None, name=None)
    assert joined([*begun, update, *TRACE[1:]]).row["question"] == "Q?"
    assert unique([ROOT, replace(ROOT, response="A later.")])[0].response == "A later."


def test_circles_and_roots_that_are_not_there() -> None:
    circle = [replace(ROOT, parent_id="g"), replace(RETRIEVER, parent_id="g"), replace(GENERATION, parent_id="root")]
    found = joined(circle)
    assert found.open and found.notes == ["no root"] and found.row["response"] == "A." and passages(circle) == ["a", "b"]
    alone = joined([replace(ROOT, parent_id="elsewhere"), RETRIEVER, GENERATION])
    assert alone.open and alone.notes == ["no root"] and alone.row["root_span_id"] == "root"
    itself = replace(ROOT, parent_id="root")
    assert joined([itself]).row["question"] == "Q?"
    assert not joined([replace(ROOT, parent_id="elsewhere", root=True), RETRIEVER]).open


def test_two_roots() -> None:
    other = span("other", question="Something else?", at=-5)
    found = joined([other, *TRACE])
    assert found.notes == ["several roots"] and found.row["question"] == "Q?" and found.row["response"] == "A."
    asks = [span("one", question="Q?"), span("two", at=3, response="Said.")]
    assert joined(asks).row["question"] == "Q?" and joined(asks).open


def test_the_response_of_a_trace_whose_root_says_nothing() -> None:
    root = replace(ROOT, response=None)
    failed = span("g2", "root", 9, kind=Kind.GENERATION, response="Half an", failed=True)
    inner = span("g3", "r", 8, kind=Kind.GENERATION, response="A rewritten query")
    judge = [span("e", "root", 20, kind=Kind.EVALUATOR), span("g4", "e", 21, kind=Kind.GENERATION, response="Yes")]
    found = joined([root, RETRIEVER, GENERATION, failed, inner, *judge])
    assert (found.row["response"], found.row["generation_span_id"], found.open) == ("A from g.", "g", False)
    nothing = joined([replace(root, failed=True), RETRIEVER])
    assert nothing.notes == ["no response", "it failed"] and not nothing.open and joined([root, RETRIEVER]).open


def test_retrievals() -> None:
    again = span("r2", "root", 2, kind=Kind.RETRIEVER, documents=(B, C))
    reranked = span("k", "root", 3, kind=Kind.RERANKER, documents=(C, A))
    behind = span("r3", "root", 4, kind=Kind.RETRIEVER, documents=(B,))
    inside = span("r4", "r", 2, kind=Kind.RETRIEVER, documents=(A, B, C))
    assert passages([ROOT, RETRIEVER, again]) == ["a", "b", "c"]
    assert passages([ROOT, RETRIEVER, again, reranked, behind]) == ["c", "a", "b"]
    assert passages([ROOT, RETRIEVER, inside]) == ["a", "b"]
    assert passages([ROOT, replace(RETRIEVER, documents=None), inside]) == ["a", "b", "c"]
    ids = replace(reranked, documents=(Document(None, "c"),))
    assert passages([ROOT, RETRIEVER, ids]) == ["a", "b"]


@pytest.mark.parametrize(
    ("documents", "note", "context"),
    [
        ((), "its retrieval found nothing", None),
        (None, "its retrieval found nothing", None),
        ((Document(None, "a"),), "its retrieval tells ids only", [{"id": "a", "text": None}]),
        (
            (A, Document(None, "x")),
            "some of its passages are ids only",
            [{"id": "a", "text": "Text a."}, {"id": "x", "text": None}],
        ),
        ((Document("Words."),), None, [{"id": None, "text": "Words."}]),
    ],
)
def test_what_is_missing_is_said(documents: tuple[Document, ...] | None, note: str | None, context: object) -> None:
    found = joined([ROOT, replace(RETRIEVER, documents=documents)])
    assert found.row["trace_note"] == note and found.row["context"] == context
    assert joined([ROOT]).notes == ["no retrieval"]


def test_traces_without_times_have_a_place() -> None:
    found = joined([replace(one, start=None, end=None) for one in TRACE])
    assert found.day == "unknown" and found.row["start_time"] is None


PARENTS = st.lists(st.none() | st.integers(0, 12), min_size=1, max_size=12)


@given(PARENTS, st.sets(st.integers(0, 11)))
def test_what_lies_inside_is_what_a_walk_from_each_span_finds(parents: list[int | None], marked: set[int]) -> None:
    spans = [span(str(i), None if parent is None else str(parent)) for i, parent in enumerate(parents)]
    by_id = {one.span_id: one for one in spans}

    def holds(one: Span) -> bool:
        return int(one.span_id) in marked

    walked = set()
    for start in spans:
        seen, at = {start.span_id}, start
        while at.parent_id in by_id and at.parent_id not in seen:
            at = by_id[at.parent_id]
            seen.add(at.span_id)
            if holds(at):
                walked.add(start.span_id)
    assert _inside(spans, holds) == walked


def test_attack_a_chain_of_spans_is_joined_however_deep_it_is() -> None:
    chain = [span(f"s{i}", f"s{i - 1}" if i else "root", i) for i in range(20_000)]
    found = joined([ROOT, *chain, span("g", "s19999", 30_000, kind=Kind.GENERATION, response="Deep.", end=DAY + 40_000)])
    assert found.row["generation_span_id"] == "g" and not found.open
