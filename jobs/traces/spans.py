"""A span as every tool's file gives it: all that the join asks of it."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

import pyarrow as pa

from ragassay.jobs.input.documents import Document


class Kind(StrEnum):
    """What a span is. `trace` is no span: what a tool says of a trace as a whole."""

    TRACE = "trace"
    RETRIEVER = "retriever"
    RERANKER = "reranker"
    GENERATION = "generation"
    TOOL = "tool"
    EMBEDDING = "embedding"
    EVALUATOR = "evaluator"
    OTHER = "other"


RETRIEVALS = (Kind.RETRIEVER, Kind.RERANKER)
"""Kinds that find passages."""


@dataclass(frozen=True)
class Span:
    """A span.

    Attributes:
        trace_id: Of its trace.
        span_id: Its own, which no other span of the trace has.
        parent_id: The span around it; None for a root.
        root: Whether the tool calls it the root, whatever its parent.
        kind: What it is.
        name: Its name.
        start: Microseconds since 1970, UTC; None where the tool doesn't tell.
        end: Likewise; None while it is open.
        failed: Whether it ended with an error.
        question: What its input asks.
        response: What its output says.
        documents: What a retrieval found, in order; None for a span that is none, or doesn't tell.
        session: The conversation that it belongs to.
        user: Who asked.
        model: The model of a generation.
    """

    trace_id: str
    span_id: str
    parent_id: str | None = None
    root: bool = False
    kind: Kind = Kind.OTHER
    name: str | None = None
    start: int | None = None
    end: int | None = None
    failed: bool = False
    question: str | None = None
    response: str | None = None
    documents: tuple[Document, ...] | None = None
    session: str | None = None
    user: str | None = None
    model: str | None = None

    @property
    def last_seen(self) -> int | None:
        """Its end, or else its start."""
        return self.start if self.end is None else self.end


_DOCUMENT = pa.struct([("text", pa.string()), ("id", pa.string()), ("rank", pa.float64())])
SPANS = pa.schema(
    [
        ("trace_id", pa.string()),
        ("span_id", pa.string()),
        ("parent_id", pa.string()),
        ("root", pa.bool_()),
        ("kind", pa.string()),
        ("name", pa.string()),
        ("start", pa.int64()),
        ("end", pa.int64()),
        ("failed", pa.bool_()),
        ("question", pa.large_string()),
        ("response", pa.large_string()),
        ("documents", pa.list_(_DOCUMENT)),
        ("session", pa.string()),
        ("user", pa.string()),
        ("model", pa.string()),
    ]
)
"""Spans while they wait: for the rest of an export's, or for those of the next one."""


def to_table(spans: list[Span]) -> pa.Table:
    """Spans as a table of the schema `SPANS`."""
    return pa.Table.from_pylist([asdict(span) for span in spans], schema=SPANS)


def from_table(table: pa.Table) -> list[Span]:
    """What `to_table` made a table of."""
    return [_span(row) for row in table.to_pylist()]


def _span(row: Mapping[str, Any]) -> Span:
    documents = row["documents"]
    found = None if documents is None else tuple(Document(**document) for document in documents)
    return Span(**{**row, "kind": Kind(row["kind"]), "documents": found})
