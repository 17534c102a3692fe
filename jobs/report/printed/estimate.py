"""Print the result of `estimate`."""

from collections.abc import Iterator

from rich.console import Console

from ragassay.jobs.display.counted import format_count
from ragassay.jobs.display.lines import print_lines
from ragassay.jobs.display.text_table import (
    TextTable,
    print_table,
)
from ragassay.schemas.estimate import Estimate, RateRecord, ShareRecord


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
        population = f"about {format_count(rate.population, 'response')}, of which {rate.rows:,} were scored, a random sample"
    yield (
        "hallucinated",
        f"{_format_share(rate.powered)} of {population}, by {format_count(rate.labels, 'label')} and all verdicts",
    )
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
        return (
            f"only if all {format_count(rate.rows, 'response')} are labeled"
            if rate.more_labels
            else "all responses are labeled"
        )
    return f"with about {rate.more_labels:,} more labels, drawn like these"


def _format_share(share: ShareRecord | None) -> str:
    return "no labels" if share is None else f"{share.value:.1%} [{share.low:.1%} to {share.high:.1%}]"
