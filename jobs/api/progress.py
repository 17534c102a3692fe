"""What is waited for, on a terminal or in a notebook; elsewhere nothing."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TextIO

from ragassay.jobs.display.visible import VisibleText


@dataclass(frozen=True)
class Progress:
    """What is told.

    Attributes:
        tell: Whose turn it is, in words.
        advance: So many rows are done.
    """

    tell: Callable[[str], None]
    advance: Callable[[int], None]


SILENT = Progress(lambda _: None, lambda _: None)


@contextmanager
def shown(rows: int | None = None, stream: TextIO | None = None) -> Iterator[Progress]:
    """Show progress while a block runs: a spinner with what is waited for, and a bar over rows.

    Args:
        rows: How many there are; None shows no bar.
        stream: Where to; None is stderr.
    """
    from rich.console import Console

    console = Console(file=stream, stderr=True, emoji=False, markup=False, highlight=False)
    if not (console.is_terminal or console.is_jupyter):
        yield SILENT
        return
    from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    console.push_render_hook(VisibleText())
    bar = [BarColumn(), MofNCompleteColumn()] if rows else []
    columns = [SpinnerColumn(), TextColumn("{task.description}", markup=False), *bar, TimeElapsedColumn()]
    with Bar(*columns, console=console, transient=True) as live:
        task = live.add_task("starting", total=rows)
        yield Progress(
            lambda text: live.update(task, description=text),
            lambda count: live.advance(task, count),
        )


@contextmanager
def engines_silent() -> Iterator[TextIO]:
    """Leave out what engines and their libraries say on stderr while they load; what goes wrong comes as an exception.

    Yields:
        A stream that still reaches stderr.
    """
    sys.stderr.flush()
    saved = os.dup(2)
    with open(os.devnull, "wb") as nowhere:  # noqa: PTH123
        os.dup2(nowhere.fileno(), 2)
    stream = os.fdopen(os.dup(saved), "w", encoding="utf-8", errors="replace")
    try:
        yield stream
    finally:
        stream.close()
        os.dup2(saved, 2)
        os.close(saved)
