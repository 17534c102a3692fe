"""The tools whose exports are read. A new one is a file with a function from a record to spans, and a line here."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ragassay.jobs.traces import langfuse, langsmith, mlflow, otel, phoenix
from ragassay.jobs.traces.spans import Span

PRESETS: Mapping[str, Callable[[Mapping[str, Any]], Iterator[Span]]] = {
    "langfuse": langfuse.spans,
    "langsmith": langsmith.spans,
    "phoenix": phoenix.spans,
    "mlflow": mlflow.spans,
    "otel": otel.spans,
}

ODD = (ValueError, TypeError, OverflowError, AttributeError, LookupError, RecursionError)
"""What reading a record raises where a field of it is not what it should be."""
