"""An output folder and its input must lie apart, or the next night reads verdicts as logs."""

from ragassay.jobs.input import errors
from ragassay.jobs.input.files import Logs
from ragassay.jobs.storage.folder import Folder, is_hidden, real_path
from ragassay.pipeline.errors import InputError

_JSON = ("manifest.json", "estimate.json", "evaluation.json", "judge/judge.json", "stats/stats.json", "stats/{day}/stats.json")
_DAY = "dt=2026-11-23"  # such as rows of traces lie under


def refuse_overlap(logs: Logs, output: Folder, *, export: bool = False) -> None:
    """Refuse an output folder that lies in its input, or holds a part of it; links are followed.

    A place that is passed over when the input is searched, such as `logs/_audit`, or that its glob does not mean, is none.

    Args:
        logs: What was found of the input.
        output: The output folder.
        export: Whether it is an export of traces: JSON is read of it too, and the output is partitioned by days.

    Raises:
        InputError: It does.
    """
    if type(logs.fs) is not type(output.fs):
        return
    root = real_path(output.fs, output.root)
    inside = [f.uri for f in (*logs.files, *logs.unreadable) if real_path(logs.fs, f.fs_path).startswith(root + "/")]
    if inside:
        raise InputError(errors.HOLDS_OUTPUT, uri=logs.uri, file=inside[0])
    above = [folder for folder in logs.folders if f"{root}/".startswith(f"{folder.rstrip('/')}/")]
    if not above:
        return
    nearest = max(above, key=len)
    below = root[len(nearest) :].strip("/")
    if below and is_hidden(below):
        return
    named = "/".join(filter(None, [logs.folders[nearest].rstrip("/"), below]))
    places = {_DAY} if export else {f.partition_path for f in logs.files}
    ours = ["/".join(filter(None, [named, d, place, "part-0.parquet"])) for d in ("raw", "scored") for place in places]
    others = [f"{named}/{name.format(day=_DAY)}" for name in _JSON] if export else []
    means = logs.pattern is not None and any(map(logs.pattern.fullmatch, [f"{named}/frequencies.parquet", *ours, *others]))
    if logs.pattern is None or means or (logs.any_name is not None and any(map(logs.any_name.fullmatch, ours))):
        raise InputError(errors.INSIDE_INPUT, output=output.uri, input=logs.uri)
