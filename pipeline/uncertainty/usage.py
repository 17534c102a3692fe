"""Account for the cost of measuring the texts of a row."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ragassay.pipeline.uncertainty.model import TextMeasurement


@dataclass(kw_only=True)
class MeasurementCost:
    """Cost of the measurements of a row.

    Attributes:
        prompts: Number of measured texts.
        computed_tokens: Tokens that the model computed for them.
        reused_tokens: Tokens that were already computed for other prompts.
        seconds: Time of the model.
    """

    prompts: int = 0
    computed_tokens: int = 0
    reused_tokens: int = 0
    seconds: float = 0.0

    def add_measurements(self, measurements: Sequence[TextMeasurement]) -> None:
        """Add the cost of measurements."""
        self.prompts += len(measurements)
        self.computed_tokens += sum(measurement.computed_tokens for measurement in measurements)
        self.reused_tokens += sum(measurement.reused_tokens for measurement in measurements)
        self.seconds += sum(measurement.seconds for measurement in measurements)

    def make_usage_record(self, name: str) -> dict[str, Any]:
        """Return the cost as a struct of `schemas.columns.USAGE`."""
        return {
            "name": name,
            "prompts": self.prompts,
            "tokens_computed": self.computed_tokens,
            "tokens_reused": self.reused_tokens,
            "engine_seconds": self.seconds,
            "idle_seconds": 0.0,
        }
