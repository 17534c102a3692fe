"""Show an output as HTML in a notebook: its counts, its latest partitions, and its lowest verdicts."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from ragassay.jobs.display.verdicts import Verdicts
from ragassay.jobs.display.visible import make_visible

SHOWN_PARTITIONS = 10

_CELL = "padding:.1em .8em;text-align:right"


def render_output(title: str, partitions: Sequence[Mapping[str, Any]], flagged: Verdicts) -> str:
    """Render an output.

    Args:
        title: Its name.
        partitions: Partition, responses, scored, flagged and flagged_share of each partition, in order.
        flagged: Some of its flagged responses.
    """
    totals = {name: sum(partition[name] for partition in partitions) for name in ("responses", "scored", "flagged")}
    share = totals["flagged"] / totals["scored"] if totals["scored"] else None
    all_partitions = {"partition": f"all {len(partitions):,}", **totals, "flagged_share": share}
    shown = partitions[-SHOWN_PARTITIONS:] if len(partitions) > 1 else []
    note = f"the latest {SHOWN_PARTITIONS}" if len(partitions) > SHOWN_PARTITIONS else ""
    rows = "".join(map(_render_row, [*shown, all_partitions]))
    head = "".join(
        f'<th style="{_CELL}">{name}</th>' for name in (f"partition {note}", "responses", "scored", "flagged", "share")
    )
    table = f'<table style="border-collapse:collapse;margin:.5em 0"><tr>{head}</tr>{rows}</table>'
    return f"<div><b>{escape(make_visible(title))}</b>{table}</div>{flagged._repr_html_()}"


def _render_row(partition: Mapping[str, Any]) -> str:
    share = partition["flagged_share"]
    name = escape(make_visible(partition["partition"])) or "(not partitioned)"
    cells = [
        name,
        *(f"{partition[key]:,}" for key in ("responses", "scored", "flagged")),
        "–" if share is None else f"{share:.1%}",
    ]
    return "<tr>" + "".join(f'<td style="{_CELL}">{cell}</td>' for cell in cells) + "</tr>"
