"""What engines do, as Ray metrics: Ray exports them in Prometheus' format wherever a cluster collects its metrics."""

from functools import cache
from typing import Any

COUNTERS = {
    "ragassay_tokens_computed": "Prompt tokens run through the model",
    "ragassay_tokens_reused": "Prompt tokens taken from the prefix cache",
    "ragassay_engine_busy_seconds": "Seconds that engines were busy",
    "ragassay_engine_idle_seconds": "Seconds that engines waited between two calls",
}


def count_engine_call(slm: str, *values: float) -> None:
    """Add an engine call to this process's counters, under the tag `slm`.

    Args:
        slm: The SLM's name.
        values: Tokens computed and reused, seconds busy and idle.
    """
    for counter, value in zip(_counters(), values, strict=True):
        if value > 0:  # Ray refuses to count up by nothing
            counter.inc(float(value), tags={"slm": slm})


@cache
def _counters() -> list[Any]:
    from ray.util.metrics import Counter

    return [Counter(key, description=text, tag_keys=("slm",)) for key, text in COUNTERS.items()]
