"""Time the join of a trace's spans by their number: `python -m tests.benchmarks.trace_depth`.

Prints seconds for a chain (each span is the child of the span before), a fan (all are children of the root) and a circle of
parents, and the ratio of times for ten times as many spans.
"""

import time
from collections.abc import Callable
from itertools import pairwise

from ragassay.jobs.integrations.traces.join import join_spans
from ragassay.jobs.integrations.traces.span import Span, SpanKind

SIZES = (1_000, 10_000, 100_000)
SHAPES: dict[str, Callable[[int, int], str | None]] = {
    "chain": lambda i, size: f"s{i - 1}" if i else None,
    "fan": lambda i, size: "s0" if i else None,
    "circle": lambda i, size: f"s{(i - 1) % size}",
}


def make_spans(size: int, parent: Callable[[int, int], str | None]) -> list[Span]:
    """Make the spans of one trace; every fourth span retrieves, and every fourth answers."""
    kinds = (SpanKind.OTHER, SpanKind.RETRIEVER, SpanKind.GENERATION, SpanKind.OTHER)
    return [
        Span("t", f"s{i}", parent(i, size), start=i, end=i + 1, kind=kinds[i % 4], response="A." if i % 4 == 2 else None)
        for i in range(size)
    ]


def main() -> None:
    """Print a table."""
    print(f"| shape | {' | '.join(f'{size:,} spans' for size in SIZES)} | for ten times as many |\n| --- |{' --- |' * 4}")
    for name, parent in SHAPES.items():
        seconds = []
        for size in SIZES:
            trace = make_spans(size, parent)
            started = time.process_time()
            join_spans(trace)
            seconds.append(time.process_time() - started)
        growth = ", ".join(f"{later / before:.1f}" for before, later in pairwise(seconds))
        print(f"| {name} | {' | '.join(f'{x:.3f} s' for x in seconds)} | {growth} |")


if __name__ == "__main__":
    main()
