"""Resolve the paths of files that commands write, and name those that can't be written."""

from collections.abc import Iterator
from contextlib import contextmanager

from pyarrow.fs import FileType

from ragassay.jobs.cli import errors
from ragassay.jobs.runtime.endings import is_disk_full
from ragassay.jobs.storage.folder import Folder, check_outside_output, make_file_folder, open_file_folder, open_folder
from ragassay.jobs.storage.writable import check_writable
from ragassay.pipeline.errors import OutputError

PAGE_HEAD = 1024
"""Bytes of a page that contain its title, by which our own pages are recognized."""


@contextmanager
def name_unwritable(out: str | None) -> Iterator[None]:
    """Name the file and the option to change if the file that the block writes can't be written.

    Args:
        out: Path of the file; None is a file in the output folder.

    Raises:
        OutputError: The file can't be written.
    """
    try:
        yield
    except OSError as error:
        if is_disk_full(error):
            raise
        raise OutputError(errors.OUT_NOT_WRITABLE, path=out or "a file in OUTPUT", reason=error) from error


def resolve_page_path(output: Folder, out: str | None, kind: str, index: str | None = None) -> tuple[Folder, str]:
    """Return folder and name of the page to write.

    Args:
        output: The output folder.
        out: Path or URI of the page; None is `KIND.html` in the output folder.
        kind: report or review. An existing page of the same kind is replaced.
        index: Name of the index if a folder of pages is written: `out` is the folder then, and None is `KIND` in the output
            folder.

    Raises:
        OutputError: Another file has this path, or the page can't be written.
    """
    if index is not None:
        folder, name = (open_folder(out) if out else open_folder(output.uri_of(kind))), index
    else:
        folder, name = open_file_folder(out) if out else (output, f"{kind}.html")
    page, uri = make_file_folder(folder, name), folder.format_address(name)
    check_outside_output(output, page, uri)
    check_writable(page, uri)
    info = page.fs.get_file_info(page.root)
    if info.type == FileType.File and info.size:  # mktemp makes empty files
        with page.fs.open_input_stream(page.root) as stream:
            if f"<title>RAGAssay {kind}: ".encode() not in stream.read(PAGE_HEAD):
                raise OutputError(errors.OUT_FOREIGN_PAGE, path=uri, kind=kind)
    return folder, name
