"""What `evaluate`, `calibrate` and `drift` print."""

from collections.abc import Iterator, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ragassay.jobs.decide.cascade import CASCADE_METRICS, Cascade, shares_of
from ragassay.jobs.decide.compare import Compared, MemberFlags, Suspicion
from ragassay.jobs.decide.evaluate import Comparison, Evaluation, Slice
from ragassay.jobs.decide.export.run import Exported
from ragassay.jobs.decide.labelled import UNEVEN
from ragassay.jobs.decide.text_table import TextTable, print_table
from ragassay.jobs.lines import print_lines
from ragassay.pipeline.calibration.metrics import Measure
from ragassay.schemas.calibration import Calibration
from ragassay.schemas.manifest import DriftCheck

COLUMNS = {
    "auroc": "AUROC",
    "best_f1": "best F1",
    "best_precision": "precision, recall ≥ 0.5",
    "average_precision": "average precision",
    "best_f1_hallucinated": "F1, hallucinated",
    "average_precision_hallucinated": "AP, hallucinated",
    "balanced_accuracy": "balanced accuracy",
}

CASCADE_COLUMNS = {"balanced_accuracy": "balanced accuracy", "f1_hallucinated": "F1, hallucinated", "auroc": "AUROC"}


def evaluation_tables(found: Evaluation) -> list[TextTable]:
    """One table a comparison: a line a score, a column a metric; then one a sliced column."""
    comparisons = [*found.comparisons, *([found.sentences] if found.sentences else [])]
    return [*map(_comparison_table, comparisons), *_slice_tables(found)]


def _slice_tables(found: Evaluation) -> list[TextTable]:
    columns = dict.fromkeys(part.column for part in found.slices)
    return [_slices_table([part for part in found.slices if part.column == column]) for column in columns]


def uneven_text(label: str | None) -> str | None:
    """What figures are worth whose labels' name says that they were drawn unevenly; None where it does not."""
    if label is None or f"({UNEVEN}" not in label:
        return None
    return (
        "The labels were drawn unevenly (their inclusion probabilities differ, as in a stratified sample): AUROC, precision, "
        "shares and thresholds are of the sample and not of the logs; `ragassay estimate` weighs by them."
    )


def evaluation_text(found: Evaluation) -> str:
    """What the tables rest on."""
    labels = ", ".join(f"{n:,} {label}" for label, n in sorted(found.labels.items()))
    text = (
        f"{found.label}: {sum(found.labels.values()):,} labelled responses ({labels}) of {found.groups:,} different "
        f"{found.grouped_by}s; "
        f"{found.unlabelled:,} rows without a label, {found.unscored:,} labelled rows without a score."
    )
    if found.unmatched:
        text += f" {found.unmatched:,} labels of the file belong to no row of this output."
    if found.where:
        only = ", ".join(f"{name} = {value}" for name, value in found.where.items())
        text += f" Only rows with {only}; {found.elsewhere:,} others left out."
    if uneven := uneven_text(found.label):
        text += f" {uneven}"
    if not found.resamples:
        return text
    return (
        f"{text} In brackets: bootstrap 95 % intervals, {found.resamples:,} resamples of whole {found.grouped_by}s. F1 and "
        "precision are those of the best threshold, found on the same rows; balanced accuracy is that of the verdicts."
    )


def print_evaluation(found: Evaluation, console: Console) -> None:
    """Print every comparison as a table, then slices, the normalisation check and the cascade; no line is wider than the
    console."""
    _print_text(evaluation_text(found), console)
    for table in evaluation_tables(found):
        print_table(table, console)
    _print_text(normalisation_text(found), console)
    print_cascade(found, console)


def print_uneven(label: str | None, console: Console) -> None:
    """Print a line where the labels were drawn unevenly."""
    if text := uneven_text(label):
        console.print(f"note: {text}", markup=False)


def print_slices(found: Evaluation, console: Console) -> None:
    """Print the slices that were asked for."""
    for table in _slice_tables(found):
        print_table(table, console)


def print_cascade(found: Evaluation, console: Console) -> None:
    """Print the cascade's quality against its cost, if it was asked for."""
    if found.cascade is not None:
        for table in cascade_tables(found.cascade):
            print_table(table, console)
        _print_text(cascade_text(found.cascade), console)


def _print_text(text: str, console: Console) -> None:
    console.print(text, markup=False, soft_wrap=False)


def cascade_tables(found: Cascade) -> list[TextTable]:
    """Quality and cost at each share, in the cascade's own order; then balanced accuracy in that order and in others."""
    names = [CASCADE_COLUMNS[metric] for metric in CASCADE_METRICS]
    orders = shares_of(found, "balanced_accuracy")
    return [
        TextTable(
            f"the cascade: {found.judge} decides a share of {found.rows:,} responses, by {found.when}",
            ["share", "asked", "tokens", *names],
            [
                [f"{p.share:.0%}", f"{p.asked:,}", f"{p.tokens:,}", *(_cell(p.measures[metric]) for metric in CASCADE_METRICS)]
                for p in found.points
            ],
        ),
        TextTable(
            "balanced accuracy, by the order in which the judge is asked",
            ["share", *(_short(name, 12) for name in orders)],
            [[f"{p.share:.0%}", *(f"{values[i]:.3f}" for values in orders.values())] for i, p in enumerate(found.points)],
        ),
    ]


def cascade_text(found: Cascade) -> str:
    """How much of the judge is enough, and what the curve leaves out."""
    enough = [f"{CASCADE_COLUMNS[metric]} {share:.0%}" for metric, share in found.enough.items() if share is not None]
    lines = []
    if enough:
        lines.append(
            "Smallest share from which on no larger one is better beyond the noise (paired 95 % intervals):\n"
            + "; ".join(enough)
        )
    if found.rows < found.labelled:
        share = f"{found.rows / found.labelled:.0%}"
        lines.append(
            f"{found.judge} has decided {found.rows:,} of {found.labelled:,} labelled responses, and the curve is of those:\n"
            f"of all, it ends at a share of {share}. `escalate.share: 1` on the labelled rows draws it whole."
        )
    lines.append("AUROC: of (value - threshold) / standard deviation, the ensemble's or the judge's, whoever decides.")
    return "\n".join(lines)


def _comparison_table(comparison: Comparison) -> TextTable:
    shown = [name for name in COLUMNS if any(name in line.measures for line in comparison.lines)]
    size = comparison.good + comparison.bad
    rows = []
    for line in comparison.lines:
        name = line.name if line.rows == size else f"{line.name} ({line.rows:,} rows)"
        rows.append([name, *(_cell(line.measures.get(metric), tau=metric == "best_f1") for metric in shown)])
    title = f"{comparison.name}: {comparison.good:,} and {comparison.bad:,} rows"
    return TextTable(title, ["score", *(COLUMNS[name] for name in shown)], rows)


def _slices_table(parts: Sequence[Slice]) -> TextTable:
    rows = [[p.value, f"{p.rows:,}", f"{p.correct:.1%}", f"{p.flagged:.1%}", _cell(p.auroc)] for p in parts]
    return TextTable(f"by {parts[0].column}", [parts[0].column, "rows", "correct", "flagged", "AUROC"], rows)


def normalisation_text(found: Evaluation) -> str:
    """The normalisation check as a sentence."""
    check = found.normalisation
    if check.moved is None:
        return f"normalisation check: {check.halves}"
    fits = "; ".join(
        f"{name} mu {a['mu']:.4g} and {b['mu']:.4g}, sigma {a['sigma']:.4g} and {b['sigma']:.4g}"
        for name, (a, b) in check.fits.items()
    )
    return f"normalisation check ({check.halves}): {fits}; {check.moved:.1%} of the verdicts differ between the two"


def _cell(found: Measure | None, *, tau: bool = False) -> str:
    """A value with its interval, and its threshold where that is wanted."""
    if found is None:
        return ""
    text = f"{found.value:.3f}"
    if tau and found.threshold is not None:
        text += f" at {found.threshold:.3g}"
    if found.low is not None and found.high is not None:
        text += f" [{found.low:.2f}–{found.high:.2f}]"
    return text


def print_calibration(found: Calibration, path: str, output: str, console: Console) -> None:
    """Print what a calibration holds, what it was measured to give, and how to use it."""
    print_lines(_calibration_lines(found), console)
    print_uneven(found.label, console)
    # Not in the table, which would fold what is to be copied.
    console.print(f"use it  {escape(f'ragassay finalize {output} --calibration {path}')}")


def _calibration_lines(found: Calibration) -> Iterator[tuple[str, str]]:
    of = f" of {found.positive_class} responses" if found.target.startswith(("precision", "recall", "f1")) else ""
    yield "calibration", f"{found.calibration_id}, for {found.target}{of}"
    if found.label is not None:
        rows = ", ".join(f"{n:,} {label}" for label, n in sorted(found.rows.items()))
        yield "labels", f"{found.label}: {rows}"
    yield "threshold", f"{found.threshold:.6g}"
    weights = ", ".join(f"{name} {member.weight:.3g}" for name, member in found.members.items())
    yield "rule", f"{found.mean} mean, {found.positive} (epsilon {found.epsilon:g}), weights {weights}"
    for prefix, what in (("in_sample_", "on the labelled rows"), ("held_out_", "on held-out items")):
        part = {k.removeprefix(prefix): v for k, v in found.measured.items() if k.startswith(prefix)}
        if part:
            yield what, ", ".join(f"{name} {'none' if v is None else format(v, '.3f')}" for name, v in part.items())
    if found.measured.get("flagged_of_all") is not None:
        yield "on all rows", f"{found.measured['flagged_of_all']:.1%} of {found.measured['responses']:,.0f} responses flagged"
    if found.certificate is not None:
        c = found.certificate
        yield (
            "certified",
            f"precision >= {c.precision:g}, wrong with probability at most {c.delta:g}: of {c.selected} selected rows that "
            f"certify, {c.correct} are {found.positive_class} (lower bound {c.bound:.3f})",
        )
    if found.probability is not None:
        before, after = found.measured.get("ece_before"), found.measured.get("ece_after")
        errors = [f"{v:.3f} {when}" for v, when in ((before, "before"), (after, "after, on held-out items")) if v is not None]
        yield "P(supported)", f"{found.probability.kind}; expected calibration error {', '.join(errors) or 'unknown'}"


def print_drift(check: DriftCheck, console: Console) -> None:
    """Print every comparison of tonight with history."""
    against = f"{len(check.history)} partition(s) before" + (f", from {check.history[0]}" if check.history else "")
    console.print(escape(f"{', '.join(check.tonight) or 'the only partition'} against {against}"))
    if check.note:
        console.print(escape(f"not checked: {check.note}"))
        return
    table = Table("what", "member", "tonight", "history", "distance", "limit", "", box=SIMPLE_HEAD)
    for shift in check.shifts:
        values = ("" if v is None else f"{v:.4g}" for v in (shift.tonight, shift.history))
        mark = "[bold red]drifted[/bold red]" if shift.drifted else ""
        table.add_row(shift.what, escape(shift.member or ""), *values, f"{shift.distance:.4g}", f"{shift.limit:g}", mark)
    console.print(table)


def print_export(done: Exported, dest: str, console: Console) -> None:
    """Print what was written, and where every other row went."""
    left = ", ".join(f"{n:,} {why}" for why, n in sorted(done.left_out.items(), key=lambda item: -item[1]))
    console.print(
        f"{done.written:,} written to {dest}, from {done.used:,} of {done.rows:,} rows"
        + (f"; left out: {left}" if left else ""),
        markup=False,
    )


def compared_tables(found: Compared) -> list[TextTable]:
    """What each member flags; how often each two agree; the responses that any of them flags."""
    with_labels = any(member.right is not None for member in found.members)
    names = [member.name for member in found.members]
    agree = [
        [a, *("" if (a, b) not in found.agreement else f"{found.agreement[a, b]:.0%}" for b in names[1:])] for a in names[:-1]
    ]
    suspicious = [row for row in found.rows if any(row.flags.values())]
    header = ["member", "flags below", "flagged", "nothing to go by"]
    return [
        TextTable(
            f"what each flags among the last {len(found.rows)} responses",
            [*header, "of those wrong", "wrong ones caught"] if with_labels else header,
            [_member_row(member, len(found.rows), with_labels) for member in found.members],
        ),
        TextTable("judged alike", ["", *names[1:]], agree),
        TextTable(
            f"the {len(suspicious)} responses that any of them flags (x; ? has nothing to go by)",
            ["row", *names, *(["label"] if with_labels else []), "question", "named, and not in the context"],
            [_suspicious_row(row, names, with_labels) for row in suspicious],
        ),
    ]


def _member_row(member: MemberFlags, rows: int, with_labels: bool) -> list[str]:
    below = "" if member.below is None else f"{member.below:g}"
    row = [member.name, below, f"{member.flagged} of {rows}", str(member.unknown)]
    if with_labels:
        row += [f"{member.right} of {member.labelled}", "" if member.caught is None else f"{member.caught:.0%}"]
    return row


def _suspicious_row(row: Suspicion, names: Sequence[str], with_labels: bool) -> list[str]:
    marks = ["?" if row.flags[name] is None else "x" if row.flags[name] else "" for name in names]
    label = [row.label.value if row.label else ""] if with_labels else []
    return [row.row_id, *marks, *label, _short(row.question, 40), _short("; ".join(row.missing), 60)]


def compared_text(found: Compared) -> str:
    """Which one catches most."""
    alone = [member for member in found.members if member.below is not None]
    most = max(alone, key=lambda member: member.flagged)
    all_of_them = sum(all(row.flags[member.name] for member in alone) for row in found.rows)
    text = f"{most.name} finds most responses suspicious, {most.flagged} of {len(found.rows)}; all agree on {all_of_them}."
    right = [member for member in alone if member.right is not None and member.labelled]
    if right:
        best = max(right, key=lambda member: (member.right or 0) / member.labelled)
        text += f" By the labels {best.name} is right most often: {best.right} of the {best.labelled} that it flags are wrong."
    return text


def print_compared(found: Compared, console: Console) -> None:
    """Print the comparison of members."""
    for text in compared_tables(found):
        console.print(_terminal_table(text))
    console.print(compared_text(found), markup=False)


def _terminal_table(text: TextTable) -> Table:
    table = Table(*map(escape, text.header), title=escape(text.title), title_justify="left", box=SIMPLE_HEAD)
    for row in text.rows:
        table.add_row(*map(escape, row))
    return table


def _short(text: str, size: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= size else line[: size - 1] + "…"
