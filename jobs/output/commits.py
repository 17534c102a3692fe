"""Read and clean up the files in which Ray Data commits the rows of a plan by `row_key`."""

from ragassay.jobs.runtime.sink import COMMITTED_SUFFIX, PENDING_SUFFIX
from ragassay.jobs.storage.folder import Folder


def list_committed_files(output: Folder, checkpoint: str) -> list[str]:
    """List the checkpoint files of committed rows."""
    return [path for path in _list_checkpoint_files(output, checkpoint) if not path.endswith(PENDING_SUFFIX)]


def has_pending(output: Folder, checkpoint: str) -> bool:
    """Return whether a commit was started and not completed, so that the dataset may contain rows that are not committed."""
    return any(path.endswith(PENDING_SUFFIX) for path in _list_checkpoint_files(output, checkpoint))


def discard_pending(output: Folder, checkpoint: str, dataset: str) -> None:
    """Delete what the unfinished commits of a killed run wrote, so that their rows are processed again.

    Ray writes a pending checkpoint file, then the data of the rows, then renames the pending file to commit them. If both
    exist, a copy or rewrite was cut off, and the data may be truncated.

    Args:
        output: The output folder.
        checkpoint: Folder in it in which Ray commits rows.
        dataset: Folder in it with the data.
    """
    paths = _list_checkpoint_files(output, checkpoint)
    pending = [path for path in paths if path.endswith(PENDING_SUFFIX)]
    if not pending:
        return
    for path in {path.removesuffix(PENDING_SUFFIX) + COMMITTED_SUFFIX for path in pending} & set(paths):
        output.fs.delete_file(path)
    # A data file has the same name, followed by a number.
    names = tuple(path.rpartition("/")[2].removesuffix(PENDING_SUFFIX) + "-" for path in pending)
    for info in output.list(dataset, ".parquet"):
        if info.base_name.startswith(names):
            output.fs.delete_file(info.path)
    delete_pending_markers(output, checkpoint)  # last, because pending files show what must be deleted


def delete_pending_markers(output: Folder, checkpoint: str) -> None:
    """Delete only the pending checkpoint files.

    Use it if every row is committed. A pending file then belongs to a task that Ray gave up, and must not make a later run
    delete data.
    """
    for path in _list_checkpoint_files(output, checkpoint):
        if path.endswith(PENDING_SUFFIX):
            output.fs.delete_file(path)


def _list_checkpoint_files(output: Folder, checkpoint: str) -> list[str]:
    return [info.path for info in output.list(checkpoint, COMMITTED_SUFFIX)]
