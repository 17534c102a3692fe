"""Spans in one form for all tools, with the fields that the join needs."""

from dataclasses import asdict, dataclass, fields
from enum import StrEnum

import pyarrow as pa

from ragassay.jobs.input.documents import Document


class SpanKind(StrEnum):
    """Kind of a span. `trace` marks a description of a whole trace."""

    TRACE = "trace"
    RETRIEVER = "retriever"
    RERANKER = "reranker"
    GENERATION = "generation"
    TOOL = "tool"
    EMBEDDING = "embedding"
    EVALUATOR = "evaluator"
    OTHER = "other"


RETRIEVAL_KINDS = (SpanKind.RETRIEVER, SpanKind.RERANKER)
"""Kinds that return passages."""


@dataclass(frozen=True)
class Span:
    """A span.

    Attributes:
        trace_id: Id of its trace.
        span_id: Id, unique within the trace.
        parent_id: Id of the parent span; None for a root.
        root: Whether the tool marks it as the root, whatever its parent.
        kind: Its kind.
        name: Its name.
        start: Microseconds since 1970, UTC; None if unknown.
        end: Like `start`; None while the span is open.
        failed: Whether it ended with an error.
        question: Question in its input.
        response: Response in its output.
        documents: Retrieved documents in order; None if it is no retrieval or has no output.
        session: Conversation that it belongs to.
        user: User of the application.
        model: Model of a generation.
    """

    trace_id: str
    span_id: str
    parent_id: str | None = None
    root: bool = False
    kind: SpanKind = SpanKind.OTHER
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
    def last_time(self) -> int | None:
        """Its end; its start while it is open."""
        return self.start if self.end is None else self.end


_DOCUMENT = pa.struct({"text": pa.string(), "id": pa.string(), "rank": pa.float64()})
SPAN_SCHEMA = pa.schema(
    {field.name: pa.string() for field in fields(Span)}
    | dict.fromkeys(("root", "failed"), pa.bool_())
    | dict.fromkeys(("start", "end"), pa.int64())
    | dict.fromkeys(("question", "response"), pa.large_string())
    | {"documents": pa.list_(_DOCUMENT)}
)
"""Schema of spans on disk, until the rest of their trace is read."""


def spans_to_table(spans: list[Span]) -> pa.Table:
    """Convert spans to a table of `SPAN_SCHEMA`."""
    return pa.Table.from_pylist([asdict(span) for span in spans], schema=SPAN_SCHEMA)


def spans_from_batch(batch: pa.RecordBatch) -> list[Span]:
    """Convert a batch of `SPAN_SCHEMA` to spans."""
    spans = []
    for row in batch.to_pylist():
        documents = None if row["documents"] is None else tuple(Document(**document) for document in row["documents"])
        spans.append(Span(**{**row, "kind": SpanKind(row["kind"]), "documents": documents}))
    return spans
