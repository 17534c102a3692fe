"""Check that the output folder and the input don't overlap; otherwise the next run would read verdicts as logs."""

from ragassay.jobs.input import errors
from ragassay.jobs.input.files import Logs
from ragassay.jobs.storage.folder import Folder, is_hidden, real_path
from ragassay.pipeline.errors import InputError

_JSON_FILES = (
    "manifest.json",
    "estimate.json",
    "evaluation.json",
    "judge/judge.json",
    "stats/stats.json",
    "stats/{day}/stats.json",
)
_EXAMPLE_DAY = "dt=2026-11-23"  # an example of the partitions of a trace export


def check_no_overlap(logs: Logs, output: Folder, *, is_trace_export: bool = False) -> None:
    """Refuse an output folder that is inside its input or contains a part of it. Links are followed.

    An output folder is accepted if the search for logs skips it, such as `logs/_audit`, or if the input's glob does not match
    it.

    Args:
        logs: Files of the input.
        output: The output folder.
        is_trace_export: Whether the input is a trace export: its JSON files are read too, and the output is partitioned by day.

    Raises:
        InputError: The folders overlap.
    """
    if type(logs.fs) is not type(output.fs):
        return
    root = real_path(output.fs, output.root)
    inside = [f.uri for f in (*logs.files, *logs.unreadable) if real_path(logs.fs, f.fs_path).startswith(root + "/")]
    if inside:
        raise InputError(errors.CONTAINS_OUTPUT, uri=logs.uri, output=output.uri, file=inside[0])
    containing = [folder for folder in logs.folders if f"{root}/".startswith(f"{folder.rstrip('/')}/")]
    if not containing:
        return
    nearest = max(containing, key=len)
    relative = root[len(nearest) :].strip("/")
    if relative and is_hidden(relative):
        return
    output_path = "/".join(filter(None, [logs.folders[nearest].rstrip("/"), relative]))
    partition_paths = {_EXAMPLE_DAY} if is_trace_export else {f.partition_path for f in logs.files}
    data_paths = [
        "/".join(filter(None, [output_path, folder, path, "part-0.parquet"]))
        for folder in ("raw", "scored")
        for path in partition_paths
    ]
    json_paths = [f"{output_path}/{name.format(day=_EXAMPLE_DAY)}" for name in _JSON_FILES] if is_trace_export else []
    is_matched = logs.pattern is not None and any(
        map(logs.pattern.fullmatch, [f"{output_path}/frequencies.parquet", *data_paths, *json_paths])
    )
    if (
        logs.pattern is None
        or is_matched
        or (logs.any_name_pattern is not None and any(map(logs.any_name_pattern.fullmatch, data_paths)))
    ):
        raise InputError(errors.INSIDE_INPUT, output=output.uri, input=logs.uri)
