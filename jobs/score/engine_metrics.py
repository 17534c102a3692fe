"""What engines do, as Ray metrics: Ray exports them in Prometheus' format wherever a cluster collects its metrics."""

from collections.abc import Callable

from ragassay.pipeline.engines.protocol import EngineOutput

COUNTERS = {
    "ragassay_tokens_computed": "Prompt tokens run through the model",
    "ragassay_tokens_reused": "Prompt tokens taken from the prefix cache",
    "ragassay_engine_busy_seconds": "Seconds that engines were busy",
    "ragassay_engine_idle_seconds": "Seconds that engines waited between two calls",
}


def engine_counters(name: str) -> Callable[[EngineOutput], None]:
    """Counters of one SLM, under the tag `slm`; made inside the actor that counts.

    Args:
        name: The SLM's name.

    Returns:
        What adds an engine call to them.
    """
    from ray.util.metrics import Counter

    counters = {key: Counter(key, description=text, tag_keys=("slm",)) for key, text in COUNTERS.items()}

    def count(output: EngineOutput) -> None:
        values = (output.tokens_computed.sum(), output.tokens_reused.sum(), output.seconds, output.idle_seconds)
        for counter, value in zip(counters.values(), values, strict=True):
            if value > 0:  # Ray refuses to count up by nothing
                counter.inc(float(value), tags={"slm": name})

    return count
