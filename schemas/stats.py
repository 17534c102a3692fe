"""Sufficient statistics of a member's scores in a partition: versioned JSON with an exact round trip."""

from dataclasses import dataclass, field

from ragassay.schemas.versioned import RECORD_CONFIG, Record


@dataclass(frozen=True)
class Moments:
    """Count, mean, M2 (sum of squared deviations), extremes and a quantile sketch of a set of numbers.

    Attributes:
        count: Number of values.
        mean: Mean; 0 when count is 0.
        m2: Sum of (x - mean)^2.
        low: Smallest number; None when count is 0.
        high: Largest number; None when count is 0.
        buckets: Log-spaced histogram, bucket -> count (see `pipeline.verdict.moments`).
    """

    __pydantic_config__ = RECORD_CONFIG

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
class PartitionStats(Record):
    """Moments of every member's sentence values in one partition, and the statuses of its rows.

    Attributes:
        partition: Hive path such as `dt=2026-11-20`; empty for a dataset without partitions.
        members: Member -> moments of its sentence values.
        values: Member -> kind of its value (`p_yes`, `log_odds` …).
        label_mass: SLM -> moments of P(yes) + P(no); a low mass shows a model that does not follow its prompt.
        rows: Status -> rows.
        sentences: Sentences of the rows with status ok.
        raw_files: Raw files behind these statistics; a change of this list makes them outdated.
    """

    DESCRIPTION = "statistics"

    partition: str
    members: dict[str, Moments]
    values: dict[str, str]
    label_mass: dict[str, Moments]
    rows: dict[str, int]
    sentences: int
    raw_files: list[str]
