"""The result of `compare`: two runs or outputs row by row, as versioned JSON."""

from dataclasses import dataclass

from ragassay.schemas.versioned import RECORD_CONFIG, Record


@dataclass(frozen=True)
class ComparedSide:
    """One side of a comparison.

    Attributes:
        output: The output folder, as the user named it.
        where: Column -> value that selects its rows, besides the conditions for both sides; empty for all rows.
        rows: Its rows.
        unscorable: Status -> rows without a score. They count in no comparison and no rate.
        scored: Rows with a score.
        flagged: Scored rows with the verdict `hallucinated`.
        unmatched: Rows that match no row of the other side.
    """

    __pydantic_config__ = RECORD_CONFIG

    output: str
    where: dict[str, str]
    rows: int
    unscorable: dict[str, int]
    scored: int
    flagged: int
    unmatched: int


@dataclass(frozen=True)
class ShareDifference:
    """Share flagged on side B minus that on side A.

    Attributes:
        value: The difference, -1 to 1.
        low: Lower end of its 95 % interval.
        high: Upper end.
    """

    __pydantic_config__ = RECORD_CONFIG

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class PairedRate:
    """Verdicts of the same rows on both sides.

    Attributes:
        subset: Name of the subset: `all`, or a value of a column.
        rows: Compared rows: matched, and scored on both sides.
        both_flagged: Flagged on both sides.
        to_flagged: Supported on side A, flagged on side B.
        to_supported: Flagged on side A, supported on side B.
        both_supported: Supported on both sides.
        difference: Share flagged on side B minus side A, with Newcombe's paired interval.
        p_value: Two-sided mid-p value of McNemar's test.
    """

    __pydantic_config__ = RECORD_CONFIG

    subset: str
    rows: int
    both_flagged: int
    to_flagged: int
    to_supported: int
    both_supported: int
    difference: ShareDifference
    p_value: float

    @property
    def first_share(self) -> float:
        """Share flagged on side A."""
        return (self.both_flagged + self.to_supported) / self.rows

    @property
    def second_share(self) -> float:
        """Share flagged on side B."""
        return (self.both_flagged + self.to_flagged) / self.rows


@dataclass(frozen=True)
class ChangedRow:
    """A row that changed sides.

    Attributes:
        row_id: The user's id on side B.
        partition: Its partition on side B.
        first_row_id: The user's id on side A.
        first_partition: Its partition on side A.
        first_verdict: Verdict on side A.
        second_verdict: Verdict on side B.
        first_score: Score on side A.
        second_score: Score on side B.
        first_probability: P(supported) on side A; null without a calibration.
        second_probability: P(supported) on side B.
        question: Beginning of the question; null if the output has no texts.
    """

    __pydantic_config__ = RECORD_CONFIG

    row_id: str
    partition: str
    first_row_id: str
    first_partition: str
    first_verdict: str
    second_verdict: str
    first_score: float
    second_score: float
    first_probability: float | None
    second_probability: float | None
    question: str | None


@dataclass(frozen=True)
class RunComparison(Record):
    """Result of `compare`.

    Attributes:
        first: Side A.
        second: Side B.
        where: Column -> value that selects the rows of both sides.
        excluded: Rows that `where` excludes, on both sides.
        matched: Key by which rows were matched -> pairs.
        other_question: Pairs with one row_id, but another question: they are not matched.
        unscorable_pairs: Matched pairs with an unscorable row on either side.
        same_texts: Compared rows with equal question, context and response on both sides; null without texts.
        overall: The compared rows; null if there are none.
        slices: Column -> the compared rows by its values on side B.
        all_rows: Difference of the shares of all scored rows, as of different rows; null if a side has none.
        changed_by: What the changed rows are sorted by: probability or score.
        changed: Rows that changed sides, the largest change first.
    """

    DESCRIPTION = "a comparison"

    first: ComparedSide
    second: ComparedSide
    where: dict[str, str]
    excluded: int
    matched: dict[str, int]
    other_question: int
    unscorable_pairs: int
    same_texts: int | None
    overall: PairedRate | None
    slices: dict[str, list[PairedRate]]
    all_rows: ShareDifference | None
    changed_by: str
    changed: list[ChangedRow]
