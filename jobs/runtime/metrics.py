"""What the workers do, as Ray metrics: Ray exports them in Prometheus' format wherever a cluster collects its metrics."""

from functools import cache
from typing import Any

COUNTERS = {
    "ragassay_tokens_computed": ("slm", "Prompt tokens run through the model"),
    "ragassay_tokens_reused": ("slm", "Prompt tokens taken from the prefix cache"),
    "ragassay_engine_busy_seconds": ("slm", "Seconds that engines were busy"),
    "ragassay_engine_idle_seconds": ("slm", "Seconds that engines waited between two calls"),
    "ragassay_rows": ("stage", "Rows that a stage of a run has let go"),  # Ray calls all stages by the name of their actor
}
"""Name -> tag and description."""


def count(name: str, value: float, tag: str) -> None:
    """Add to one of this process's counters.

    Args:
        name: The counter's.
        value: How much.
        tag: Name of the SLM or of the stage.
    """
    if value > 0:  # Ray refuses to count up by nothing
        _counter(name).inc(float(value), tags={COUNTERS[name][0]: tag})


@cache
def _counter(name: str) -> Any:
    from ray.util.metrics import Counter

    tag, description = COUNTERS[name]
    return Counter(name, description=description, tag_keys=(tag,))
