"""Print the results of `evaluate`: a table per comparison and per sliced column."""

from collections.abc import Sequence

from rich.console import Console

from ragassay.jobs.display.text_table import (
    TextTable,
    print_table,
)
from ragassay.jobs.evaluation.labeled_responses import UNEQUAL_SAMPLING
from ragassay.jobs.report.printed.cascade import print_cascade
from ragassay.jobs.report.printed.measures import format_measure
from ragassay.schemas.evaluation import Comparison, Evaluation, Slice

METRIC_COLUMNS = {
    "auroc": "AUROC",
    "best_f1": "best F1",
    "best_precision": "precision, recall ≥ 0.5",
    "average_precision": "average precision",
    "best_f1_hallucinated": "F1, hallucinated",
    "average_precision_hallucinated": "AP, hallucinated",
    "balanced_accuracy": "balanced accuracy",
}


def make_evaluation_tables(evaluation: Evaluation) -> list[TextTable]:
    """Make a table per comparison (a line per score, a column per metric), then one per sliced column."""
    comparisons = [*evaluation.comparisons, *([evaluation.sentences] if evaluation.sentences else [])]
    return [*map(_make_comparison_table, comparisons), *_make_slice_tables(evaluation)]


def _make_slice_tables(evaluation: Evaluation) -> list[TextTable]:
    columns = dict.fromkeys(part.column for part in evaluation.slices)
    return [_make_slice_table([part for part in evaluation.slices if part.column == column]) for column in columns]


def describe_unequal_sampling(label: str | None) -> str | None:
    """Describe the effect of unequal sampling, if the label description states it; else None."""
    if label is None or f"({UNEQUAL_SAMPLING}" not in label:
        return None
    return (
        "The labels have unequal inclusion probabilities, as in a stratified sample: AUROC, precision, shares and thresholds "
        "describe the sample, not the logs. `ragassay estimate` weights by the probabilities."
    )


def describe_evaluation(evaluation: Evaluation) -> str:
    """Describe the labels that the tables are based on."""
    labels = ", ".join(f"{n:,} {label}" for label, n in sorted(evaluation.labels.items()))
    text = (
        f"{evaluation.label}: {sum(evaluation.labels.values()):,} labeled responses ({labels}) of {evaluation.groups:,} "
        f"different {evaluation.grouped_by}s; "
        f"{evaluation.unlabeled:,} rows without a label, {evaluation.undecided:,} looked at without getting one, "
        f"{evaluation.unscored:,} labeled rows that are unscorable."
    )
    if evaluation.unmatched:
        text += f" {evaluation.unmatched:,} labels of the file match no row of this output."
    if evaluation.where:
        conditions = ", ".join(f"{name} = {value}" for name, value in evaluation.where.items())
        text += f" Only rows with {conditions}; {evaluation.excluded:,} other rows excluded."
    if note := describe_unequal_sampling(evaluation.label):
        text += f" {note}"
    if not evaluation.resamples:
        return text
    return (
        f"{text} In brackets: bootstrap 95 % intervals, {evaluation.resamples:,} resamples of whole {evaluation.grouped_by}s. "
        "F1 and precision are those of the best threshold on the same rows; balanced accuracy is that of the verdicts."
    )


def print_evaluation(evaluation: Evaluation, console: Console) -> None:
    """Print every comparison as a table, then slices, the normalization check and the cascade; no line is wider than the
    console.
    """
    console.print(describe_evaluation(evaluation), markup=False, soft_wrap=False)
    for table in make_evaluation_tables(evaluation):
        print_table(table, console)
    console.print(describe_normalization(evaluation), markup=False, soft_wrap=False)
    print_cascade(evaluation, console)


def print_unequal_sampling(label: str | None, console: Console) -> None:
    """Print a note if the labels were sampled unequally."""
    if text := describe_unequal_sampling(label):
        console.print(f"note: {text}", markup=False)


def print_slices(evaluation: Evaluation, console: Console) -> None:
    """Print the slices."""
    for table in _make_slice_tables(evaluation):
        print_table(table, console)


def _make_comparison_table(comparison: Comparison) -> TextTable:
    metrics = [name for name in METRIC_COLUMNS if any(name in line.measures for line in comparison.scores)]
    row_count = comparison.positives + comparison.negatives
    rows = []
    for line in comparison.scores:
        name = line.name if line.rows == row_count else f"{line.name} ({line.rows:,} rows)"
        rows.append(
            [name, *(format_measure(line.measures.get(metric), with_threshold=metric == "best_f1") for metric in metrics)]
        )
    title = f"{comparison.name}: {comparison.positives:,} and {comparison.negatives:,} rows"
    return TextTable(title, ["score", *(METRIC_COLUMNS[name] for name in metrics)], rows)


def _make_slice_table(slices: Sequence[Slice]) -> TextTable:
    rows = [[p.value, f"{p.rows:,}", f"{p.correct:.1%}", f"{p.flagged:.1%}", format_measure(p.auroc) or "n.a."] for p in slices]
    return TextTable(f"by {slices[0].column}", [slices[0].column, "rows", "correct", "flagged", "AUROC"], rows)


def describe_normalization(evaluation: Evaluation) -> str:
    """Describe the normalization check in a sentence."""
    check = evaluation.normalization
    if check.changed_verdicts is None:
        return f"normalization check: {check.split}"
    fits = "; ".join(
        f"{name} mu {a['mu']:.4g} and {b['mu']:.4g}, sigma {a['sigma']:.4g} and {b['sigma']:.4g}"
        for name, (a, b) in check.fits.items()
    )
    return (
        f"normalization check ({check.split}): {fits}; {check.changed_verdicts:.1%} of the verdicts differ between the halves"
    )
