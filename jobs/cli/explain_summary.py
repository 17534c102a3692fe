"""Print the results of `explain`, and the quality of explanations."""

from collections.abc import Callable, Mapping, Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ragassay.jobs.display.counted import format_count
from ragassay.jobs.display.lines import print_lines
from ragassay.jobs.evaluation.explanation_quality import PAPER_F1, FlagQuality, StrategyQuality
from ragassay.jobs.export.explanation_feedback import RejectedFlags
from ragassay.schemas.explain_run import ExplainRun
from ragassay.schemas.explanation_columns import EXPLANATIONS, strategy_folder


def print_explained(run: ExplainRun, rejected: Sequence[RejectedFlags], output: str, console: Console) -> None:
    """Print sentences, outcomes, agreement, categories, tokens and cost of a run."""
    print_lines(_lines(run, output), console)
    if rejected:
        table = Table("flags of", "explained", "rejected", "share")
        for member in rejected:
            share = f"{member.rejected / member.flags:.0%}" if member.flags else ""
            table.add_row(escape(member.name), f"{member.flags:,}", f"{member.rejected:,}", share)
        console.print(table)


def print_qualities(qualities: Sequence[StrategyQuality], console: Console) -> None:
    """Print the three tables of arXiv 2408.12748: one row per strategy, one column per data set."""
    data = list(dict.fromkeys(quality.dataset for quality in qualities))
    strategies = list(dict.fromkeys(quality.strategy for quality in qualities))
    cells = {(quality.strategy, quality.dataset): quality for quality in qualities}
    tables: list[tuple[str, Callable[[StrategyQuality], str]]] = [
        ("sentences with a readable answer, of those sent", lambda quality: f"{quality.readable} of {quality.sentences}"),
        (
            "identification: the model's disagreement against people's judgment of the reasons, precision / recall / F1",
            lambda quality: _signal_text(quality.identification),
        ),
        (
            "inconsistent reasons before filtering -> after",
            lambda quality: (
                "unknown"
                if quality.inconsistent_before is None
                else f"{_number(quality.inconsistent_before)} -> {_number(quality.inconsistent_after)}"
            ),
        ),
        (
            'feedback: "no hallucination" against the labels, precision / recall / F1',
            lambda quality: _signal_text(quality.feedback),
        ),
    ]
    for title, cell in tables:
        table = Table("strategy", *map(escape, data), title=title, title_justify="left")
        for strategy in strategies:
            row = [cells.get((strategy, name)) for name in data]
            table.add_row(strategy, *("" if quality is None else cell(quality) for quality in row))
        console.print(table)
    published = [f"{name} {strategy} {f1:.3f}" for (name, strategy), f1 in PAPER_F1.items() if name in data]
    if published:
        console.print(f"F1 of feedback in arXiv 2408.12748 (GPT-4-turbo): {', '.join(published)}", markup=False)


def _signal_text(signal: FlagQuality | None) -> str:
    if signal is None:
        return "unknown"
    return f"{_number(signal.precision)} / {_number(signal.recall)} / {_number(signal.f1)}, {signal.positives} of {signal.rows}"


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:.3f}"


def _lines(run: ExplainRun, output: str) -> list[tuple[str, str]]:
    flagged, chosen = run.flagged, run.chosen
    of = f" of {flagged['sentences']:,} flagged" if chosen != flagged else ""
    lines = [
        (
            "explained",
            f"{chosen['sentences']:,}{of} sentences of {format_count(chosen['responses'], 'response')} "
            f"({run.strategy}, {run.model})",
        ),
        ("outcomes", _counts(run.statuses) or "none"),
    ]
    if run.agreed:
        lines.append(("of the flags", _counts(run.agreed)))
    if run.categories:
        lines.append(("categories", _counts(run.categories)))
    if answered := sum(run.agreed.values()):
        lines.append(("evidence", f"{run.with_evidence:,} of {answered:,} answers quote a passage as evidence"))
    cost = f", {run.dollars:.4f} USD" if run.dollars is not None else ""
    lines.append(
        (
            "sent",
            f"{format_count(run.questions, 'question')}, {run.prompt_tokens:,} + {run.completion_tokens:,} tokens{cost}, "
            f"{run.seconds:.1f} s",
        )
    )
    return [*lines, ("output", f"{output} ({EXPLANATIONS}/{strategy_folder(run.strategy)}/)")]


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in sorted(counts.items(), key=lambda item: -item[1]))
