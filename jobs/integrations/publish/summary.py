"""What `publish` says when it has ended."""

import json
from typing import Any

from rich.console import Console

from ragassay.jobs.display.lines import print_lines
from ragassay.jobs.integrations.publish import errors
from ragassay.jobs.integrations.publish.run import Done
from ragassay.pipeline.errors import PublishError

NAMED = 5


def print_published(done: Done, where: str, seconds: float, console: Console) -> None:
    """Print what was sent where, and what became of all other rows."""
    print_lines(_lines(done, where, "sent", f"; {done.requests:,} requests in {seconds:.1f} s"), console)


def print_rehearsed(done: Done, example: Any, where: str, console: Console) -> None:
    """Print what would be sent, and the first of it."""
    print_lines(_lines(done, where, "to send", ""), console)
    if example is not None:
        console.print(json.dumps(example, indent=1, ensure_ascii=False), markup=False)


def refuse_unsent(done: Done, where: str) -> None:
    """End with an error where the tool would not take some verdicts, or knows none of the traces.

    Raises:
        PublishError: It is so.
    """
    refused = sum(one.rows for one in done.refused)
    if refused:
        raise PublishError(errors.SOME_REFUSED, url=where, refused=refused)
    if done.unknown and not sum(done.sent.values()):
        raise PublishError(errors.UNKNOWN_TRACES, url=where, traces=done.unknown)


def _lines(done: Done, where: str, verb: str, requests: str) -> list[tuple[str, str]]:
    total = sum(done.sent.values())
    lines = [(verb, f"{total:,} verdicts to {where}{_places(done.sent)}{requests}")]
    if done.current:
        lines.append(("up to date", f"{len(done.current):,} {'partition' if len(done.current) == 1 else 'partitions'}"))
    if done.without_verdicts:
        names = ", ".join(name or "the output" for name in done.without_verdicts[:NAMED])
        lines.append(("no verdicts", f"{names}: `ragassay finalize` gives them"))
    if done.left_out:
        reasons = ", ".join(f"{count:,} {why}" for why, count in done.left_out.most_common())
        lines.append(("left out", f"{done.left_out.total():,} rows ({reasons})"))
    if done.unknown:
        lines.append(("unknown", f"{done.unknown:,} rows whose trace or span is not there"))
    if done.refused:
        shown = "; ".join(f"{one.row_id or f'{one.rows:,} rows'}: {one.reason}" for one in done.refused[:NAMED])
        more = f"; and {len(done.refused) - NAMED:,} more" if len(done.refused) > NAMED else ""
        lines.append(("refused", f"{sum(one.rows for one in done.refused):,} rows ({shown}{more})"))
    return lines


def _places(sent: dict[str, int]) -> str:
    named = [f"{place} {rows:,}" for place, rows in sent.items() if place]
    if not named:
        return ""
    more = f", and {len(named) - NAMED:,} more partitions" if len(named) > NAMED else ""
    return f" ({', '.join(named[:NAMED])}{more})"
