"""What `explain` prints."""

from collections.abc import Callable, Mapping, Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ragassay.jobs.display.lines import print_lines
from ragassay.jobs.evaluation.explanation_quality import PAPER, Measured, Told
from ragassay.jobs.export.explanation_feedback import Rejected
from ragassay.schemas.explained import ExplainRun
from ragassay.schemas.explanations import EXPLANATIONS, strategy_folder


def print_explained(run: ExplainRun, rejected: Sequence[Rejected], output: str, console: Console) -> None:
    """Print what a run did: sentences, outcomes, agreement, categories, tokens and cost."""
    print_lines(_lines(run, output), console)
    if rejected:
        shown = Table("flags of", "explained", "rejected", "share")
        for one in rejected:
            share = f"{one.rejected / one.flags:.0%}" if one.flags else ""
            shown.add_row(escape(one.name), f"{one.flags:,}", f"{one.rejected:,}", share)
        console.print(shown)


def print_measured(found: Sequence[Measured], console: Console) -> None:
    """Print the paper's three tables, a strategy a row and a data set a column; theirs beside ours where there are some."""
    data = list(dict.fromkeys(one.data for one in found))
    strategies = list(dict.fromkeys(one.strategy for one in found))
    cells = {(one.strategy, one.data): one for one in found}
    tables: list[tuple[str, Callable[[Measured], str]]] = [
        ("sentences whose answer could be read, of those asked about", lambda one: f"{one.read} of {one.sentences}"),
        (
            "identification: the signal of disagreement against people's judgement of the reasons, precision / recall / F1",
            lambda one: _told_text(one.identification),
        ),
        (
            "inconsistent reasons before filtering -> after",
            lambda one: (
                "not known"
                if one.inconsistent_before is None
                else f"{_number(one.inconsistent_before)} -> {_number(one.inconsistent_after)}"
            ),
        ),
        ('feedback: "no hallucination" against the labels, precision / recall / F1', lambda one: _told_text(one.feedback)),
    ]
    for title, cell in tables:
        table = Table("strategy", *map(escape, data), title=title, title_justify="left")
        for strategy in strategies:
            row = [cells.get((strategy, name)) for name in data]
            table.add_row(strategy, *("" if one is None else cell(one) for one in row))
        console.print(table)
    theirs = [f"{name} {strategy} {f1:.3f}" for (name, strategy), f1 in PAPER.items() if name in data]
    if theirs:
        console.print(f"F1 of feedback in arXiv 2408.12748 (GPT-4-turbo): {', '.join(theirs)}", markup=False)


def _told_text(told: Told | None) -> str:
    if told is None:
        return "not known"
    return f"{_number(told.precision)} / {_number(told.recall)} / {_number(told.f1)}, {told.positives} of {told.rows}"


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:.3f}"


def _lines(run: ExplainRun, output: str) -> list[tuple[str, str]]:
    flagged, chosen = run.flagged, run.chosen
    of = f" of {flagged['sentences']:,} flagged" if chosen != flagged else ""
    lines = [
        (
            "explained",
            f"{chosen['sentences']:,}{of} sentences of {chosen['responses']:,} responses ({run.strategy}, {run.model})",
        ),
        ("outcomes", _counts(run.statuses) or "none"),
    ]
    if run.agreed:
        lines.append(("of the flags", _counts(run.agreed)))
    if run.categories:
        lines.append(("categories", _counts(run.categories)))
    if answered := sum(run.agreed.values()):
        lines.append(("evidence", f"{run.with_evidence:,} of {answered:,} answers quote a passage that says so"))
    cost = f", {run.dollars:.4f} USD" if run.dollars is not None else ""
    lines.append(
        (
            "asked",
            f"{run.questions:,} questions, {run.prompt_tokens:,} + {run.completion_tokens:,} tokens{cost}, {run.seconds:.1f} s",
        )
    )
    return [*lines, ("output", f"{output} ({EXPLANATIONS}/{strategy_folder(run.strategy)}/)")]


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in sorted(counts.items(), key=lambda one: -one[1]))
