"""Sufficient statistics of a member's scores over a partition: versioned JSON with exact round trip."""

import json
from dataclasses import asdict, dataclass, field

STATS_VERSION = 2


@dataclass(frozen=True)
class Moments:
    """Count, mean, M2 (sum of squared deviations), extremes and a quantile sketch of a set of numbers.

    Attributes:
        count: How many numbers.
        mean: Their mean; 0 when count is 0.
        m2: Sum of (x - mean)^2.
        low: Smallest number; None when count is 0.
        high: Largest number; None when count is 0.
        buckets: Log-spaced histogram, bucket -> count (see `pipeline.verdict.moments`).
    """

    count: int = 0
    mean: float = 0.0
    m2: float = 0.0
    low: float | None = None
    high: float | None = None
    buckets: dict[int, int] = field(default_factory=dict)

    @property
    def sigma(self) -> float:
        """Population standard deviation, sqrt(M2 / count); 0 when count is 0."""
        return (self.m2 / self.count) ** 0.5 if self.count else 0.0


@dataclass(frozen=True)
class PartitionStats:
    """What one partition holds: moments of every member's sentence values, and how its rows ended.

    Attributes:
        partition: Hive path such as `dt=2026-11-20`; empty for a dataset without partitions.
        members: Moments of the sentences' values, a member.
        values: Which number of the member that is (`p_yes`, `log_odds` …).
        label_mass: Moments of P(yes) + P(no), a member that is an SLM; low mass is the sign of a model that does not follow
            its prompt.
        rows: Rows by status.
        sentences: Sentences of the rows with status ok.
        raw_files: The raw files these statistics were made from, so that a change is noticed.
    """

    partition: str
    members: dict[str, Moments]
    values: dict[str, str]
    label_mass: dict[str, Moments]
    rows: dict[str, int]
    sentences: int
    raw_files: list[str]

    def to_json(self) -> str:
        """JSON text; floats are written so that they read back bit for bit."""
        return json.dumps({"version": STATS_VERSION, **asdict(self)}, indent=1)

    @staticmethod
    def from_json(text: str) -> "PartitionStats":
        """Read what `to_json` wrote.

        Raises:
            ValueError: The text is of another version.
        """
        data = json.loads(text)
        if data.pop("version", None) != STATS_VERSION:
            raise ValueError(f"statistics of another version than {STATS_VERSION}")
        for key in ("members", "label_mass"):
            data[key] = {name: moments_from_dict(m) for name, m in data[key].items()}
        return PartitionStats(**data)


def moments_from_dict(data: dict[str, object]) -> Moments:
    """Moments from the dictionary that `dataclasses.asdict` and JSON make of them."""
    buckets = data.get("buckets") or {}
    assert isinstance(buckets, dict)
    return Moments(**{**data, "buckets": {int(k): int(v) for k, v in buckets.items()}})  # type: ignore[arg-type]
