"""Print the summary of `publish`."""

import json
from typing import Any

from rich.console import Console

from ragassay.jobs.display.counted import format_count
from ragassay.jobs.display.lines import print_lines
from ragassay.jobs.integrations.publish import errors
from ragassay.jobs.integrations.publish.command import PublishResult
from ragassay.pipeline.errors import PublishError

MAX_NAMES = 5  # partitions or rows that a line lists


def print_published(result: PublishResult, address: str, seconds: float, console: Console) -> None:
    """Print what was sent, and the status of all other rows."""
    print_lines(
        _build_lines(result, address, "sent", f"; {format_count(result.request_count, 'request')} in {seconds:.1f} s"), console
    )


def print_dry_run(result: PublishResult, example: Any, address: str, console: Console) -> None:
    """Print what would be sent, and the first request."""
    print_lines(_build_lines(result, address, "to send", ""), console)
    if example is not None:
        console.print(json.dumps(example, indent=1, ensure_ascii=False), markup=False)


def raise_if_unsent(result: PublishResult, address: str) -> None:
    """Raise an error if the tool refused verdicts, or has none of the traces.

    Raises:
        PublishError: One of these is true.
    """
    refused = sum(item.rows for item in result.refused)
    if refused:
        raise PublishError(errors.SOME_REFUSED, url=address, refused=refused)
    if result.unknown and not sum(result.sent.values()):
        raise PublishError(errors.UNKNOWN_TRACES, url=address, traces=result.unknown)


def _build_lines(result: PublishResult, address: str, verb: str, requests: str) -> list[tuple[str, str]]:
    total = sum(result.sent.values())
    lines = [(verb, f"{format_count(total, 'verdict')} to {address}{_list_partitions(result.sent)}{requests}")]
    if result.current:
        lines.append(("up to date", format_count(len(result.current), "partition")))
    if result.without_verdicts:
        names = ", ".join(name or "the output" for name in result.without_verdicts[:MAX_NAMES])
        lines.append(("no verdicts", f"{names}: run `ragassay finalize`"))
    if result.not_sent:
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in result.not_sent.most_common())
        lines.append(("not sent", f"{format_count(result.not_sent.total(), 'row')} ({reasons})"))
    if result.unknown:
        lines.append(("unknown", f"{format_count(result.unknown, 'row')} whose trace or span does not exist"))
    if result.refused:
        shown = "; ".join(
            f"{item.row_id or format_count(item.rows, 'row')}: {item.reason}" for item in result.refused[:MAX_NAMES]
        )
        more = f"; and {len(result.refused) - MAX_NAMES:,} more" if len(result.refused) > MAX_NAMES else ""
        rows = format_count(sum(item.rows for item in result.refused), "row")
        lines.append(("refused", f"{rows} ({shown}{more})"))
    return lines


def _list_partitions(sent: dict[str, int]) -> str:
    partitions = [f"{partition} {rows:,}" for partition, rows in sent.items() if partition]
    if not partitions:
        return ""
    more = f", and {format_count(len(partitions) - MAX_NAMES, 'more partition')}" if len(partitions) > MAX_NAMES else ""
    return f" ({', '.join(partitions[:MAX_NAMES])}{more})"
