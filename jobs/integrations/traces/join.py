"""Join the spans of a trace into one row: the question of its root, the passages of its retrievals, the response."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from ragassay.jobs.input.documents import Document
from ragassay.jobs.integrations.traces.span import RETRIEVAL_KINDS, Span, SpanKind

_TEXT_COLUMNS = (
    "row_id question context response trace_id trace_name root_span_id generation_span_id session_id user_id model start_time"
)
ROW_SCHEMA = pa.schema(
    {name: pa.string() for name in (*_TEXT_COLUMNS.split(), "trace_note")}
    | {"context": pa.list_(pa.struct({"id": pa.string(), "text": pa.string()})), "start_time": pa.timestamp("us", "UTC")}
)
"""Schema of the rows. `trace_note` states what is missing or unusual; null if nothing is."""

_INNER_KINDS = (*RETRIEVAL_KINDS, SpanKind.EVALUATOR, SpanKind.EMBEDDING)
"""Kinds of spans whose generations are not responses: a rewritten query or a judge."""

_MERGED_FIELDS = ("parent_id", "name", "start", "end", "question", "response", "documents", "session", "user", "model")


@dataclass(frozen=True)
class JoinedTrace:
    """A trace as a row.

    Attributes:
        row: Row of `ROW_SCHEMA`.
        day: Day of the trace (UTC), which is its partition; `unknown` if no span has a time.
        notes: What is missing or unusual.
        is_open: Whether more spans may come: the root has not ended, or there is no response and no failure.
    """

    row: dict[str, Any]
    day: str
    notes: list[str]
    is_open: bool


def join_spans(spans: Sequence[Span]) -> JoinedTrace:
    """Join the spans of a trace.

    Args:
        spans: All known spans of one trace, in any order; duplicates are allowed.
    """
    spans = merge_duplicates(spans)
    trace_span = next((span for span in spans if span.kind is SpanKind.TRACE), None)
    ordered = sorted((span for span in spans if span.kind is not SpanKind.TRACE), key=_time_order)
    roots, has_declared_roots = _find_roots(ordered)
    root = min(roots, key=lambda span: (not (span.question and span.response), not span.question), default=None)
    generations = [span for span in ordered if span.kind is SpanKind.GENERATION]
    generation = _find_answer(ordered, generations)
    question = _first_field([trace_span, root, *roots], "question")
    response = _first_field([trace_span, root if root and root.kind not in _INNER_KINDS else None, generation], "response")
    passages = _collect_passages(ordered)
    start = min((span.start for span in spans if span.start is not None), default=None)
    has_ended = bool(root and has_declared_roots and root.end is not None) or bool(
        trace_span and (trace_span.end is not None or trace_span.response)
    )
    has_failed = bool((root and root.failed) or (trace_span and trace_span.failed))
    is_generation_failed = not response and any(span.failed for span in generations)
    conditions = {
        _describe_passages(passages): True,
        "no question": not question,
        "no response": not response,
        "it failed": has_failed or is_generation_failed,
        "several roots": has_declared_roots and len(roots) > 1 and not trace_span,
        "no root": not has_declared_roots and not trace_span,
    }
    notes = [note for note, applies in conditions.items() if note and applies]
    row = {
        "row_id": spans[0].trace_id,
        "question": question,
        "context": [{"id": passage.id, "text": passage.text} for passage in passages or ()] or None,
        "response": response,
        "trace_id": spans[0].trace_id,
        "trace_name": _first_field([trace_span, root], "name"),
        "root_span_id": root.span_id if root else None,
        "generation_span_id": generation.span_id if generation else None,
        "session_id": _first_field(spans, "session"),
        "user_id": _first_field(spans, "user"),
        "model": _first_field([generation, *(span for span in reversed(spans) if span.kind is SpanKind.GENERATION)], "model"),
        "start_time": start,
        "trace_note": "; ".join(notes) or None,
    }
    day = "unknown" if start is None else f"{datetime.fromtimestamp(start / 1e6, UTC):%Y-%m-%d}"
    return JoinedTrace(row, day, notes, not has_ended or not (response or has_failed))


def mark_unfinished(trace: JoinedTrace) -> JoinedTrace:
    """Add the note `unfinished`: the trace is used although more spans may come."""
    notes = [*trace.notes, "unfinished"]
    return replace(trace, notes=notes, row={**trace.row, "trace_note": "; ".join(notes)})


def merge_duplicates(spans: Iterable[Span]) -> list[Span]:
    """Merge spans with the same id: an ended span replaces an open one, a later one an earlier one.

    Fields that the replacement does not have, such as the input in an update, are kept.
    """
    merged: dict[tuple[str, bool], Span] = {}
    for span in spans:
        key = (span.span_id, span.kind is SpanKind.TRACE)
        merged[key] = _merge_duplicate(merged[key], span) if key in merged else span
    return list(merged.values())


def _merge_duplicate(earlier: Span, later: Span) -> Span:
    old, new = (later, earlier) if earlier.end is not None and later.end is None else (earlier, later)
    kept = {name: getattr(old, name) for name in _MERGED_FIELDS if getattr(new, name) is None}
    return replace(new, **kept, root=old.root or new.root, kind=old.kind if new.kind is SpanKind.OTHER else new.kind)


def _time_order(span: Span) -> tuple[int, str]:
    return (span.start if span.start is not None else 1 << 62, span.span_id)


def _find_roots(spans: Sequence[Span]) -> tuple[list[Span], bool]:
    """Return the roots, and whether the tool declares them. Undeclared roots have an unknown parent or are part of a cycle."""
    roots = [span for span in spans if span.root] or [span for span in spans if span.parent_id is None]
    if roots:
        return roots, True
    ids = {span.span_id for span in spans}
    return [span for span in spans if span.parent_id not in ids] or list(spans[:1]), False


def _find_inner_spans(spans: Iterable[Span], is_outer: Callable[[Span], bool]) -> set[str]:
    """Return the ids of the spans inside a span for which `is_outer` is true.

    Each span is visited once, from the nearest outer span, however deep the trace is. In a cycle of parents, each span is
    inside all others.
    """
    children: dict[str | None, list[Span]] = defaultdict(list)
    for span in spans:
        children[span.parent_id].append(span)
    inner_ids = set()
    for outer in filter(is_outer, spans):
        pending = [*children[outer.span_id]]
        while pending:
            span = pending.pop()
            if span is not outer:
                inner_ids.add(span.span_id)
            if not is_outer(span):
                pending += children[span.span_id]
    return inner_ids


def _find_answer(spans: Sequence[Span], generations: Sequence[Span]) -> Span | None:
    """Return the last generation with a response. One that succeeded is preferred to one that failed: a retry comes later."""
    excluded = _find_inner_spans(spans, lambda around: around.kind in _INNER_KINDS)
    candidates = [span for span in generations if span.response and span.span_id not in excluded]
    return max(candidates, key=lambda span: (not span.failed, span.last_time or 0, _time_order(span)), default=None)


def _collect_passages(spans: Sequence[Span]) -> list[Document] | None:
    """Return the passages that the model received, in order of time and without duplicates; None if there is no retrieval.

    The output of a reranker replaces what was retrieved before it. A retrieval inside another retrieval is part of it.
    """
    if not any(span.kind in RETRIEVAL_KINDS for span in spans):
        return None
    inner_ids = _find_inner_spans(spans, lambda around: around.kind in _INNER_KINDS and bool(around.documents))
    reranked: list[Document] = []
    retrieved: list[Document] = []
    for span in spans:
        documents = span.documents or ()
        if span.span_id in inner_ids:
            continue
        if span.kind is SpanKind.RERANKER and any(document.text for document in documents):
            reranked += documents
            retrieved = []
        elif span.kind is SpanKind.RETRIEVER:
            retrieved += documents
    unique = {(document.id, document.text): document for document in reversed([*reranked, *retrieved])}
    return list(reversed(unique.values()))


def _describe_passages(passages: Sequence[Document] | None) -> str | None:
    """Return the note about the passages; None if all of them have text."""
    if not passages:
        return "no retrieval" if passages is None else "its retrieval found nothing"
    with_text = sum(bool(passage.text and passage.text.strip()) for passage in passages)
    if with_text == len(passages):
        return None
    return "some of its passages are ids only" if with_text else "its retrieval returned ids only"


def _first_field(spans: Iterable[Span | None], name: str) -> Any:
    """Return the first non-empty value of a field among spans."""
    return next((value for span in spans if span is not None and (value := getattr(span, name))), None)
