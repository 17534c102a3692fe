"""How commands use an output folder: readers take a snapshot and write pages."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

from pyarrow.fs import FileType
from rich.console import Console

from ragassay.jobs.cli import errors
from ragassay.jobs.output.manifest import existing_output
from ragassay.jobs.output.snapshot import Snapshot, read_snapshot
from ragassay.jobs.runtime.endings import is_disk_full
from ragassay.jobs.storage.folder import Folder, file_of, open_file, refuse_inside
from ragassay.jobs.storage.writable import check_writable
from ragassay.pipeline.errors import OutputError
from ragassay.schemas.manifest import Manifest

Result = TypeVar("Result")

PAGE_HEAD = 1024
"""Bytes of a page within which its title stands: by that it is told from the pages of others."""


def read_output(output: str, work: Callable[[Snapshot, Manifest], Result], console: Console, *, whole: bool = True) -> Result:
    """`read_snapshot` of an output folder by path or URI; what can't be written into it is said on the console."""
    return read_snapshot(existing_output(output), work, partial(console.print, markup=False), whole=whole)


@contextmanager
def writable(to: str | None) -> Iterator[None]:
    """Say what to do where the file that the block writes can't be written.

    Args:
        to: The file, as the user named it; None is one in the output folder.

    Raises:
        OutputError: It can't.
    """
    try:
        yield
    except OSError as error:
        if is_disk_full(error):
            raise
        where = to or "a file in OUTPUT"
        raise OutputError(errors.TO_NOT_WRITABLE, path=where, reason=error) from error


def rows_of(manifest: Manifest) -> int:
    """Rows of the output."""
    return manifest.count_scored_rows().total()


def page_file(output: Folder, to: str | None, kind: str) -> tuple[Folder, str]:
    """Folder and name of the page to write.

    Args:
        output: The output folder.
        to: File, as a path or URI.
        kind: report or review: a page of ours of the same kind is written anew; `KIND.html` in OUTPUT if none is named.

    Raises:
        OutputError: Something else stands there, or it can't be written.
    """
    place, name = open_file(to) if to else (output, f"{kind}.html")
    page, uri = file_of(place, name), place.strip_credentials(name)
    refuse_inside(output, page, uri)
    check_writable(page, uri)
    info = page.fs.get_file_info(page.root)
    if info.type == FileType.File and info.size:  # an empty one is what mktemp makes
        with page.fs.open_input_stream(page.root) as stream:
            if f"<title>RAGAssay {kind}: ".encode() not in stream.read(PAGE_HEAD):
                raise OutputError(errors.TO_FOREIGN_PAGE, path=uri, kind=kind)
    return place, name
