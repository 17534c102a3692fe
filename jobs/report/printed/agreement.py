"""Print the result of `agreement`."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console

from ragassay.jobs.display.text_table import (
    TextTable,
    format_number,
    print_table,
)
from ragassay.jobs.display.visible import clip_line
from ragassay.jobs.evaluation.agreement import ReviewerPair, format_disagreements

TEXT_WIDTH = 100  # characters
MAX_DISAGREEMENTS = 20
"""Disagreements that are printed; a file contains all."""


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
