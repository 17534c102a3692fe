"""Print what a command understood of the labels, and what it did not."""

from collections.abc import Iterator, Sequence

from rich.console import Console

from ragassay.jobs.display.counted import format_count
from ragassay.jobs.display.quoted import MAX_ID_CHARS, MAX_LABEL_CHARS, quote_value
from ragassay.jobs.evaluation.labels import LabelCounts, LabelSource

MAX_EXAMPLES = 3
MAX_VALUES = 5
LABEL_ORDER = ("correct", "wrong", "partial", "unsure")


def print_label_counts(source: LabelSource | None, console: Console) -> None:
    """Print the labels that were loaded; nothing without a source."""
    if source is not None:
        for line in format_label_counts(source):
            console.print(line, markup=False, highlight=False)


def format_label_counts(source: LabelSource) -> Iterator[str]:
    """Format the labels of a command: what was understood, then what was not."""
    counts = source.counts
    matched = f", rows by {counts.id_column!r}" if counts.id_column not in ("", "row_id") else ""
    origin = f"column {counts.column!r}" + (f" of {source.file}{matched}" if source.file else "")
    by_level = {"responses": counts.responses, "sentences": counts.sentences, "responses, by their sentences": counts.derived}
    levels = [(name, counter) for name, counter in by_level.items() if counter] or [("responses", counts.responses)]
    for number, (name, counter) in enumerate(levels):
        listed = ", ".join(f"{counter[label]:,} {label}" for label in LABEL_ORDER)
        yield f"{'' if number else 'labels':8}{name}: {listed}" + ("" if number else f" ({origin})")
    notes = [
        f"{counts.unlabeled:,} without a label" if counts.unlabeled else "",
        _format_unknown(counts),
        _format_examples("id", "that no row has", [quote_value(name, MAX_ID_CHARS) for name in counts.unmatched]),
        _format_examples("item", "with contradictory labels", counts.contradictions),
        _format_examples("row", "that can't be read", counts.unreadable),
    ]
    for note in filter(None, notes):
        yield f"        {note}"


def _format_unknown(counts: LabelCounts) -> str:
    if not counts.unknown:
        return ""
    values = counts.unknown.most_common()
    total = f"not labels: {format_count(counts.unknown.total(), 'value')}"
    if any(len(value) > MAX_LABEL_CHARS or "\n" in value for value, _ in values):  # texts of the log are never printed
        return total
    listed = ", ".join(f"{value!r} ({count:,})" for value, count in values[:MAX_VALUES])
    return f"{total}, {listed}" + (", …" if len(values) > MAX_VALUES else "")


def _format_examples(noun: str, fault: str, items: Sequence[str]) -> str:
    if not items:
        return ""
    listed = ", ".join(items[:MAX_EXAMPLES])
    return f"{format_count(len(items), noun)} {fault}: {listed}" + (", …" if len(items) > MAX_EXAMPLES else "")
