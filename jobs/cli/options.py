"""Options that several commands have, and what they say together."""

from enum import StrEnum
from typing import Annotated

import typer

from ragassay.jobs.cli import errors
from ragassay.jobs.cli.console import DRIFT_EXIT
from ragassay.jobs.config.evaluation import EvaluationConfig
from ragassay.jobs.evaluation.labels import LabelSource, is_lines
from ragassay.jobs.output.partition_filter import parse_conditions
from ragassay.jobs.scoring.backfill import Backfill, ScoringOrder
from ragassay.pipeline.errors import ConfigError
from ragassay.schemas.columns import HALLUCINATED, SUPPORTED

LABEL = "label"
"""Where a reviewers' JSON Lines hold their labels."""


class Verdict(StrEnum):
    """The two classes."""

    SUPPORTED = SUPPORTED
    HALLUCINATED = HALLUCINATED


Output = Annotated[str, typer.Argument(help="Output folder or URI: raw/, stats/, scored/ and manifest.json.")]
Config = Annotated[str | None, typer.Option("--config", help="Job file (YAML); every setting has a default.")]
FailOnDrift = Annotated[
    bool, typer.Option("--fail-on-drift", help=f"End with exit code {DRIFT_EXIT} where tonight has drifted from its history.")
]
Partitions = Annotated[
    list[str] | None,
    typer.Option(
        "--partitions",
        metavar="CONDITIONS",
        help='Score only partitions whose hive keys fulfil this, such as "dt>=2026-11-01 and tenant!=test"; can be repeated.',
    ),
]
FileOrder = Annotated[
    ScoringOrder, typer.Option("--order", help="Which files are scored first: by their partitions, or by their paths.")
]
BudgetRows = Annotated[
    int | None,
    typer.Option("--budget-rows", min=1, help="Score at most so many rows, in whole files; the same command goes on."),
]
BudgetHours = Annotated[
    float | None,
    typer.Option(
        "--budget-hours", min=0, help="Begin no more rows so many hours after the start; the same command goes on after them."
    ),
]
SampleShare = Annotated[
    float,
    typer.Option(
        "--sample", min=0, max=1, help="Score this share of the rows, above 0, chosen by a hash of their ids; 1: all."
    ),
]
Label = Annotated[
    str | None,
    typer.Option("--label", help="Column of the labels: booleans, or correct, partial, wrong; null is no label."),
]
Labels = Annotated[
    str | None,
    typer.Option(
        "--labels",
        help="File of reviewers: JSON Lines of the review page (FILE.jsonl), Label Studio's JSON export (FILE.json), or "
        "Parquet with row_id and the label column, such as flagged rows that they filled in.",
    ),
]
TrueMeans = Annotated[
    Verdict | None, typer.Option("--true-means", help="What true in the label column says of a response, if its name does not.")
]
IgnoreLabel = Annotated[list[str] | None, typer.Option("--ignore-label", help="A label that counts as none; can be repeated.")]
SentenceLabels = Annotated[
    str | None,
    typer.Option(
        "--sentence-labels",
        help="Column of labelled sentences (start, end, supported) or unsupported spans (start, end); taken from "
        "sentence_labels or spans where there is one.",
    ),
]
Where = Annotated[
    list[str] | None,
    typer.Option("--where", metavar="COLUMN=VALUE", help="Look only at rows such as split=train; can be repeated."),
]
Group = Annotated[
    str | None,
    typer.Option("--group", help="Column of the item that a row belongs to (item if it is there, else the context)."),
]
Slices = Annotated[list[str] | None, typer.Option("--slice", help="Look at each value of this column; can be repeated.")]
Everything = Annotated[
    bool, typer.Option("--all", help="Print every score, metric and comparison, not only the ten lines read first.")
]
Resamples = Annotated[
    int | None,
    typer.Option("--resamples", min=0, help="Bootstrap resamples per confidence interval; 0 for none. By default 1000."),
]


def label_source(
    label: str | None,
    labels: str | None,
    true_means: Verdict | None,
    ignore_label: list[str] | None,
    sentence_labels: str | None,
    where: list[str] | None,
    defaults: EvaluationConfig = EvaluationConfig(),  # noqa: B008
) -> LabelSource | None:
    """Return where the labels of a command come from; None if no labels are named.

    Args:
        label: The option --label.
        labels: The option --labels.
        true_means: The option --true-means.
        ignore_label: The options --ignore-label.
        sentence_labels: The option --sentence-labels.
        where: The options --where.
        defaults: Settings that count if an option is not given; files that state what their labels mean need none.

    Raises:
        ConfigError: They do not go together.
    """
    if labels is not None and is_lines(labels):
        if label not in (None, LABEL) or true_means or ignore_label or sentence_labels:
            raise ConfigError(errors.LABELS_SAY_IT, labels=labels)
        return LabelSource(LABEL, where=conditions(where), file=labels)
    if label is None and labels is not None:
        raise ConfigError(errors.LABELS_WITHOUT_LABEL)
    if label is None:
        return None
    meaning = true_means.value if true_means else defaults.true_means
    ignored, sentences = frozenset(ignore_label or defaults.ignore), sentence_labels or defaults.sentence_labels
    return LabelSource(label, meaning, ignored, sentences, conditions(where), labels)


def conditions(where: list[str] | None) -> dict[str, str]:
    """Column -> value, of the options --where.

    Raises:
        ConfigError: One is not COLUMN=VALUE.
    """
    pairs = {}
    for condition in where or []:
        name, sign, value = condition.partition("=")
        if not (name and sign):
            raise ConfigError(errors.WHERE_SYNTAX, condition=condition)
        pairs[name] = value
    return pairs


def backfill_of(
    partitions: list[str] | None, order: ScoringOrder, rows: int | None, hours: float | None, share: float
) -> Backfill:
    """What the backfill options of a command say.

    Raises:
        ConfigError: One can't be read, or the share is 0.
    """
    if share <= 0:
        raise ConfigError(errors.EMPTY_SAMPLE)
    return Backfill(parse_conditions(partitions or []), order, rows, hours, share)


def needed(source: LabelSource | None) -> LabelSource:
    """The source of the labels.

    Raises:
        ConfigError: None was named.
    """
    if source is None:
        raise ConfigError(errors.NO_LABELS)
    return source
