"""The files in which Ray Data commits the rows of a plan, by their `row_key`, and what a killed run left there."""

from ragassay.jobs.storage.folder import Folder

COMMITTED, _PENDING = ".parquet", ".pending.parquet"  # the first is the end of both


def committed_files(output: Folder, checkpoint: str) -> list[str]:
    """Checkpoint files of rows that are committed."""
    return [path for path in _checkpoint_files(output, checkpoint) if not path.endswith(_PENDING)]


def has_pending(output: Folder, checkpoint: str) -> bool:
    """Whether a commit was begun and not ended, so that the dataset may hold rows that are not committed."""
    return any(path.endswith(_PENDING) for path in _checkpoint_files(output, checkpoint))


def clear_pending(output: Folder, checkpoint: str, dataset: str) -> None:
    """Delete what a killed run's unfinished commits left behind, so that their rows are done again.

    Ray writes a pending checkpoint file, then the rows' data, then renames the one to commit the other. Where both stand, an
    object store was renaming by copy and delete, or a task that Ray repeats was writing the data anew: it may be cut off.

    Args:
        output: The output folder.
        checkpoint: The folder in it in which Ray commits.
        dataset: The folder in it with the data.
    """
    paths = _checkpoint_files(output, checkpoint)
    pending = [path for path in paths if path.endswith(_PENDING)]
    if not pending:
        return
    for path in {path.removesuffix(_PENDING) + COMMITTED for path in pending} & set(paths):
        output.fs.delete_file(path)
    # A data file bears the same name, and a number behind it.
    names = tuple(path.rpartition("/")[2].removesuffix(_PENDING) + "-" for path in pending)
    for info in output.list(dataset, ".parquet"):
        if info.base_name.startswith(names):
            output.fs.delete_file(info.path)
    forget_pending(output, checkpoint)  # last: until then, it tells what is to be deleted


def forget_pending(output: Folder, checkpoint: str) -> None:
    """Delete pending checkpoint files, and nothing else.

    Where every row is known to be committed, what is pending came from a task that Ray had given up, and must not make a later
    run delete data.
    """
    for path in _checkpoint_files(output, checkpoint):
        if path.endswith(_PENDING):
            output.fs.delete_file(path)


def _checkpoint_files(output: Folder, checkpoint: str) -> list[str]:
    return [info.path for info in output.list(checkpoint, COMMITTED)]
