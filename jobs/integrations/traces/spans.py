"""A span of any tool: all that the join asks of it."""

from dataclasses import asdict, dataclass, fields
from enum import StrEnum

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


_DOCUMENT = pa.struct({"text": pa.string(), "id": pa.string(), "rank": pa.float64()})
SPANS = pa.schema(
    {field.name: pa.string() for field in fields(Span)}
    | dict.fromkeys(("root", "failed"), pa.bool_())
    | dict.fromkeys(("start", "end"), pa.int64())
    | dict.fromkeys(("question", "response"), pa.large_string())
    | {"documents": pa.list_(_DOCUMENT)}
)
"""Spans while they wait: for the rest of an export's, or for those of the next one."""


def to_table(spans: list[Span]) -> pa.Table:
    """Spans as a table of the schema `SPANS`."""
    return pa.Table.from_pylist([asdict(span) for span in spans], schema=SPANS)


def from_batch(batch: pa.RecordBatch) -> list[Span]:
    """What `to_table` made a table of."""
    found = []
    for row in batch.to_pylist():
        documents = None if row["documents"] is None else tuple(Document(**document) for document in row["documents"])
        found.append(Span(**{**row, "kind": Kind(row["kind"]), "documents": documents}))
    return found
