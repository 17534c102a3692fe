"""Spans of a trace to one row: the question of its root, the passages of its retrievals, the response."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from ragassay.jobs.input.documents import Document
from ragassay.jobs.traces.spans import RETRIEVALS, Kind, Span

NO_RETRIEVAL = "no retrieval"
NOTHING_FOUND = "its retrieval found nothing"
IDS_ONLY = "its retrieval tells ids only"
SOME_IDS_ONLY = "some of its passages are ids only"
NO_QUESTION = "no question"
NO_RESPONSE = "no response"
FAILED = "it failed"
UNFINISHED = "unfinished"
SEVERAL_ROOTS = "several roots"
NO_ROOT = "no root"

ROWS = pa.schema(
    [
        ("row_id", pa.string()),
        ("question", pa.string()),
        ("context", pa.list_(pa.struct([("id", pa.string()), ("text", pa.string())]))),
        ("response", pa.string()),
        ("trace_id", pa.string()),
        ("trace_name", pa.string()),
        ("root_span_id", pa.string()),
        ("generation_span_id", pa.string()),
        ("session_id", pa.string()),
        ("user_id", pa.string()),
        ("model", pa.string()),
        ("start_time", pa.timestamp("us", "UTC")),
        ("trace_note", pa.string()),
    ]
)
"""The rows that traces become. `trace_note` says what a trace lacks or is unusual in, null where nothing is."""

UNKNOWN_DAY = "unknown"
_INSIDE = (*RETRIEVALS, Kind.EVALUATOR, Kind.EMBEDDING)
"""Kinds of spans that don't respond, and whose generations don't: a rewritten query, a judge."""


@dataclass(frozen=True)
class Joined:
    """A trace as a row.

    Attributes:
        row: Of the schema `ROWS`.
        day: Its day, UTC: the partition.
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
    by_id = {span.span_id: span for span in real}
    roots, certain = _roots(real, by_id)
    root = _root(roots)
    generation = _generation(real, by_id)
    question = _first(*_each([about, root, *roots], "question"))
    answering = root if root and root.kind not in _INSIDE else None
    response = _first(*_each([about, answering, generation], "response"))
    passages, found = _passages(real, by_id)
    ended = bool(root and certain and root.end is not None) or bool(about and (about.end is not None or about.response))
    failed = bool((root and root.failed) or (about and about.failed))
    gave_up = not response and any(span.failed for span in real if span.kind is Kind.GENERATION)
    notes = [
        *([] if found else [NO_RETRIEVAL]),
        *(_of_passages(passages) if found else []),
        *([] if question else [NO_QUESTION]),
        *([] if response else [NO_RESPONSE]),
        *([FAILED] if failed or gave_up else []),
        *([SEVERAL_ROOTS] if certain and len(roots) > 1 and not about else []),
        *([] if certain or about else [NO_ROOT]),
    ]
    return _row(spans, about, root, generation, (question, response, passages), notes, not ended or not (response or failed))


def as_unfinished(found: Joined) -> Joined:
    """A trace that is taken as it is, though more of it could have come."""
    notes = [*found.notes, UNFINISHED]
    return replace(found, notes=notes, row={**found.row, "trace_note": "; ".join(notes)})


def unique(spans: Iterable[Span]) -> list[Span]:
    """Spans without those that stand there twice: the one that has ended counts, and of two such the later one read.

    Of a span that is told in parts, as an update without its input, each part is taken where it is told.
    """
    found: dict[tuple[str, bool], Span] = {}
    for span in spans:
        key = (span.span_id, span.kind is Kind.TRACE)
        known = found.get(key)
        found[key] = span if known is None else _merged(known, span)
    return list(found.values())


def _merged(before: Span, after: Span) -> Span:
    old, new = (after, before) if before.end is not None and after.end is None else (before, after)
    told = ("parent_id", "name", "start", "end", "question", "response", "documents", "session", "user", "model")
    kept = {name: getattr(old, name) for name in told if getattr(new, name) is None}
    return replace(new, **kept, root=old.root or new.root, kind=old.kind if new.kind is Kind.OTHER else new.kind)


def _in_time(span: Span) -> tuple[int, str]:
    return (span.start if span.start is not None else 1 << 62, span.span_id)


def _roots(spans: Sequence[Span], by_id: Mapping[str, Span]) -> tuple[list[Span], bool]:
    """The roots, and whether the tool says that they are: else they are spans whose parents are not there, or in a circle."""
    named = [span for span in spans if span.root]
    alone = [span for span in spans if span.parent_id is None]
    if named or alone:
        return named or alone, True
    return [span for span in spans if span.parent_id not in by_id] or list(spans[:1]), False


def _root(roots: Sequence[Span]) -> Span | None:
    """Of several roots the first that asks and answers, or asks, or is there."""
    return min(
        roots, key=lambda span: (not (span.question and span.response), not span.question, *_in_time(span)), default=None
    )


def _inside(spans: Sequence[Span], by_id: Mapping[str, Span], holds: Callable[[Span], bool]) -> set[str]:
    """Return the ids of the spans around which there is one for which a condition holds.

    Every span is visited once, however deep a trace is. In a circle of parents each span is around all others.

    Args:
        spans: Spans of one trace.
        by_id: They, by their ids.
        holds: The condition.
    """
    known: dict[str, bool] = {}
    for span in spans:
        path: dict[str, Span] = {}
        at: Span | None = span
        while at is not None and at.span_id not in known and at.span_id not in path:
            path[at.span_id] = at
            at = _parent(at, by_id)
        if at is not None and at.span_id in path:
            circle = list(path.values())[list(path).index(at.span_id) :]
            held = sum(map(holds, circle))
            known.update((one.span_id, held > holds(one)) for one in circle)
        for one in reversed(path.values()):
            if one.span_id not in known:
                parent = _parent(one, by_id)
                known[one.span_id] = parent is not None and (holds(parent) or known[parent.span_id])
    return {span_id for span_id, held in known.items() if held}


def _parent(span: Span, by_id: Mapping[str, Span]) -> Span | None:
    return None if span.parent_id is None else by_id.get(span.parent_id)


def _generation(spans: Sequence[Span], by_id: Mapping[str, Span]) -> Span | None:
    """The last generation that says something: one that ended well before one that failed, as a retry stands behind it."""
    inside = _inside(spans, by_id, lambda around: around.kind in _INSIDE)
    answers = [span for span in spans if span.kind is Kind.GENERATION and span.response and span.span_id not in inside]
    return max(answers, key=lambda span: (not span.failed, span.last_seen or 0, _in_time(span)), default=None)


def _passages(spans: Sequence[Span], by_id: Mapping[str, Span]) -> tuple[list[Document], bool]:
    """What retrievals gave the model, in the order of time, each passage once; and whether there was a retrieval.

    What a re-ranker puts out takes the place of what was retrieved before it. A retrieval inside another one is a part of it.
    """
    retrievals = [span for span in spans if span.kind in RETRIEVALS]
    inner = _inside(spans, by_id, lambda around: around.kind in _INSIDE and bool(around.documents))
    outer = [span for span in retrievals if span.documents and span.span_id not in inner]
    taken: list[Document] = []
    waiting: list[Document] = []
    for span in outer:
        documents = list(span.documents or ())
        if span.kind is Kind.RERANKER and any(document.text for document in documents):
            taken, waiting = [*taken, *documents], []
        elif span.kind is Kind.RETRIEVER:
            waiting += documents
    keyed = {(document.id, document.text): document for document in reversed([*taken, *waiting])}
    return list(reversed(keyed.values())), bool(retrievals)


def _of_passages(passages: Sequence[Document]) -> list[str]:
    told = sum(bool(passage.text and passage.text.strip()) for passage in passages)
    if not passages:
        return [NOTHING_FOUND]
    return [] if told == len(passages) else [SOME_IDS_ONLY if told else IDS_ONLY]


def _first(*texts: str | None) -> str | None:
    return next((text for text in texts if text), None)


def _each(spans: Sequence[Span | None], name: str) -> list[str | None]:
    """A field of those spans that are there."""
    return [getattr(span, name) for span in spans if span is not None]


def _row(
    spans: Sequence[Span],
    about: Span | None,
    root: Span | None,
    generation: Span | None,
    texts: tuple[str | None, str | None, Sequence[Document]],
    notes: list[str],
    is_open: bool,
) -> Joined:
    question, response, passages = texts
    trace_id = spans[0].trace_id
    starts = [span.start for span in spans if span.start is not None]
    start = min(starts, default=None)
    generations = [span for span in reversed(spans) if span.kind is Kind.GENERATION]
    row = {
        "row_id": trace_id,
        "question": question,
        "context": [{"id": passage.id, "text": passage.text} for passage in passages] or None,
        "response": response,
        "trace_id": trace_id,
        "trace_name": _first(*_each([about, root], "name")),
        "root_span_id": root.span_id if root else None,
        "generation_span_id": generation.span_id if generation else None,
        "session_id": _first(*(span.session for span in spans)),
        "user_id": _first(*(span.user for span in spans)),
        "model": _first(*_each([generation, *generations], "model")),
        "start_time": start,
        "trace_note": "; ".join(notes) or None,
    }
    day = UNKNOWN_DAY if start is None else f"{datetime.fromtimestamp(start / 1e6, UTC):%Y-%m-%d}"
    return Joined(row, day, notes, is_open)
