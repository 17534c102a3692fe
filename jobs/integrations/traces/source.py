"""What a job reads: the files that INPUT names, or the traces that an export was staged as."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from tempfile import TemporaryDirectory

from rich.console import Console

from ragassay.jobs.config.input import InputConfig
from ragassay.jobs.display.address import strip_credentials
from ragassay.jobs.input import Logs, check_no_overlap, find_logs
from ragassay.jobs.integrations.traces import errors
from ragassay.jobs.integrations.traces.export import export_files
from ragassay.jobs.integrations.traces.stage import RECORD, TRACES, read_record, stage
from ragassay.jobs.output.lock import lock_output
from ragassay.jobs.output.manifest import read_manifest
from ragassay.jobs.storage.folder import Folder, open_folder
from ragassay.pipeline.errors import InputError


def logs_of(
    config: InputConfig,
    uri: str,
    output: Folder,
    *,
    kept: bool = True,
    staged: bool = False,
    wait: float = 0.0,
    console: Console | None = None,
) -> tuple[Logs, dict[str, int]]:
    """The logs of a job; those of a preset are staged below the output folder first.

    Args:
        config: What the input is.
        uri: INPUT.
        output: The output folder.
        kept: Whether it stays.
        staged: Whether the traces have been staged.
        wait: Seconds to wait for another command that writes into the output folder.
        console: Where the waiting is shown.

    Returns:
        The logs, and what was counted of traces; nothing for other logs, or where no trace is new.

    Raises:
        RagassayError: INPUT can't be read as what it is said to be, or the output folder lies in an export.
    """
    if config.preset is None:
        return find_logs(uri, config, lambda: read_manifest(output).runs), {}
    if staged:
        return _staged(output, strip_credentials(uri)), {}
    export = export_files(uri)
    check_no_overlap(export, output, is_trace_export=True)
    with lock_output(output, "run", wait, console):
        counts = stage(export, output, config.preset, config.hold_days, config.skips_bad_files)
    if not output.list(TRACES, ".parquet"):
        raise InputError(
            errors.NONE_WHOLE,
            uri=uri,
            traces=read_record(output, config.preset).pending,
            kept=f"; {output.format_address(RECORD)} keeps what was read" if kept else "",
        )
    return _staged(output, strip_credentials(uri)), counts


def _staged(output: Folder, uri: str) -> Logs:
    """The traces that are staged. Their files' URIs say where in OUTPUT they lie, and not where it lies: it may be moved."""
    logs = find_logs(output.uri_of(TRACES))
    base = len(output.path(TRACES)) + 1
    files, unreadable = (
        [replace(file, uri=f"output://{TRACES}/{file.fs_path[base:]}") for file in some]
        for some in (logs.files, logs.unreadable)
    )
    return replace(logs, uri=uri, files=files, unreadable=unreadable)


@contextmanager
def logs_to_look_at(config: InputConfig, uri: str) -> Iterator[Logs]:
    """The logs of a job where nothing is to be written: traces are staged in a folder that goes away."""
    if config.preset is None:
        yield find_logs(uri, config)
        return
    with TemporaryDirectory(prefix="ragassay-plan-") as folder:
        yield logs_of(config, uri, open_folder(folder), kept=False)[0]
