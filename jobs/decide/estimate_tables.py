"""What `estimate` and `agreement` print."""

from collections.abc import Iterator, Mapping, Sequence
from textwrap import shorten
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ragassay.jobs.decide.agreement import Agreed, item_texts
from ragassay.jobs.lines import print_lines
from ragassay.schemas.estimate import Estimate, RateRecord, ShareRecord

TEXT = 100  # characters
SHOWN = 20
"""Rows to talk about that are printed; a file has all."""


def print_estimate(found: Estimate, path: str, console: Console) -> None:
    """Print the estimate beside the two it is compared with, then its parts, then what is missing."""
    print_lines(_lines(found), console)
    parts = {"partition": found.partitions, **found.slices}
    for name, rates in parts.items():
        if rates:
            table = Table("", "rows", "labels", "hallucinated", "flagged", "from the labels alone", box=SIMPLE_HEAD)
            table.title, table.title_justify = escape(f"by {name}"), "left"
            for rate in rates:
                estimates = (_share(rate.powered), f"{rate.flagged:.1%}", _share(rate.classical))
                table.add_row(escape(rate.part), f"{rate.rows:,}", f"{rate.labels:,}", *estimates)
            console.print(table)
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
    yield "labels alone", f"{_share(rate.classical)}: {rate.wrong:,} of {rate.labels:,} labelled responses are hallucinated"
    yield "in brackets", f"{found.level:.0%} intervals, for these responses and not for those of other nights"
    if rate.more_labels is not None:
        yield "half as wide", _more(rate)
    if found.weighted:
        strata = f", {len(found.strata)} strata" if found.strata else ""
        yield "weights", f"1 / inclusion_probability of each labelled response{strata}"
    left = {
        "responses looked at without getting a label": found.undecided,
        "labels of rows without a score": found.labelled_unscored,
        "labels of rows that this output does not have": found.unmatched,
        "lines said again": found.repeated,
        "rows without a score": found.unscored,
        "rows left out by --where": found.elsewhere,
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
    table = Table("reviewers", "of", "both looked at", "unsure", "agree", "kappa", box=SIMPLE_HEAD)
    for pair in found:
        names, got = escape(f"{pair.first}, {pair.second}"), pair.found
        agree = f"{got.same:,} of {got.count:,}, {got.share:.1%} [{got.low:.1%} to {got.high:.1%}]" if got else ""
        kappa = "" if got is None else "undefined: one word only" if got.kappa is None else f"{got.kappa:.3f}"
        table.add_row(names, pair.what, f"{pair.shared:,}", f"{pair.unsure:,}", agree, kappa)
    console.print(table)
    if rows:
        talk = Table("row", "partition", "of", "who says what", "text", box=SIMPLE_HEAD)
        talk.title_justify = "left"
        talk.title = f"to talk about: {len(rows):,}" + (f", the first {SHOWN}" if len(rows) > SHOWN else "")
        for *cells, text in item_texts(rows[:SHOWN]):
            talk.add_row(*map(escape, [*cells, shorten(text, TEXT, placeholder=" …")]))
        console.print(talk)
