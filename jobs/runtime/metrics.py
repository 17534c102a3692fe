"""Count the work of the workers as Ray metrics, which Ray exports in Prometheus format where a cluster collects its metrics."""

from functools import cache
from typing import Any

COUNTERS = {
    "ragassay_tokens_computed": ("slm", "Prompt tokens run through the model"),
    "ragassay_tokens_reused": ("slm", "Prompt tokens taken from the prefix cache"),
    "ragassay_engine_busy_seconds": ("slm", "Seconds that engines were busy"),
    "ragassay_engine_idle_seconds": ("slm", "Seconds that engines waited between two calls"),
    "ragassay_rows": ("stage", "Rows that a stage of a run has finished"),  # Ray names every stage after its actor class
}
"""Name -> tag and description."""


def add_to_counter(name: str, value: float, tag: str) -> None:
    """Add to a counter of this process.

    Args:
        name: Name of the counter.
        value: Amount to add.
        tag: Name of the SLM or of the stage.
    """
    if value > 0:  # Ray refuses to increase a counter by 0
        _make_counter(name).inc(float(value), tags={COUNTERS[name][0]: tag})


@cache
def _make_counter(name: str) -> Any:
    from ray.util.metrics import Counter

    tag, description = COUNTERS[name]
    return Counter(name, description=description, tag_keys=(tag,))
