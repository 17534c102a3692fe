"""Spans of a trace to one row: the question of its root, the passages of its retrievals, the response."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from ragassay.jobs.input.documents import Document
from ragassay.jobs.integrations.traces.spans import RETRIEVALS, Kind, Span

_TEXTS = (
    "row_id question context response trace_id trace_name root_span_id generation_span_id session_id user_id model start_time"
)
ROWS = pa.schema(
    {name: pa.string() for name in (*_TEXTS.split(), "trace_note")}
    | {"context": pa.list_(pa.struct({"id": pa.string(), "text": pa.string()})), "start_time": pa.timestamp("us", "UTC")}
)
"""The rows that traces become. `trace_note` says what a trace lacks or is unusual in, null where nothing is."""

_INSIDE = (*RETRIEVALS, Kind.EVALUATOR, Kind.EMBEDDING)
"""Kinds of spans that don't respond, and whose generations don't: a rewritten query, a judge."""

_MERGED = ("parent_id", "name", "start", "end", "question", "response", "documents", "session", "user", "model")


@dataclass(frozen=True)
class Joined:
    """A trace as a row.

    Attributes:
        row: Of the schema `ROWS`.
        day: Its day, UTC: the partition; `unknown` where no span has a time.
        notes: What it lacks or is unusual in.
        open: Whether more of it may come: its root has not ended, or there is no response and it did not fail.
    """

    row: dict[str, Any]
    day: str
    notes: list[str]
    open: bool


def joined(spans: Sequence[Span]) -> Joined:
    """A trace as a row.

    Args:
        spans: All there are of one trace, in any order; some may stand there twice.
    """
    spans = unique(spans)
    about = next((span for span in spans if span.kind is Kind.TRACE), None)
    real = sorted((span for span in spans if span.kind is not Kind.TRACE), key=_in_time)
    roots, certain = _roots(real)
    root = min(roots, key=lambda span: (not (span.question and span.response), not span.question), default=None)
    generations = [span for span in real if span.kind is Kind.GENERATION]
    generation = _answering(real, generations)
    question = _first([about, root, *roots], "question")
    response = _first([about, root if root and root.kind not in _INSIDE else None, generation], "response")
    passages = _passages(real)
    start = min((span.start for span in spans if span.start is not None), default=None)
    ended = bool(root and certain and root.end is not None) or bool(about and (about.end is not None or about.response))
    failed = bool((root and root.failed) or (about and about.failed))
    gave_up = not response and any(span.failed for span in generations)
    said = {
        _of_passages(passages): True,
        "no question": not question,
        "no response": not response,
        "it failed": failed or gave_up,
        "several roots": certain and len(roots) > 1 and not about,
        "no root": not certain and not about,
    }
    notes = [note for note, is_so in said.items() if note and is_so]
    row = {
        "row_id": spans[0].trace_id,
        "question": question,
        "context": [{"id": passage.id, "text": passage.text} for passage in passages or ()] or None,
        "response": response,
        "trace_id": spans[0].trace_id,
        "trace_name": _first([about, root], "name"),
        "root_span_id": root.span_id if root else None,
        "generation_span_id": generation.span_id if generation else None,
        "session_id": _first(spans, "session"),
        "user_id": _first(spans, "user"),
        "model": _first([generation, *(span for span in reversed(spans) if span.kind is Kind.GENERATION)], "model"),
        "start_time": start,
        "trace_note": "; ".join(notes) or None,
    }
    day = "unknown" if start is None else f"{datetime.fromtimestamp(start / 1e6, UTC):%Y-%m-%d}"
    return Joined(row, day, notes, not ended or not (response or failed))


def as_unfinished(found: Joined) -> Joined:
    """A trace that is taken as it is, though more of it could have come."""
    notes = [*found.notes, "unfinished"]
    return replace(found, notes=notes, row={**found.row, "trace_note": "; ".join(notes)})


def unique(spans: Iterable[Span]) -> list[Span]:
    """Spans without those that stand there twice: the one that has ended counts, and of two such the later one read.

    Of a span that is told in parts, as an update without its input, each part is taken where it is told.
    """
    found: dict[tuple[str, bool], Span] = {}
    for span in spans:
        key = (span.span_id, span.kind is Kind.TRACE)
        found[key] = _merged(found[key], span) if key in found else span
    return list(found.values())


def _merged(before: Span, after: Span) -> Span:
    old, new = (after, before) if before.end is not None and after.end is None else (before, after)
    kept = {name: getattr(old, name) for name in _MERGED if getattr(new, name) is None}
    return replace(new, **kept, root=old.root or new.root, kind=old.kind if new.kind is Kind.OTHER else new.kind)


def _in_time(span: Span) -> tuple[int, str]:
    return (span.start if span.start is not None else 1 << 62, span.span_id)


def _roots(spans: Sequence[Span]) -> tuple[list[Span], bool]:
    """The roots, and whether the tool says that they are: else they are spans whose parents are not there, or in a circle."""
    told = [span for span in spans if span.root] or [span for span in spans if span.parent_id is None]
    if told:
        return told, True
    ids = {span.span_id for span in spans}
    return [span for span in spans if span.parent_id not in ids] or list(spans[:1]), False


def _inside(spans: Iterable[Span], holds: Callable[[Span], bool]) -> set[str]:
    """Return the ids of the spans around which there is one for which a condition holds.

    Each span is visited once, from the nearest of these, however deep a trace is. In a circle of parents each is around all
    others.
    """
    children: dict[str | None, list[Span]] = defaultdict(list)
    for span in spans:
        children[span.parent_id].append(span)
    found = set()
    for holder in filter(holds, spans):
        below = [*children[holder.span_id]]
        while below:
            span = below.pop()
            if span is not holder:
                found.add(span.span_id)
            if not holds(span):
                below += children[span.span_id]
    return found


def _answering(spans: Sequence[Span], generations: Sequence[Span]) -> Span | None:
    """The last generation that says something: one that ended well before one that failed, as a retry stands behind it."""
    inside = _inside(spans, lambda around: around.kind in _INSIDE)
    answers = [span for span in generations if span.response and span.span_id not in inside]
    return max(answers, key=lambda span: (not span.failed, span.last_seen or 0, _in_time(span)), default=None)


def _passages(spans: Sequence[Span]) -> list[Document] | None:
    """What retrievals gave the model, in the order of time, each passage once; None where there was no retrieval.

    What a re-ranker puts out takes the place of what was retrieved before it. A retrieval inside another one is a part of it.
    """
    if not any(span.kind in RETRIEVALS for span in spans):
        return None
    inner = _inside(spans, lambda around: around.kind in _INSIDE and bool(around.documents))
    taken: list[Document] = []
    waiting: list[Document] = []
    for span in spans:
        documents = span.documents or ()
        if span.span_id in inner:
            continue
        if span.kind is Kind.RERANKER and any(document.text for document in documents):
            taken += documents
            waiting = []
        elif span.kind is Kind.RETRIEVER:
            waiting += documents
    keyed = {(document.id, document.text): document for document in reversed([*taken, *waiting])}
    return list(reversed(keyed.values()))


def _of_passages(passages: Sequence[Document] | None) -> str | None:
    """What is to say of passages."""
    if not passages:
        return "no retrieval" if passages is None else "its retrieval found nothing"
    told = sum(bool(passage.text and passage.text.strip()) for passage in passages)
    if told == len(passages):
        return None
    return "some of its passages are ids only" if told else "its retrieval tells ids only"


def _first(spans: Iterable[Span | None], name: str) -> Any:
    """The first value of a field that is not empty, of those spans that are there."""
    return next((value for span in spans if span is not None and (value := getattr(span, name))), None)
