"""Print the results of `evaluate`, `calibrate`, `drift`, `compare`, `estimate`, `agreement` and `export`."""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.text import Text

from ragassay.jobs.display.drift import METRIC_WORDS, describe_drift
from ragassay.jobs.display.lines import print_lines
from ragassay.jobs.display.text_table import (
    TextTable,
    fit_table,
    format_number,
    make_rich_table,
    print_table,
    shorten,
    to_one_line,
)
from ragassay.jobs.display.visible import clip_line
from ragassay.jobs.evaluation.agreement import ReviewerPair, format_disagreements
from ragassay.jobs.evaluation.cascade import CASCADE_METRICS, list_order_values
from ragassay.jobs.evaluation.compare_members import ComparedResponse, MemberComparison, MemberFlags
from ragassay.jobs.evaluation.evaluate import (
    ALONE_SUFFIX,
    AS_CASCADE,
    AS_FINALIZED,
    BASELINE_PREFIX,
    ENSEMBLE,
    JUDGE_PREFIX,
)
from ragassay.jobs.evaluation.labeled_responses import UNEQUAL_SAMPLING
from ragassay.jobs.export.command import ExportResult
from ragassay.jobs.report.flag_tables import print_flags
from ragassay.pipeline.calibration.target import CLASSES
from ragassay.schemas.calibration import Calibration
from ragassay.schemas.estimate import Estimate, RateRecord, ShareRecord
from ragassay.schemas.evaluation import CascadeCurve, Comparison, Difference, Evaluation, MetricValue, Slice
from ragassay.schemas.manifest import DriftCheck

METRIC_COLUMNS = {
    "auroc": "AUROC",
    "best_f1": "best F1",
    "best_precision": "precision, recall ≥ 0.5",
    "average_precision": "average precision",
    "best_f1_hallucinated": "F1, hallucinated",
    "average_precision_hallucinated": "AP, hallucinated",
    "balanced_accuracy": "balanced accuracy",
}
CASCADE_COLUMNS = {"balanced_accuracy": "balanced accuracy", "f1_hallucinated": "F1, hallucinated", "auroc": "AUROC"}
HEADLINE_LINES = 10
LABEL_WIDTH = 40
CASCADE, LENGTH, OVERLAP = "cascade", "length", "overlap"
SHORT_NAMES = {
    AS_FINALIZED: ENSEMBLE,
    ENSEMBLE: ENSEMBLE,
    AS_CASCADE: CASCADE,
    f"{BASELINE_PREFIX}shorter response": LENGTH,
    f"{BASELINE_PREFIX}shorter sentence": LENGTH,
    f"{BASELINE_PREFIX}words in context": OVERLAP,
}
TEXT_WIDTH = 100  # characters
MAX_DISAGREEMENTS = 20
"""Disagreements that are printed; a file contains all."""


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
        f"{evaluation.unlabeled:,} rows without a label, {evaluation.unscored:,} labeled rows that are unscorable."
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
    _print_text(describe_evaluation(evaluation), console)
    for table in make_evaluation_tables(evaluation):
        print_table(table, console)
    _print_text(describe_normalization(evaluation), console)
    print_cascade(evaluation, console)


def print_unequal_sampling(label: str | None, console: Console) -> None:
    """Print a note if the labels were sampled unequally."""
    if text := describe_unequal_sampling(label):
        console.print(f"note: {text}", markup=False)


def print_slices(evaluation: Evaluation, console: Console) -> None:
    """Print the slices."""
    for table in _make_slice_tables(evaluation):
        print_table(table, console)


def print_cascade(evaluation: Evaluation, console: Console) -> None:
    """Print the cascade's quality by cost, if it was measured."""
    if evaluation.cascade is not None:
        for table in make_cascade_tables(evaluation.cascade):
            print_table(table, console)
        _print_text(describe_cascade(evaluation.cascade), console)


def _print_text(text: str, console: Console) -> None:
    console.print(text, markup=False, soft_wrap=False)


def make_cascade_tables(curve: CascadeCurve) -> list[TextTable]:
    """Make a table of quality and cost at each share, in the cascade's order; then one of balanced accuracy in every order."""
    names = [CASCADE_COLUMNS[metric] for metric in CASCADE_METRICS]
    orders = list_order_values(curve, "balanced_accuracy")
    return [
        TextTable(
            f"cascade: {curve.judge} decides a share of {curve.rows:,} responses, by {curve.when}",
            ["share", "escalated", "tokens", *names],
            [
                [
                    f"{p.share:.0%}",
                    f"{p.escalated:,}",
                    f"{p.tokens:,}",
                    *(_format_measure(p.measures[metric]) for metric in CASCADE_METRICS),
                ]
                for p in curve.points
            ],
        ),
        TextTable(
            "balanced accuracy, by the escalation order",
            ["share", *(clip_line(name, 12) for name in orders)],
            [[f"{p.share:.0%}", *(f"{values[i]:.3f}" for values in orders.values())] for i, p in enumerate(curve.points)],
        ),
    ]


def describe_cascade(curve: CascadeCurve) -> str:
    """Describe how much of the judge is enough, and what the curve leaves out."""
    sufficient = [
        f"{CASCADE_COLUMNS[metric]} {share:.0%}" for metric, share in curve.sufficient_share.items() if share is not None
    ]
    lines = []
    if sufficient:
        lines.append(
            "Smallest share that no larger share beats significantly (paired 95 % intervals):\n" + "; ".join(sufficient)
        )
    if curve.rows < curve.labeled:
        share = f"{curve.rows / curve.labeled:.0%}"
        lines.append(
            f"{curve.judge} has decided {curve.rows:,} of {curve.labeled:,} labeled responses; the curve covers only those,\n"
            f"{share} of all. `escalation.share: 1` on the labeled rows gives the whole curve."
        )
    lines.append("AUROC is that of (value - threshold) / standard deviation, of the ensemble or the judge, whichever decides.")
    return "\n".join(lines)


def _make_comparison_table(comparison: Comparison) -> TextTable:
    metrics = [name for name in METRIC_COLUMNS if any(name in line.measures for line in comparison.scores)]
    row_count = comparison.positives + comparison.negatives
    rows = []
    for line in comparison.scores:
        name = line.name if line.rows == row_count else f"{line.name} ({line.rows:,} rows)"
        rows.append(
            [name, *(_format_measure(line.measures.get(metric), with_threshold=metric == "best_f1") for metric in metrics)]
        )
    title = f"{comparison.name}: {comparison.positives:,} and {comparison.negatives:,} rows"
    return TextTable(title, ["score", *(METRIC_COLUMNS[name] for name in metrics)], rows)


def _make_slice_table(slices: Sequence[Slice]) -> TextTable:
    rows = [[p.value, f"{p.rows:,}", f"{p.correct:.1%}", f"{p.flagged:.1%}", _format_measure(p.auroc)] for p in slices]
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


def _format_measure(measure: MetricValue | None, *, with_threshold: bool = False) -> str:
    """Format a value with its interval, and on request its threshold."""
    if measure is None:
        return ""
    text = f"{measure.value:.3f}"
    if with_threshold and measure.threshold is not None:
        text += f" at {measure.threshold:.3g}"
    if measure.low is not None and measure.high is not None:
        text += f" [{measure.low:.2f}–{measure.high:.2f}]"
    return text


def print_calibration(calibration: Calibration, console: Console) -> None:
    """Print a calibration and its measured quality."""
    print_lines(_calibration_lines(calibration), console)
    print_unequal_sampling(calibration.label, console)


def _calibration_lines(calibration: Calibration) -> Iterator[tuple[str, str]]:
    outcome = {None: "", True: ": met", False: ": TARGET NOT MET"}[calibration.target_met]
    yield "calibration", f"{calibration.calibration_id}, for {calibration.target}{outcome}"
    if calibration.label is not None:
        rows = ", ".join(f"{n:,} {label}" for label, n in sorted(calibration.rows.items()))
        yield "labels", f"{calibration.label}: {rows}"
    yield "threshold", f"{calibration.threshold:.6g}"
    weights = ", ".join(f"{name} {member.weight:.3g}" for name, member in calibration.members.items())
    yield "rule", f"{calibration.mean} mean, {calibration.positive} (epsilon {calibration.epsilon:g}), weights {weights}"
    for prefix, measured_on in (("in_sample_", "on the labeled rows"), ("held_out_", "on held-out items")):
        measures = {k.removeprefix(prefix): v for k, v in calibration.measured.items() if k.startswith(prefix)}
        if measures:
            yield measured_on, _describe_measures(measures, calibration.positive_class)
    if calibration.measured.get("flagged_of_all") is not None:
        yield (
            "on all rows",
            f"{calibration.measured['flagged_of_all']:.1%} of {calibration.measured['responses']:,.0f} responses flagged",
        )
    if calibration.certificate is not None:
        certificate = calibration.certificate
        yield (
            "certified",
            f"precision >= {certificate.precision:g}, wrong with probability at most {certificate.delta:g}: "
            f"{certificate.correct} of the {certificate.selected} selected rows are {calibration.positive_class} "
            f"(lower bound {certificate.bound:.3f})",
        )
    if calibration.probability is not None:
        before, after = calibration.measured.get("ece_before"), calibration.measured.get("ece_after")
        errors = [
            f"{v:.3f} {moment}" for v, moment in ((before, "before"), (after, "after, on held-out items")) if v is not None
        ]
        yield "P(supported)", f"{calibration.probability.kind}; expected calibration error {', '.join(errors) or 'unknown'}"


def _describe_measures(measures: Mapping[str, float | None], positive_class: str) -> str:
    """Describe a threshold on labeled rows; the names of the measures are those of targets."""
    kind = next(name for name, value in CLASSES.items() if value == positive_class)
    parts = []
    for name, total in (("precision", "selected"), ("recall", "positives")):
        value, counts = measures[name], f"{measures['hits']:,.0f} of {measures[total]:,.0f}"
        parts.append(f"{kind}-{name} {'none' if value is None else format(value, '.3f')} ({counts})")
    f1 = measures["f1"]
    parts.append(f"{kind}-f1 {'none' if f1 is None else format(f1, '.3f')}")
    return f"{', '.join(parts)}, {measures['flagged']:.1%} flagged"


def print_drift(check: DriftCheck, console: Console) -> None:
    """Print every comparison of the latest partition with its history."""
    console.print(escape(f"drift  {describe_drift(check)}"))
    if not check.shifts:
        return
    rows = [
        [
            METRIC_WORDS.get(shift.metric, shift.metric),
            shift.member or "",
            format_number(shift.latest, ".4g"),
            format_number(shift.history, ".4g"),
            format_number(shift.distance, ".4g"),
            format_number(shift.limit, "g"),
            "drifted" if shift.drifted else "",
        ]
        for shift in check.shifts
    ]
    print_table(TextTable("", ["metric", "member", "latest", "history", "distance", "limit", ""], rows), console)


def print_export(result: ExportResult, dest: str, console: Console) -> None:
    """Print the number of rows written, and why other rows were omitted."""
    omitted = ", ".join(f"{n:,} {why}" for why, n in sorted(result.omitted.items(), key=lambda item: -item[1]))
    console.print(
        f"{result.written:,} written to {dest}, from {result.used:,} of {result.rows:,} rows"
        + (f"; omitted: {omitted}" if omitted else ""),
        markup=False,
    )


def make_member_tables(comparison: MemberComparison) -> list[TextTable]:
    """Make tables: what each member flags, how often each two agree, and the responses that any member flags."""
    with_labels = any(member.true_flags is not None for member in comparison.members)
    names = [member.name for member in comparison.members]
    agreements = [[a, *(format_number(comparison.agreement.get((a, b)), ".0%") for b in names[1:])] for a in names[:-1]]
    flagged = [row for row in comparison.responses if any(row.flags.values())]
    header = ["member", "flags below", "flagged", "no value"]
    return [
        TextTable(
            f"flags of each member in the latest {len(comparison.responses)} responses",
            [*header, "of those wrong", "share of wrong flagged"] if with_labels else header,
            [_make_member_row(member, len(comparison.responses), with_labels) for member in comparison.members],
        ),
        TextTable("agreement", ["", *names[1:]], agreements),
        TextTable(
            f"responses that any member flags: {len(flagged)} (x = flagged, ? = no value)",
            ["row", *names, *(["label"] if with_labels else []), "question", "not in the context"],
            [_make_response_row(row, names, with_labels) for row in flagged],
        ),
    ]


def _make_member_row(member: MemberFlags, rows: int, with_labels: bool) -> list[str]:
    row = [member.name, format_number(member.below, "g"), f"{member.flagged} of {rows}", str(member.without_value)]
    if with_labels:
        row += [f"{member.true_flags} of {member.labeled_flags}", format_number(member.recall, ".0%")]
    return row


def _make_response_row(response: ComparedResponse, names: Sequence[str], with_labels: bool) -> list[str]:
    marks = ["?" if response.flags[name] is None else "x" if response.flags[name] else "" for name in names]
    label = [response.label.value if response.label else ""] if with_labels else []
    return [
        response.row_id,
        *marks,
        *label,
        clip_line(response.question, 40),
        clip_line("; ".join(response.missing), 60),
    ]


def describe_comparison(comparison: MemberComparison) -> str:
    """Describe which member flags most, and which is right most often."""
    alone = [member for member in comparison.members if member.below is not None]
    most = max(alone, key=lambda member: member.flagged)
    flagged_by_all = sum(all(row.flags[member.name] for member in alone) for row in comparison.responses)
    text = (
        f"{most.name} flags most responses, {most.flagged} of {len(comparison.responses)}; all members flag {flagged_by_all}."
    )
    with_labels = [member for member in alone if member.true_flags is not None and member.labeled_flags]
    if with_labels:
        best = max(with_labels, key=lambda member: (member.true_flags or 0) / member.labeled_flags)
        text += (
            f" By the labels, {best.name} is right most often: {best.true_flags} of its {best.labeled_flags} labeled flags are "
            "wrong responses."
        )
    return text


def print_comparison(comparison: MemberComparison, console: Console) -> None:
    """Print the comparison of members."""
    for table in make_member_tables(comparison):
        print_table(table, console)
    console.print(describe_comparison(comparison), markup=False)


@dataclass(frozen=True)
class _ScoreLevel:
    """Responses or sentences: AUROC of each score, and its difference from the ensemble's."""

    aurocs: Mapping[str, MetricValue]
    differences: Mapping[str, Difference]


def print_headline(evaluation: Evaluation, console: Console) -> None:
    """Print the quality of the flags, of responses and of sentences, then the comparison of scores."""
    print_flags(evaluation.flags, console)
    if evaluation.sentence_flags is not None:
        print_flags(evaluation.sentence_flags, console)
    print_scores(evaluation, console)


def print_scores(evaluation: Evaluation, console: Console) -> None:
    """Print AUROC of the scores in at most ten lines; it fits 80 columns unless names are long."""
    lines, table = make_headline(evaluation, console.width)
    for line in lines:
        console.print(Text(line))
    for part in fit_table(table, console.width):
        console.print(make_rich_table(part, rule=False))


def make_headline(evaluation: Evaluation, width: int) -> tuple[list[str], TextTable]:
    """Make the comparison of scores: a line or two on the labels, and a table; together at most ten lines.

    Args:
        evaluation: The evaluation.
        width: Columns of the terminal.
    """
    lines = textwrap.wrap(_describe_basis(evaluation), width)
    lines = [*lines[:1], *([shorten(" ".join(lines[1:]), width)] if lines[1:] else [])]
    levels = {"responses": _make_level(evaluation, evaluation.comparisons[-1])}
    if evaluation.sentences is not None:
        levels["sentences"] = _make_level(evaluation, evaluation.sentences)
    responses = levels["responses"]
    names = [name for name in responses.aurocs if name not in (ENSEMBLE, LENGTH, OVERLAP)]
    names.sort(key=lambda name: (name.endswith(ALONE_SUFFIX), -_difference_of(responses, name)))  # the judges, then the members
    free_lines = HEADLINE_LINES - len(lines) - len(("header", ENSEMBLE, LENGTH, OVERLAP, "best"))
    shown = names if len(names) <= free_lines else names[: free_lines - 1]
    not_shown = names[len(shown) :]
    rows = [
        [_display_name(name, width // 6), *(_format_score(level, name) for level in levels.values())]
        for name in (ENSEMBLE, *shown)
    ]
    if not_shown:
        rows.append([f"{len(not_shown)} more", *(_format_range(level, not_shown) for level in levels.values())])
    rows += [[name, *(_format_score(level, name) for level in levels.values())] for name in (LENGTH, OVERLAP)]
    rows.append(["best", *(_describe_best(level, width // 9) for level in levels.values())])
    return lines, TextTable("", ["AUROC", *(f"{name}, against ensemble" for name in levels)], rows)


def _describe_basis(evaluation: Evaluation) -> str:
    labels = ", ".join(f"{n:,} {label}" for label, n in sorted(evaluation.labels.items()))
    excluded = [
        (evaluation.unlabeled, "rows without a label"),
        (evaluation.unscored, "labeled but unscorable"),
        (evaluation.unmatched, "labels that match no row"),
        (evaluation.excluded, "rows excluded by --where"),
    ]
    counts = "".join(f"; {number:,} {description}" for number, description in excluded if number)
    return f"{shorten(to_one_line(evaluation.label), LABEL_WIDTH)}: {labels}; --all prints the rest{counts}"


def _make_level(evaluation: Evaluation, comparison: Comparison) -> _ScoreLevel:
    """Collect the headline's scores, by short names."""
    return _ScoreLevel(
        {key: line.measures["auroc"] for line in comparison.scores if (key := _short_name(line.name)) and line.measures},
        {key: item for item in evaluation.differences.get(comparison.name, []) if (key := _short_name(item.name))},
    )


def _short_name(name: str) -> str | None:
    return SHORT_NAMES.get(name) or (name if name.endswith(ALONE_SUFFIX) or name.startswith(JUDGE_PREFIX) else None)


def _display_name(key: str, width: int) -> str:
    return shorten(key.removesuffix(ALONE_SUFFIX).removesuffix(", whole response"), width)


def _difference_of(level: _ScoreLevel, name: str) -> float:
    return level.differences[name].value if name in level.differences else 0.0


def _format_score(level: _ScoreLevel, name: str) -> str:
    """Format AUROC and its difference from the ensemble's; for the ensemble, its own interval."""
    auroc = level.aurocs.get(name)
    if auroc is None:
        return ""
    if name == ENSEMBLE:
        return f"{auroc.value:.3f}" + ("" if auroc.low is None else f"  [{auroc.low:.2f} to {auroc.high:.2f}]")
    difference = level.differences.get(name)
    if difference is None:
        return f"{auroc.value:.3f}"
    interval = "" if difference.low is None else f" [{difference.low:+.2f} to {difference.high:+.2f}]"
    return f"{auroc.value:.3f}  {difference.value:+.3f}{interval}"


def _format_range(level: _ScoreLevel, names: list[str]) -> str:
    values = [level.aurocs[name].value for name in names if name in level.aurocs]
    return f"{min(values):.3f} to {max(values):.3f}" if values else ""


def _describe_best(level: _ScoreLevel, width: int) -> str:
    """Describe the best score and its lead: over the ensemble, or the ensemble's over the next."""
    ranked = sorted(level.differences.items(), key=lambda item: -item[1].value)
    if not ranked:
        return ENSEMBLE
    name, difference = ranked[0]
    best = ENSEMBLE if difference.value <= 0 else _display_name(name, width)
    significance = {None: "", True: ", significant", False: ", not significant"}[difference.is_significant]
    return f"{best} by {abs(difference.value):.3f}{significance}"


def print_estimate(estimate: Estimate, path: str, console: Console) -> None:
    """Print the estimate and the two simpler ones, then its parts, then its notes."""
    print_lines(_estimate_lines(estimate), console)
    rates_by_slice = {"partition": estimate.partitions, **estimate.slices}
    for name, rates in rates_by_slice.items():
        if rates:
            header = ["", "rows", "labels", "hallucinated", "flagged", "from the labels alone"]
            rows = [
                [
                    rate.subset,
                    f"{rate.rows:,}",
                    f"{rate.labels:,}",
                    _format_share(rate.powered),
                    f"{rate.flagged:.1%}",
                    _format_share(rate.classical),
                ]
                for rate in rates
            ]
            print_table(TextTable(f"by {name}", header, rows), console)
    for note in estimate.notes:
        console.print(f"note: {note}.", markup=False)
    console.print(f"written to {path}", markup=False)


def _estimate_lines(estimate: Estimate) -> Iterator[tuple[str, str]]:
    rate = estimate.overall
    population = f"{rate.rows:,} scored responses"
    if rate.population is not None:
        population = f"about {rate.population:,.0f} responses, of which {rate.rows:,} were scored, a random sample"
    yield "hallucinated", f"{_format_share(rate.powered)} of {population}, by {rate.labels:,} labels and all verdicts"
    yield "flagged", f"{rate.flagged:.1%}, the share by the verdicts alone"
    yield (
        "labels alone",
        f"{_format_share(rate.classical)}: {rate.hallucinated:,} of {rate.labels:,} labeled responses are hallucinated",
    )
    yield "in brackets", f"{estimate.level:.0%} confidence intervals, for these responses only"
    if rate.more_labels is not None:
        yield "half as wide", _describe_more_labels(rate)
    if estimate.weighted:
        strata = f", {len(estimate.strata)} strata" if estimate.strata else ""
        yield "weights", f"1 / inclusion_probability of each labeled response{strata}"
    not_counted = {
        "responses looked at without getting a label": estimate.undecided,
        "labels of unscorable rows": estimate.labeled_unscored,
        "labels that match no row of this output": estimate.unmatched,
        "repeated lines": estimate.repeated,
        "unscorable rows": estimate.unscored,
        "rows excluded by --where": estimate.excluded,
    }
    text = "; ".join(f"{count:,} {description}" for description, count in not_counted.items() if count)
    if text:
        yield "not counted", text


def _describe_more_labels(rate: RateRecord) -> str:
    if rate.more_labels == rate.rows - rate.labels and rate.population is not None:
        return f"not even if all {rate.rows:,} scored responses are labeled: score a larger share of the rows"
    if rate.more_labels == rate.rows - rate.labels:
        return f"only if all {rate.rows:,} responses are labeled" if rate.more_labels else "all responses are labeled"
    return f"with about {rate.more_labels:,} more labels, drawn like these"


def _format_share(share: ShareRecord | None) -> str:
    return "no labels" if share is None else f"{share.value:.1%} [{share.low:.1%} to {share.high:.1%}]"


def print_agreement(comparisons: Sequence[ReviewerPair], disagreements: Sequence[Mapping[str, Any]], console: Console) -> None:
    """Print Cohen's kappa of every two reviewers, and the first disagreements."""
    rows_of_pairs = []
    for pair in comparisons:
        agreement = pair.agreement
        share = (
            f"{agreement.agreed:,} of {agreement.count:,}, {agreement.share:.1%} [{agreement.low:.1%} to {agreement.high:.1%}]"
            if agreement
            else ""
        )
        kappa = (
            "undefined: a single label"
            if agreement and agreement.kappa is None
            else format_number(agreement.kappa if agreement else None)
        )
        rows_of_pairs.append([pair.first, pair.second, pair.level, f"{pair.shared:,}", f"{pair.unsure:,}", share, kappa])
    print_table(
        TextTable("", ["reviewer", "reviewer", "items", "both looked at", "unsure", "agree", "kappa"], rows_of_pairs), console
    )
    if disagreements:
        title = f"disagreements: {len(disagreements):,}" + (
            f", the first {MAX_DISAGREEMENTS}" if len(disagreements) > MAX_DISAGREEMENTS else ""
        )
        rows_to_print = [
            [*cells, clip_line(text, TEXT_WIDTH)] for *cells, text in format_disagreements(disagreements[:MAX_DISAGREEMENTS])
        ]
        print_table(TextTable(title, ["row", "partition", "item", "labels", "text"], rows_to_print), console)
