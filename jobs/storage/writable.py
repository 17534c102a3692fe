"""Whether a file can be written, asked before the work whose result it is to hold."""

import os
from pathlib import Path
from uuid import uuid4

from pyarrow import fs as pafs

from ragassay.jobs import errors
from ragassay.jobs.storage.folder import Folder, file_of, open_file, refuse_inside
from ragassay.pipeline.errors import OutputError


def check_writable(target: Folder, dest: str) -> None:
    """Check that a file can be written; nothing is left behind.

    On a disk a file is made beside it, or its folder is asked where that is still to be made. An object store is asked for the
    bucket and for what stands there: a right to write shows only when something is written.

    Args:
        target: The file, as `jobs.storage.folder.file_of` gives it; one that is there will be replaced.
        dest: The file as the user named it.

    Raises:
        OutputError: It is a folder, or can't be written where it is.
    """
    try:
        if target.fs.get_file_info(target.root).type == pafs.FileType.Directory or dest.endswith("/"):
            raise OutputError(errors.IS_FOLDER, path=dest)
        if target.is_local:
            _try_beside(Path(target.root))
        elif target.fs.get_file_info(target.root.partition("/")[0]).type == pafs.FileType.NotFound:
            raise OutputError(errors.NO_BUCKET, path=dest, bucket=target.root.partition("/")[0])
    except OSError as error:
        raise OutputError(errors.NOT_WRITABLE, path=dest, reason=error.strerror or error) from error


def new_file(dest: str, output: Folder | None) -> Folder:
    """A file that can be written and is not there yet.

    Args:
        dest: It, as a path or URI.
        output: The output folder that it is made from.

    Raises:
        OutputError: It is there already, lies among the output's data, or can't be written.
    """
    file = file_of(*open_file(dest))
    if output is not None:
        refuse_inside(output, file, dest)
    check_writable(file, dest)
    if file.fs.get_file_info(file.root).type != pafs.FileType.NotFound:
        raise OutputError(errors.EXISTS, path=dest)
    return file


def _try_beside(path: Path) -> None:
    folder = path.parent
    if folder.is_dir():
        part = folder / f"{path.name}.{uuid4().hex[:8]}.part"
        part.touch(exist_ok=False)
        part.unlink()
        return
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    if not folder.is_dir():
        raise OSError(None, f"{folder} is no folder")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise OSError(None, f"no folder can be made in {folder}")
