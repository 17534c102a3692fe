"""What `evaluate`, `calibrate`, `drift`, `compare`, `estimate`, `agreement` and `export` print."""

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.text import Text

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
from ragassay.jobs.evaluation.agreement import Agreed, item_texts
from ragassay.jobs.evaluation.cascade import CASCADE_METRICS, Cascade, shares_of
from ragassay.jobs.evaluation.compare import Compared, MemberFlags, Suspicion
from ragassay.jobs.evaluation.evaluate import (
    ALONE,
    AS_CASCADE,
    AS_FINALISED,
    BASELINE,
    ENSEMBLE,
    JUDGE,
    Comparison,
    Difference,
    Evaluation,
    Slice,
)
from ragassay.jobs.evaluation.labelled import UNEVEN
from ragassay.jobs.export.run import Exported
from ragassay.pipeline.calibration.metrics import Measure
from ragassay.schemas.calibration import Calibration
from ragassay.schemas.estimate import Estimate, RateRecord, ShareRecord
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
LINES = 10
LABEL = 40
CASCADE, LENGTH, OVERLAP = "cascade", "length", "overlap"
KNOWN = {
    AS_FINALISED: ENSEMBLE,
    ENSEMBLE: ENSEMBLE,
    AS_CASCADE: CASCADE,
    f"{BASELINE}shorter response": LENGTH,
    f"{BASELINE}shorter sentence": LENGTH,
    f"{BASELINE}words in context": OVERLAP,
}
TEXT = 100  # characters
SHOWN = 20
"""Rows to talk about that are printed; a file has all."""


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
            f"of all, it ends at a share of {share}. `escalation.share: 1` on the labelled rows draws it whole."
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
    yield "calibration", f"{found.calibration_id}, for {found.target}"
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
    console.print(escape(f"{', '.join(check.latest) or 'the only partition'} against {against}"))
    if check.note:
        console.print(escape(f"not checked: {check.note}"))
        return
    rows = [
        [
            *(shift.metric, shift.member or "", format_number(shift.latest, ".4g"), format_number(shift.history, ".4g")),
            *(format_number(shift.distance, ".4g"), format_number(shift.limit, "g"), "drifted" if shift.drifted else ""),
        ]
        for shift in check.shifts
    ]
    print_table(TextTable("", ["what", "member", "tonight", "history", "distance", "limit", ""], rows), console)


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
    agree = [[a, *(format_number(found.agreement.get((a, b)), ".0%") for b in names[1:])] for a in names[:-1]]
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
    row = [member.name, format_number(member.below, "g"), f"{member.flagged} of {rows}", str(member.unknown)]
    if with_labels:
        row += [f"{member.right} of {member.labelled}", format_number(member.caught, ".0%")]
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
    for table in compared_tables(found):
        print_table(table, console)
    console.print(compared_text(found), markup=False)


def _short(text: str, size: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= size else line[: size - 1] + "…"


@dataclass(frozen=True)
class _Level:
    """Responses or sentences: AUROC of each score, and how far it is from the ensemble's."""

    aurocs: Mapping[str, Measure]
    differences: Mapping[str, Difference]


def print_headline(found: Evaluation, console: Console) -> None:
    """Print them; they fit 80 columns where names are not long."""
    lines, table = headline(found, console.width)
    for line in lines:
        console.print(Text(line))
    for part in fit_table(table, console.width):
        console.print(make_rich_table(part, rule=False))


def headline(found: Evaluation, width: int) -> tuple[list[str], TextTable]:
    """What the figures rest on, in a line or two; and the figures: with them ten lines at most, the header among them.

    Args:
        found: The evaluation.
        width: Columns of the terminal.
    """
    lines = textwrap.wrap(_rests_on(found), width)
    lines = [*lines[:1], *([shorten(" ".join(lines[1:]), width)] if lines[1:] else [])]
    levels = {"responses": _level(found, found.comparisons[-1])}
    if found.sentences is not None:
        levels["sentences"] = _level(found, found.sentences)
    first = levels["responses"]
    middle = [name for name in first.aurocs if name not in (ENSEMBLE, LENGTH, OVERLAP)]
    middle.sort(key=lambda name: (name.endswith(ALONE), -_ahead(first, name)))  # who was asked for, then the members
    slots = LINES - len(lines) - len(("header", ENSEMBLE, LENGTH, OVERLAP, "best"))
    shown = middle if len(middle) <= slots else middle[: slots - 1]
    left = middle[len(shown) :]
    rows = [[_name(name, width // 6), *(_beside(level, name) for level in levels.values())] for name in (ENSEMBLE, *shown)]
    if left:
        rows.append([f"{len(left)} more", *(_range(level, left) for level in levels.values())])
    rows += [[name, *(_beside(level, name) for level in levels.values())] for name in (LENGTH, OVERLAP)]
    rows.append(["best", *(_best(level, width // 9) for level in levels.values())])
    return lines, TextTable("", ["AUROC", *(f"{name}, beside ensemble" for name in levels)], rows)


def _rests_on(found: Evaluation) -> str:
    labels = ", ".join(f"{n:,} {label}" for label, n in sorted(found.labels.items()))
    left_out = [
        (found.unlabelled, "rows without a label"),
        (found.unscored, "labelled rows without a score"),
        (found.unmatched, "labels that belong to no row"),
        (found.elsewhere, "rows left out by --where"),
    ]
    counts = "".join(f"; {number:,} {what}" for number, what in left_out if number)
    return f"{shorten(to_one_line(found.label), LABEL)}: {labels}; --all prints the rest{counts}"


def _level(found: Evaluation, comparison: Comparison) -> _Level:
    """The lines that are read first, by short names."""
    return _Level(
        {key: line.measures["auroc"] for line in comparison.lines if (key := _key(line.name)) and line.measures},
        {key: one for one in found.differences.get(comparison.name, []) if (key := _key(one.name))},
    )


def _key(name: str) -> str | None:
    return KNOWN.get(name) or (name if name.endswith(ALONE) or name.startswith(JUDGE) else None)


def _name(key: str, width: int) -> str:
    return shorten(key.removesuffix(ALONE).removesuffix(", whole response"), width)


def _ahead(level: _Level, name: str) -> float:
    return level.differences[name].value if name in level.differences else 0.0


def _beside(level: _Level, name: str) -> str:
    """AUROC, then how far it is from the ensemble's; the ensemble's own interval in its place."""
    found = level.aurocs.get(name)
    if found is None:
        return ""
    if name == ENSEMBLE:
        return f"{found.value:.3f}" + ("" if found.low is None else f"  [{found.low:.2f} to {found.high:.2f}]")
    beside = level.differences.get(name)
    if beside is None:
        return f"{found.value:.3f}"
    spread = "" if beside.low is None else f" [{beside.low:+.2f} to {beside.high:+.2f}]"
    return f"{found.value:.3f}  {beside.value:+.3f}{spread}"


def _range(level: _Level, names: list[str]) -> str:
    values = [level.aurocs[name].value for name in names if name in level.aurocs]
    return f"{min(values):.3f} to {max(values):.3f}" if values else ""


def _best(level: _Level, width: int) -> str:
    """The best score, and by how much: before the ensemble, or the ensemble before the next."""
    others = sorted(level.differences.items(), key=lambda item: -item[1].value)
    if not others:
        return ENSEMBLE
    name, one = others[0]
    best = ENSEMBLE if one.value <= 0 else _name(name, width)
    noise = {None: "", True: ", beyond noise", False: ", within noise"}[one.beyond_noise]
    return f"{best} by {abs(one.value):.3f}{noise}"


def print_estimate(found: Estimate, path: str, console: Console) -> None:
    """Print the estimate beside the two it is compared with, then its parts, then what is missing."""
    print_lines(_lines(found), console)
    parts = {"partition": found.partitions, **found.slices}
    for name, rates in parts.items():
        if rates:
            header = ["", "rows", "labels", "hallucinated", "flagged", "from the labels alone"]
            rows = [
                [r.subset, f"{r.rows:,}", f"{r.labels:,}", _share(r.powered), f"{r.flagged:.1%}", _share(r.classical)]
                for r in rates
            ]
            print_table(TextTable(f"by {name}", header, rows), console)
    for note in found.notes:
        console.print(f"note: {note}.", markup=False)
    console.print(f"written to {path}", markup=False)


def _lines(found: Estimate) -> Iterator[tuple[str, str]]:
    rate = found.overall
    whom = f"{rate.rows:,} scored responses"
    if rate.population is not None:
        whom = f"about {rate.population:,.0f} responses, of which {rate.rows:,} were scored, a random sample"
    yield "hallucinated", f"{_share(rate.powered)} of {whom}, by {rate.labels:,} labels and all verdicts"
    yield "flagged", f"{rate.flagged:.1%}, the share that the verdicts alone would tell"
    yield (
        "labels alone",
        f"{_share(rate.classical)}: {rate.hallucinated:,} of {rate.labels:,} labelled responses are hallucinated",
    )
    yield "in brackets", f"{found.level:.0%} intervals, for these responses and not for those of other nights"
    if rate.more_labels is not None:
        yield "half as wide", _more(rate)
    if found.weighted:
        strata = f", {len(found.strata)} strata" if found.strata else ""
        yield "weights", f"1 / inclusion_probability of each labelled response{strata}"
    left = {
        "responses looked at without getting a label": found.undecided,
        "labels of rows without a score": found.labeled_unscored,
        "labels of rows that this output does not have": found.unmatched,
        "lines said again": found.repeated,
        "rows without a score": found.unscored,
        "rows left out by --where": found.excluded,
    }
    text = "; ".join(f"{count:,} {what}" for what, count in left.items() if count)
    if text:
        yield "not counted", text


def _more(rate: RateRecord) -> str:
    if rate.more_labels == rate.rows - rate.labels and rate.population is not None:
        return f"not even if all {rate.rows:,} scored responses are labelled: score a larger share of the rows"
    if rate.more_labels == rate.rows - rate.labels:
        return f"only if all {rate.rows:,} responses are labelled" if rate.more_labels else "all responses are labelled"
    return f"with about {rate.more_labels:,} more labels, drawn like these"


def _share(found: ShareRecord | None) -> str:
    return "no labels" if found is None else f"{found.value:.1%} [{found.low:.1%} to {found.high:.1%}]"


def print_agreement(found: Sequence[Agreed], rows: Sequence[Mapping[str, Any]], console: Console) -> None:
    """Print Cohen's kappa of every two reviewers, and the first of the rows to talk about."""
    pairs = []
    for pair in found:
        got = pair.found
        agree = f"{got.same:,} of {got.count:,}, {got.share:.1%} [{got.low:.1%} to {got.high:.1%}]" if got else ""
        kappa = "undefined: one word only" if got and got.kappa is None else format_number(got.kappa if got else None)
        pairs.append([pair.first, pair.second, pair.what, f"{pair.shared:,}", f"{pair.unsure:,}", agree, kappa])
    print_table(TextTable("", ["reviewer", "beside", "of", "both looked at", "unsure", "agree", "kappa"], pairs), console)
    if rows:
        title = f"to talk about: {len(rows):,}" + (f", the first {SHOWN}" if len(rows) > SHOWN else "")
        talk = [[*cells, _short(text, TEXT)] for *cells, text in item_texts(rows[:SHOWN])]
        print_table(TextTable(title, ["row", "partition", "of", "who says what", "text"], talk), console)
