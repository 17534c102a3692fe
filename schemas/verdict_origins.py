"""Origins of the parts of a run's verdicts, for the manifest and the summary."""

from dataclasses import dataclass

from ragassay.schemas.versioned import RECORD_CONFIG


@dataclass(frozen=True)
class Origins:
    """Origin of each part of the verdicts: the name of a calibration, `job file`, `this run` or `defaults`.

    Attributes:
        moments: Origin of mu and sigma.
        aggregate: Origin of mean, policy and epsilon.
        threshold: Origin of tau.
        probability: Origin of the map from scores to P(supported); None without a map.
        calibration: Id of the calibration that provides what the job file does not set; None without one.
        note: Why there is no calibration, or no probability; None otherwise.
    """

    __pydantic_config__ = RECORD_CONFIG

    moments: str
    aggregate: str
    threshold: str
    probability: str | None
    calibration: str | None
    note: str | None

    @property
    def text(self) -> str:
        """All origins in one line, such as `bundled calibration: moments, aggregate, probability; job file: threshold`."""
        parts: dict[str, list[str]] = {}
        for part in ("moments", "aggregate", "threshold", "probability"):
            parts.setdefault(getattr(self, part) or "none", []).append(part)
        lines = [f"{origin}: {', '.join(names)}" for origin, names in parts.items()]
        return "; ".join(lines) + (f" ({self.note})" if self.note else "")
