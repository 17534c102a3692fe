"""The result of `evaluate`: verdicts and scores against labels, as versioned JSON."""

from dataclasses import dataclass, field

from ragassay.schemas.versioned import RECORD_CONFIG, Record


@dataclass(frozen=True)
class MetricValue:
    """Value of a metric.

    Attributes:
        value: The value, 0 to 1.
        low: Lower end of its bootstrap 95 % interval; None if no interval was computed.
        high: Upper end.
        threshold: tau at which the value is reached (supported if score > tau); None for a metric without a threshold.
    """

    __pydantic_config__ = RECORD_CONFIG

    value: float
    low: float | None = None
    high: float | None = None
    threshold: float | None = None


@dataclass(frozen=True)
class FlagQuality:
    """How well flags find what is wrong.

    Attributes:
        name: The rule that flags: the verdicts, or a trivial baseline by its name.
        flagged: Flagged rows.
        measures: precision, recall, f1 and balanced_accuracy of the flags, with 95 % intervals. precision is null if nothing is
            flagged; the others are null if everything labeled is flagged, because then nothing labeled can be missed.
    """

    __pydantic_config__ = RECORD_CONFIG

    name: str
    flagged: int
    measures: dict[str, MetricValue | None]


@dataclass(frozen=True)
class FlagTable:
    """Flags against labels: the 2x2 table, its measures, and those of trivial baselines on the same rows.

    Attributes:
        unit: responses or sentences.
        flagged_wrong: Flagged, and labeled wrong: right flags.
        flagged_correct: Flagged, but labeled correct: false alarms.
        missed: Not flagged, but labeled wrong.
        passed: Not flagged, and labeled correct.
        unscorable: Labeled rows without a score, which count nowhere else.
        wrong_means: Labels that count as wrong, the positive class.
        verdicts: Quality of the stored verdicts.
        baselines: Quality of trivial baselines. Those with a score flag as many rows as the verdicts do.
    """

    __pydantic_config__ = RECORD_CONFIG

    unit: str
    flagged_wrong: int
    flagged_correct: int
    missed: int
    passed: int
    unscorable: int
    wrong_means: list[str]
    verdicts: FlagQuality
    baselines: list[FlagQuality]


@dataclass(frozen=True)
class Difference:
    """AUROC of a score minus that of a reference score, on the rows that have both.

    Attributes:
        name: The score.
        rows: Rows that have both scores.
        value: The difference, -1 to 1; above 0 the score is better than the reference.
        low: Lower end of the bootstrap 95 % interval, from resamples that both share; null if none could be drawn.
        high: Upper end.
    """

    __pydantic_config__ = RECORD_CONFIG

    name: str
    rows: int
    value: float
    low: float | None
    high: float | None

    @property
    def is_significant(self) -> bool | None:
        """Whether the interval excludes 0; None without an interval."""
        return None if self.low is None or self.high is None else self.low > 0 or self.high < 0


@dataclass(frozen=True)
class ScoreMeasures:
    """Quality of one score in a comparison.

    Attributes:
        name: The score.
        rows: Responses (or sentences) that have it.
        measures: Metric -> its value; empty if those rows are of one class only.
    """

    __pydantic_config__ = RECORD_CONFIG

    name: str
    rows: int
    measures: dict[str, MetricValue]


@dataclass(frozen=True)
class Comparison:
    """All scores on the same rows.

    Attributes:
        name: The two classes.
        positives: Rows of the positive class.
        negatives: Rows of the negative class.
        scores: One entry per score.
    """

    __pydantic_config__ = RECORD_CONFIG

    name: str
    positives: int
    negatives: int
    scores: list[ScoreMeasures]


@dataclass(frozen=True)
class Slice:
    """Stored scores and verdicts on the rows with one value of a column.

    Attributes:
        column: The column.
        value: Its value.
        rows: Labeled responses.
        correct: Share of them that are correct.
        flagged: Share of them with the verdict hallucinated.
        auroc: Correct against all others; null if a class is missing.
    """

    __pydantic_config__ = RECORD_CONFIG

    column: str
    value: str
    rows: int
    correct: float
    flagged: float
    auroc: MetricValue | None


@dataclass(frozen=True)
class NormalizationCheck:
    """Normalization check: mu and sigma of one half of the data against those of the other half.

    Attributes:
        split: How the data was halved: by partition or by item; or why it was not.
        fits: Member -> mu and sigma of the two halves.
        changed_verdicts: Share of the labeled responses whose verdict differs between the halves; null if the data was not
            halved.
    """

    __pydantic_config__ = RECORD_CONFIG

    split: str
    fits: dict[str, list[dict[str, float]]]
    changed_verdicts: float | None


@dataclass(frozen=True)
class Histogram:
    """Distribution of a score for each label (the paper's Figures 6 and 7).

    Attributes:
        name: The score's name in the comparisons.
        edges: Edges of the bins; values outside count in the first or the last bin.
        counts: Label -> responses per bin.
        threshold: Stored tau, if it applies to this score and is the same for all rows; else null.
    """

    __pydantic_config__ = RECORD_CONFIG

    name: str
    edges: list[float]
    counts: dict[str, list[int]]
    threshold: float | None


@dataclass(frozen=True)
class CascadePoint:
    """Quality and cost at one share.

    Attributes:
        share: Share of the responses that the judge decides, rounded down to whole responses.
        escalated: Number of these responses.
        tokens: Tokens that the judge took for them, including reused ones.
        measures: Metric (CASCADE_METRICS) -> its value, with the interval of paired resamples.
    """

    __pydantic_config__ = RECORD_CONFIG

    share: float
    escalated: int
    tokens: int
    measures: dict[str, MetricValue]


@dataclass(frozen=True)
class CascadeCurve:
    """Quality by cost, from a judge that decides nothing to one that decides everything.

    Attributes:
        judge: Name of the judge.
        when: The escalation order: uncertainty, or a member.
        rows: Labeled responses that have both an ensemble score and a judge's score.
        labeled: Labeled responses with an ensemble score.
        points: One point per share of `rows`, in that order.
        orders: Order (uncertainty, the members, random as the mean over seeds) -> metric -> its value at each share.
        sufficient_share: Metric -> the smallest share that is not significantly worse than any larger share: no paired
            difference has a 95 % interval above 0. Null without resamples.
    """

    __pydantic_config__ = RECORD_CONFIG

    judge: str
    when: str
    rows: int
    labeled: int
    points: list[CascadePoint]
    orders: dict[str, dict[str, list[float]]]
    sufficient_share: dict[str, float | None]


@dataclass(frozen=True)
class Evaluation(Record):
    """Result of `evaluate`.

    Attributes:
        created: UTC, ISO 8601.
        label: Column of the labels.
        labels: Rows by label.
        where: Column -> value that a row must have; empty for all rows.
        excluded: Rows that `where` excludes.
        unlabeled: Rows that the labels do not name.
        undecided: Scored rows in a label file without a label of the response: unsure, or labels of some sentences only.
        unscored: Unscorable rows that the labels name.
        unmatched: Rows of a label file that the output does not have.
        groups: Items (or contexts) that the bootstrap resamples.
        grouped_by: Column whose equal values are one item, or "context".
        resamples: Bootstrap resamples.
        flags: Verdicts of responses against labels.
        sentence_flags: Flags of sentences against labels; null without sentence labels of both classes.
        comparisons: Responses: correct against wrong, against partial, against both.
        sentences: Sentences, supported against unsupported; null without sentence labels.
        slices: The stored scores on parts of the rows.
        normalization: How much verdicts depend on which half mu and sigma come from.
        histograms: The ensemble, the whole response, and the geometric and the harmonic mean, by label.
        cascade: Quality by cost, from a judge that decides nothing to one that decides everything; null if not measured.
        differences: Comparison -> AUROC of each other score minus the ensemble's: for the last comparison of responses, and
            for sentences.
    """

    DESCRIPTION = "an evaluation"

    created: str
    label: str
    labels: dict[str, int]
    where: dict[str, str]
    excluded: int
    unlabeled: int
    undecided: int
    unscored: int
    unmatched: int
    groups: int
    grouped_by: str
    resamples: int
    flags: FlagTable
    sentence_flags: FlagTable | None
    comparisons: list[Comparison]
    sentences: Comparison | None
    slices: list[Slice]
    normalization: NormalizationCheck
    histograms: list[Histogram]
    cascade: CascadeCurve | None = None
    differences: dict[str, list[Difference]] = field(default_factory=dict)
