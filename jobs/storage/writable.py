"""Check that a file can be written, before the work that produces its content."""

import os
from pathlib import Path
from uuid import uuid4

from pyarrow import fs as pafs

from ragassay.jobs import errors
from ragassay.jobs.storage.folder import Folder, check_outside_output, make_file_folder, open_file_folder
from ragassay.pipeline.errors import OutputError


def check_writable(target: Folder, user_path: str) -> None:
    """Check that a file can be written; nothing is left behind.

    On a disk, a temporary file is created in the same folder; if the folder does not exist, the rights of its closest parent
    are checked. In an object store, only the bucket and an existing object are checked: a missing right shows only on a write.

    Args:
        target: The file, from `jobs.storage.folder.make_file_folder`. It may exist.
        user_path: Path of the file as the user named it.

    Raises:
        OutputError: The path is a folder, or the file can't be written.
    """
    try:
        if target.fs.get_file_info(target.root).type == pafs.FileType.Directory or user_path.endswith("/"):
            raise OutputError(errors.IS_FOLDER, path=user_path)
        if target.is_local:
            _check_disk_writable(Path(target.root))
        elif target.fs.get_file_info(target.root.partition("/")[0]).type == pafs.FileType.NotFound:
            raise OutputError(errors.NO_BUCKET, path=user_path, bucket=target.root.partition("/")[0])
    except OSError as error:
        raise OutputError(errors.NOT_WRITABLE, path=user_path, reason=error.strerror or error) from error


def prepare_new_file(user_path: str, output: Folder | None) -> Folder:
    """Check that a file can be written and does not exist yet.

    Args:
        user_path: Path or URI of the file.
        output: Output folder that its content comes from.

    Returns:
        The file, as `jobs.storage.folder.make_file_folder` returns it.

    Raises:
        OutputError: The file exists, is part of the output's data, or can't be written.
    """
    file = make_file_folder(*open_file_folder(user_path))
    if output is not None:
        check_outside_output(output, file, user_path)
    check_writable(file, user_path)
    if file.fs.get_file_info(file.root).type != pafs.FileType.NotFound:
        raise OutputError(errors.EXISTS, path=user_path)
    return file


def _check_disk_writable(path: Path) -> None:
    folder = path.parent
    if folder.is_dir():
        part_path = folder / f"{path.name}.{uuid4().hex[:8]}.part"
        part_path.touch(exist_ok=False)
        part_path.unlink()
        return
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    if not folder.is_dir():
        raise OSError(None, f"{folder} is not a folder")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise OSError(None, f"no folder can be created in {folder}")
