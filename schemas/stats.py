"""Sufficient statistics of a member's scores over a partition: versioned JSON with exact round trip."""

from dataclasses import asdict, dataclass, field

from ragassay.schemas.versioned import RECORD, from_json, to_json

STATS_VERSION = 1


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

    __pydantic_config__ = RECORD

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

    __pydantic_config__ = RECORD

    partition: str
    members: dict[str, Moments]
    values: dict[str, str]
    label_mass: dict[str, Moments]
    rows: dict[str, int]
    sentences: int
    raw_files: list[str]

    def to_json(self) -> str:
        """JSON text; floats are written so that they read back bit for bit."""
        return to_json(asdict(self), STATS_VERSION)

    @staticmethod
    def from_json(text: str) -> "PartitionStats":
        """Read what `to_json` wrote.

        Raises:
            ValueError: The text is of another version.
        """
        return from_json(PartitionStats, text, STATS_VERSION, "statistics")
