"""Find the logs of a job: the files at INPUT, or the traces converted from an export."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from tempfile import TemporaryDirectory

from rich.console import Console

from ragassay.jobs.config.input import InputConfig
from ragassay.jobs.display.address import strip_credentials
from ragassay.jobs.input import Logs, check_no_overlap, find_logs
from ragassay.jobs.integrations.traces import errors
from ragassay.jobs.integrations.traces.convert import RECORD_FILE, TRACES_FOLDER, convert_export, read_record
from ragassay.jobs.integrations.traces.read_export import find_export_files
from ragassay.jobs.output.lock import lock_output
from ragassay.jobs.output.manifest import read_manifest
from ragassay.jobs.storage.folder import Folder, open_folder
from ragassay.pipeline.errors import InputError


def find_job_logs(
    config: InputConfig,
    uri: str,
    output: Folder,
    *,
    is_kept: bool = True,
    is_converted: bool = False,
    wait_seconds: float = 0.0,
    console: Console | None = None,
) -> tuple[Logs, dict[str, int]]:
    """Find the logs of a job. With a preset, stage the export below the output folder first.

    Args:
        config: The `input` section of the job.
        uri: INPUT.
        output: The output folder.
        is_kept: Whether the output folder persists.
        is_converted: Whether the traces are converted already.
        wait_seconds: Seconds to wait for another command that writes to the output folder.
        console: Console that shows the wait.

    Returns:
        The logs, and the counts of the conversion; empty without a preset or without new traces.

    Raises:
        RagassayError: INPUT can't be read as configured, or the output folder is inside the export.
    """
    if config.preset is None:
        return find_logs(uri, config, lambda: read_manifest(output).runs), {}
    if is_converted:
        return _find_converted_logs(output, strip_credentials(uri)), {}
    export = find_export_files(uri)
    check_no_overlap(export, output, is_trace_export=True)
    with lock_output(output, "run", wait_seconds, console):
        counts = convert_export(export, output, config.preset, config.hold_days, config.skips_bad_files)
    if not output.list(TRACES_FOLDER, ".parquet"):
        raise InputError(
            errors.NONE_WHOLE,
            uri=uri,
            traces=read_record(output, config.preset).pending,
            kept=f"; {output.format_address(RECORD_FILE)} keeps what was read" if is_kept else "",
        )
    return _find_converted_logs(output, strip_credentials(uri)), counts


def _find_converted_logs(output: Folder, uri: str) -> Logs:
    """Find the converted traces. File URIs are relative to OUTPUT, so the folder can be moved."""
    logs = find_logs(output.uri_of(TRACES_FOLDER))
    base = len(output.path(TRACES_FOLDER)) + 1
    files, unreadable = (
        [replace(file, uri=f"output://{TRACES_FOLDER}/{file.fs_path[base:]}") for file in part]
        for part in (logs.files, logs.unreadable)
    )
    return replace(logs, uri=uri, files=files, unreadable=unreadable)


@contextmanager
def preview_job_logs(config: InputConfig, uri: str) -> Iterator[Logs]:
    """Find the logs of a job without writing to its output: traces are converted in a temporary folder."""
    if config.preset is None:
        yield find_logs(uri, config)
        return
    with TemporaryDirectory(prefix="ragassay-plan-") as folder:
        yield find_job_logs(config, uri, open_folder(folder), is_kept=False)[0]
