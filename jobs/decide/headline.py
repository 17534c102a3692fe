"""The ten lines of an evaluation that are read first: ensemble, members, baselines, and what is best, by how much."""

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass

from rich.console import Console
from rich.text import Text

from ragassay.jobs.decide.contenders import ALONE, AS_CASCADE, AS_FINALISED, BASELINE, ENSEMBLE, JUDGE
from ragassay.jobs.decide.differences import Difference
from ragassay.jobs.decide.evaluate import Comparison, Evaluation
from ragassay.jobs.decide.text_table import TextTable, fitted, one_line, rich_table, shortened
from ragassay.pipeline.calibration.metrics import Measure

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
    for part in fitted(table, console.width):
        console.print(rich_table(part, rule=False))


def headline(found: Evaluation, width: int) -> tuple[list[str], TextTable]:
    """What the figures rest on, in a line or two; and the figures: with them ten lines at most, the header among them.

    Args:
        found: The evaluation.
        width: Columns of the terminal.
    """
    lines = textwrap.wrap(_rests_on(found), width)
    lines = [*lines[:1], *([shortened(" ".join(lines[1:]), width)] if lines[1:] else [])]
    levels = {"responses": _level(found, found.comparisons[-1])}
    if found.sentences is not None:
        levels["sentences"] = _level(found, found.sentences)
    first = levels["responses"]
    middle = [name for name in first.aurocs if name not in (ENSEMBLE, LENGTH, OVERLAP)]
    middle.sort(key=lambda name: (name.endswith(ALONE), -_ahead(first, name)))  # who was asked for, then the members
    slots = LINES - len(lines) - len(("header", ENSEMBLE, LENGTH, OVERLAP, "best"))
    shown = middle if len(middle) <= slots else middle[: slots - 1]
    left = middle[len(shown) :]
    rows = [[_name(name, width // 6), *(_cell(level, name) for level in levels.values())] for name in (ENSEMBLE, *shown)]
    if left:
        rows.append([f"{len(left)} more", *(_range(level, left) for level in levels.values())])
    rows += [[name, *(_cell(level, name) for level in levels.values())] for name in (LENGTH, OVERLAP)]
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
    return f"{shortened(one_line(found.label), LABEL)}: {labels}; --all prints the rest{counts}"


def _level(found: Evaluation, comparison: Comparison) -> _Level:
    """The lines that are read first, by short names."""
    return _Level(
        {key: line.measures["auroc"] for line in comparison.lines if (key := _key(line.name)) and line.measures},
        {key: one for one in found.differences.get(comparison.name, []) if (key := _key(one.name))},
    )


def _key(name: str) -> str | None:
    return KNOWN.get(name) or (name if name.endswith(ALONE) or name.startswith(JUDGE) else None)


def _name(key: str, width: int) -> str:
    return shortened(key.removesuffix(ALONE).removesuffix(", whole response"), width)


def _ahead(level: _Level, name: str) -> float:
    return level.differences[name].value if name in level.differences else 0.0


def _cell(level: _Level, name: str) -> str:
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
