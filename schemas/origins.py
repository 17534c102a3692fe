"""Where the parts of a run's verdicts come from, for the manifest and the summary."""

from dataclasses import dataclass

from ragassay.schemas.versioned import RECORD


@dataclass(frozen=True)
class Origins:
    """Which part of the verdicts comes from where, in words: a calibration's name, `job file`, `this run`, `defaults`.

    Attributes:
        moments: mu and sigma.
        aggregate: Mean, policy and epsilon.
        threshold: tau.
        probability: The map from scores to P(supported); None where there is none.
        calibration: Id of the calibration that gives whatever the job file doesn't; None without one.
        note: Why there is no calibration, or no probability; None otherwise.
    """

    __pydantic_config__ = RECORD

    moments: str
    aggregate: str
    threshold: str
    probability: str | None
    calibration: str | None
    note: str | None

    @property
    def text(self) -> str:
        """All of it in a line, such as `bundled calibration: moments, aggregate, probability; job file: threshold`."""
        parts: dict[str, list[str]] = {}
        for part in ("moments", "aggregate", "threshold", "probability"):
            parts.setdefault(getattr(self, part) or "none", []).append(part)
        lines = [f"{origin}: {', '.join(names)}" for origin, names in parts.items()]
        return "; ".join(lines) + (f" ({self.note})" if self.note else "")
