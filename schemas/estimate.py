"""The estimated share of hallucinated responses, as versioned JSON."""

from dataclasses import dataclass

from ragassay.schemas.versioned import RECORD, Record


@dataclass(frozen=True)
class ShareRecord:
    """A share with its 95 % interval, all 0 to 1."""

    __pydantic_config__ = RECORD

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class RateRecord:
    """The share of hallucinated responses among some rows.

    Attributes:
        part: Which rows: `all`, a partition, or a value of a column.
        rows: Scored rows.
        labels: Those of them with a label.
        wrong: Those of these that are hallucinated.
        flagged: Share of the rows that the verdicts flag.
        labelled_flagged: The same of the labelled rows.
        powered: The prediction-powered estimate; null without labels.
        classical: The estimate from the labels alone; null without labels.
        more_labels: How many more labels make the prediction-powered interval half as wide; null without labels.
        population: Rows that the estimates speak of, about, where the scored are a sample of them; null where they are all.
    """

    __pydantic_config__ = RECORD

    part: str
    rows: int
    labels: int
    wrong: int
    flagged: float
    labelled_flagged: float | None
    powered: ShareRecord | None
    classical: ShareRecord | None
    more_labels: int | None
    population: float | None = None


@dataclass(frozen=True)
class Estimate(Record):
    """What `estimate` found.

    Attributes:
        created: UTC, ISO 8601.
        source: File of the labels, or column.
        level: Confidence of the intervals.
        where: Column -> value of the rows that were looked at; empty for all.
        elsewhere: Rows left out by that.
        unscored: Rows without a score, which the estimate does not speak of.
        weighted: Whether the labels say with what probability each was drawn; else they count as a simple random sample.
        strata: Strata that the labels name.
        undecided: Scored rows that the file speaks of without giving the response a label: unsure, or some sentences only.
        labelled_unscored: Labels of rows without a score.
        unmatched: Labels that belong to no row of the output.
        repeated: Lines of the file that a later one replaces, or that say the same again.
        overall: All rows.
        partitions: Each partition; empty where there is one.
        slices: Column -> each of its values.
        notes: What is missing, in words.
    """

    WHAT = "an estimate"

    created: str
    source: str
    level: float
    where: dict[str, str]
    elsewhere: int
    unscored: int
    weighted: bool
    strata: list[str]
    undecided: int
    labelled_unscored: int
    unmatched: int
    repeated: int
    overall: RateRecord
    partitions: list[RateRecord]
    slices: dict[str, list[RateRecord]]
    notes: list[str]
