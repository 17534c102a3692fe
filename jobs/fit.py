"""The reduce, `fit`: moments a partition and a member, kept in `stats/`; merged, they give mu and sigma."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import fs as pafs
from pyarrow import parquet as pq

from jobs.config import Job, Normalize
from jobs.partitions import batches, partitions
from jobs.storage import Folder
from pipeline.errors import FitError, OutputError
from pipeline.moments import merge, moments_of
from pipeline.normalize import Fit, fit_member
from pipeline.score import member_values
from pipeline.slm import Value
from schemas.columns import Status, passthrough_of_raw
from schemas.stats import Moments, PartitionStats

Floats = npt.NDArray[np.float64]


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
    values = {slm.name: slm.value.value for slm in job.slms}
    stats: dict[str, PartitionStats] = {}
    tasks: dict[str, Any] = {}
    remote = ray.remote(num_cpus=0.5)(partition_stats)
    for partition, files in raw.items():
        text = output.read(_stats_path(partition))
        known = PartitionStats.from_json(text) if text else None
        if known and known.values == values and known.raw_files == _names(files):
            stats[partition] = known
        else:
            tasks[partition] = remote.remote(output.fs, partition, files, values)
    for partition, task in tasks.items():
        stats[partition] = ray.get(task)
        output.write(_stats_path(partition), stats[partition].to_json())
    return dict(sorted(stats.items()))


def fits_of(
    settings: Normalize, values: dict[str, str], stats: dict[str, PartitionStats], run: Sequence[str]
) -> dict[str, Fit]:
    """mu and sigma of every member.

    Args:
        settings: Where they come from.
        values: Member -> which of its numbers is used.
        stats: Statistics of every partition of the output folder.
        run: The partitions that are being finalised.

    Raises:
        FitError: There are no scores, or sigma = 0; or a frozen file lacks a member.
    """
    if settings.source == "frozen":
        return _frozen(settings.file or "", values)
    chosen = run if settings.source == "run" else list(stats)
    return {m: fit_member(m, merge(stats[p].members.get(m, Moments()) for p in sorted(chosen))) for m in values}


def partition_stats(fs: pafs.FileSystem, partition: str, files: Sequence[str], values: dict[str, str]) -> PartitionStats:
    """Statistics of one partition, read in batches; only the score columns are read."""
    members: dict[str, list[Moments]] = {name: [] for name in values}
    rows: Counter[str] = Counter()
    sentences = 0
    for batch in batches(fs, files, ["members", "status"]):
        rows.update(batch["status"].to_pylist())
        scores, counts = scores_of(batch, values)
        sentences += int(counts.sum())
        for name, array in scores.items():
            members[name].append(moments_of(array))
    return PartitionStats(
        partition, {n: merge(parts) for n, parts in members.items()}, values, dict(rows), sentences, _names(files)
    )


def raw_passthrough(fs: pafs.FileSystem, files: Sequence[str], extra: Sequence[pa.Schema] = ()) -> pa.Schema:
    """The user's columns in raw files of one partition, and in further schemas, with types that hold them all.

    Raises:
        OutputError: A column has types that don't fit together.
    """
    schemas = [*(passthrough_of_raw(pq.read_schema(path, filesystem=fs)) for path in files), *extra]
    try:
        return pa.unify_schemas(schemas, promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise OutputError(
            f"a column has another type than in logs that this output already holds: {error}. Cast it, rename it, or give "
            "another OUTPUT"
        ) from error


def scores_of(batch: pa.RecordBatch, values: dict[str, str]) -> tuple[dict[str, Floats], npt.NDArray[np.int64]]:
    """Members' values of a batch of raw rows.

    Args:
        batch: Rows with `members` and `status`.
        values: Member -> which number is wanted.

    Returns:
        Member -> float64 array, the values of all sentences of the rows with status ok, one after the other; and the number
        of sentences a row with status ok.

    Raises:
        OutputError: The rows lack one of the members.
    """
    members = batch["members"].filter(pc.equal(batch["status"], Status.OK.value))
    if len(members) == 0:
        return {name: np.array([]) for name in values}, np.array([], dtype=np.int64)
    size = len(members[0])
    flat = members.flatten()
    names = flat.field("name").to_numpy(zero_copy_only=False).reshape(-1, size)
    result: dict[str, Floats] = {}
    counts = np.array([], dtype=np.int64)
    for name, value in values.items():
        place = np.flatnonzero(names[0] == name)
        if len(place) != 1 or not (names[:, place[0]] == name).all():
            raise OutputError(f"the scored rows have no member {name!r}; they have {sorted(set(names[0]))}")
        structs = flat.take(pa.array(np.arange(place[0], len(flat), size)))
        counts = pc.list_value_length(structs.field("sentence_scores")).to_numpy().astype(np.int64)
        yes = structs.field("log_p_yes")
        if yes.null_count:
            result[name] = structs.field("sentence_scores").flatten().to_numpy().astype(np.float64)
        else:
            result[name] = member_values(Value(value), yes.flatten().to_numpy(), structs.field("log_p_no").flatten().to_numpy())
    return result, counts


def _frozen(path: str, values: dict[str, str]) -> dict[str, Fit]:
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
