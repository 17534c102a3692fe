"""The reduce, `fit`: moments a partition and a member, kept in `stats/`; merged, they give mu and sigma."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import fs as pafs
from pyarrow import parquet as pq

from ragassay.jobs.config import Job, Normalize
from ragassay.jobs.input.types import merge_schemas
from ragassay.jobs.output.partitions import batches, history, partitions
from ragassay.jobs.score.plan import DRIVER_CPUS
from ragassay.jobs.storage import READERS, Folder
from ragassay.pipeline.contain import contain
from ragassay.pipeline.detectors.config import DETECTOR
from ragassay.pipeline.errors import FitError, OutputError
from ragassay.pipeline.slm.config import Value
from ragassay.pipeline.slm.score import member_values
from ragassay.pipeline.verdict.moments import merge, moments_of
from ragassay.pipeline.verdict.normalize import Fit, fit_detector, fit_member
from ragassay.schemas.columns import MEMBER, Status, passthrough_of_raw
from ragassay.schemas.stats import Moments, PartitionStats

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]


def fit_output(job: Job, output: Folder) -> dict[str, PartitionStats]:
    """Bring `stats/` up to date with `raw/`: only partitions whose raw files are new are read, and of them only scores.

    Returns:
        Statistics by partition.

    Raises:
        OutputError: There is nothing scored.
    """
    import ray

    raw = partitions(output, "raw")
    if not raw:
        raise OutputError(f"output {output.uri} holds no scored rows: run `ragassay score INPUT {output.uri}` first")
    values = job.values
    stats: dict[str, PartitionStats] = {}
    tasks: dict[str, Any] = {}
    remote = ray.remote(num_cpus=DRIVER_CPUS)(partition_stats)
    for partition, files in raw.items():
        known = known_stats(output, partition)
        if known and known.values == values and known.raw_files == _names(files):
            stats[partition] = known
        else:
            tasks[partition] = remote.remote(output.fs, partition, files, values)
    for partition, task in tasks.items():
        stats[partition] = ray.get(task)
        output.write(_stats_path(partition), stats[partition].to_json())
    return dict(sorted(stats.items()))


def known_stats(output: Folder, place: str) -> PartitionStats | None:
    """Statistics of a partition as `stats/` holds them; None where there are none, or of another version."""
    text = output.read(_stats_path(place))
    try:
        return PartitionStats.from_json(text) if text else None
    except ValueError:
        return None


def fits_of(
    settings: Normalize, values: Mapping[str, str], stats: Mapping[str, PartitionStats], run: Sequence[str], last: int
) -> dict[str, Fit]:
    """mu and sigma of every member.

    Args:
        settings: Where they come from.
        values: Member -> which of its numbers is used.
        stats: Statistics of every partition of the output folder.
        run: The partitions that are being finalised.
        last: How far a history goes back (`jobs.output.partitions.history`).

    Raises:
        FitError: There are no scores, or sigma = 0; or a frozen file lacks a member.
    """
    if settings.source == "frozen":
        return _frozen(settings.file or "", values)
    chosen = [*run, *(history(stats, run, last) if settings.source == "history" else [])]
    merged = {m: merge(stats[p].members.get(m, Moments()) for p in sorted(chosen)) for m in values}
    return {m: fit_detector(moments) if values[m] == DETECTOR else fit_member(m, moments) for m, moments in merged.items()}


def partition_stats(fs: pafs.FileSystem, partition: str, files: Sequence[str], values: dict[str, str]) -> PartitionStats:
    """Statistics of one partition, read in batches; only the score columns are read."""
    members: dict[str, list[Moments]] = {name: [] for name in values}
    mass: dict[str, list[Moments]] = {name: [] for name in values}
    rows: Counter[str] = Counter()
    sentences = 0
    for batch in batches(fs, files, ["members", "status"]):
        rows.update(batch["status"].to_pylist())
        for scores, counts in readable_scores(batch, values):
            sentences += int(counts.sum())
            for name, array in scores.items():
                members[name].append(moments_of(array[~np.isnan(array)]))
        for name, member in member_structs(batch, [name for name in values if values[name] != DETECTOR]).items():
            mass[name].append(_label_mass(member))
    return PartitionStats(
        partition=partition,
        members={name: merge(parts) for name, parts in members.items()},
        values=values,
        label_mass={name: merge(parts) for name, parts in mass.items()},
        rows=dict(rows),
        sentences=sentences,
        raw_files=_names(files),
    )


def raw_schemas(fs: pafs.FileSystem, files: Sequence[str]) -> list[pa.Schema]:
    """The user's columns in each of these raw files."""
    with ThreadPoolExecutor(READERS) as readers:
        return list(readers.map(lambda path: passthrough_of_raw(pq.read_schema(path, filesystem=fs)), files))


def merged_passthrough(schemas: Iterable[pa.Schema]) -> pa.Schema:
    """The user's columns of one partition, with types that hold those of all its files.

    Raises:
        OutputError: A column has types that don't fit together.
    """
    try:
        return merge_schemas(dict.fromkeys(schemas))
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise OutputError(
            f"a column has another type than in logs that this output already holds: {error}. Cast it, rename it, or give "
            "another OUTPUT"
        ) from error


def readable_scores(batch: pa.RecordBatch, values: Mapping[str, str]) -> list[tuple[dict[str, Floats], Counts]]:
    """`scores_of` stretches that are, together, a batch less the rows for which it raises: `finalize` gives those the status
    `error`."""
    found = contain(batch.num_rows, lambda some: scores_of(batch[some], values), lambda _, __: None)
    return [scores for scores in found if scores is not None]


def scores_of(batch: pa.RecordBatch, values: Mapping[str, str]) -> tuple[dict[str, Floats], Counts]:
    """Members' values of a batch of rows of `raw/` or `scored/`.

    Args:
        batch: Rows with `members` and `status`.
        values: Member -> which number is wanted.

    Returns:
        Member -> float64 array, the values of all sentences of the rows with status ok, one after the other, NaN where it has
        none; and the number of sentences a row with status ok.

    Raises:
        OutputError: The rows lack one of the members, or it is of another kind there.
    """
    structs = member_structs(batch, list(values))
    counts = np.array([], dtype=np.int64)
    for member in structs.values():
        counts = pc.list_value_length(member.field("sentence_scores")).to_numpy().astype(np.int64)
    return {name: _values(name, member, values[name]) for name, member in structs.items()}, counts


def _values(name: str, member: pa.StructArray, value: str) -> Floats:
    """A member's number of every sentence, NaN where it has none: a detector's own, or one made of an SLM's log P."""
    yes = member.field("log_p_yes")
    if (len(yes) - yes.null_count) if value == DETECTOR else yes.null_count:
        kind, other = ("an SLM", "a detector") if value == DETECTOR else ("a detector", "an SLM")
        raise OutputError(f"member {name!r} is {kind} in these scores, and {other} in the job file: name it as what it is")
    if value == DETECTOR:
        return np.asarray(member.field("sentence_scores").flatten().to_numpy(zero_copy_only=False), dtype=np.float64)
    return member_values(Value(value), *(member.field(key).flatten().to_numpy() for key in ("log_p_yes", "log_p_no")))


def member_structs(batch: pa.RecordBatch, names: Sequence[str]) -> dict[str, pa.StructArray]:
    """What each member says of the rows with status ok: member -> one struct a row (`schemas.columns.MEMBER`).

    Raises:
        OutputError: The rows lack one of the members.
    """
    members = batch["members"].filter(pc.equal(batch["status"], Status.OK.value))
    if len(members) == 0:
        return {name: pa.array([], MEMBER) for name in names}
    size = len(members[0])
    flat = members.flatten()
    found = flat.field("name").to_numpy(zero_copy_only=False).reshape(-1, size)
    structs = {}
    for name in names:
        place = np.flatnonzero(found[0] == name)
        if len(place) != 1 or not (found[:, place[0]] == name).all():
            raise OutputError(f"the scored rows have no member {name!r}; they have {sorted(set(found[0]))}")
        structs[name] = flat.take(pa.array(np.arange(place[0], len(flat), size)))
    return structs


def _label_mass(member: pa.StructArray) -> Moments:
    """P(yes) + P(no) of every sentence, by an SLM."""
    yes, no = (member.field(name).flatten().to_numpy().astype(np.float64) for name in ("log_p_yes", "log_p_no"))
    return moments_of(np.exp(np.logaddexp(yes, no)))


def _frozen(path: str, values: Mapping[str, str]) -> dict[str, Fit]:
    members = list(values)
    try:
        data = json.loads(Path(path).read_text(encoding="utf-8"))
        if "runs" in data:
            data = next((run["fit"]["members"] for run in reversed(data["runs"]) if run["fit"].get("members")), {})
        fits = {m: Fit(**{key: data[m][key] for key in ("mu", "sigma", "count", "low")}) for m in members}
    except OSError as error:
        raise FitError(f"frozen statistics {path}: {error.strerror or error}") from error
    except (ValueError, TypeError, KeyError) as error:
        raise FitError(
            f"frozen statistics {path} must hold mu, sigma, count and low of {', '.join(members)}, or be a manifest.json: "
            f"{type(error).__name__} {error}"
        ) from error
    for name, fit in fits.items():
        if not (np.isfinite([fit.mu, fit.sigma, fit.low]).all() and fit.sigma > 0):
            raise FitError(f"frozen statistics {path}: SLM {name!r} has mu {fit.mu} and sigma {fit.sigma}; sigma must be > 0")
        if data[name].get("value", values[name]) != values[name]:
            raise FitError(f"frozen statistics {path}: those of SLM {name!r} are of {data[name]['value']}, not {values[name]}")
    return fits


def _names(files: Sequence[str]) -> list[str]:
    return sorted(path.rpartition("/")[2] for path in files)


def _stats_path(partition: str) -> str:
    return f"stats/{partition}/stats.json" if partition else "stats/stats.json"
