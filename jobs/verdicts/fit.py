"""The reduce, `fit`: moments a partition and a member, kept in `stats/`; merged, they give mu and sigma."""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ragassay.jobs.config.verdict import Normalize
from ragassay.jobs.output.partitions import history
from ragassay.jobs.output.scored_dataset import ScoredDataset, open_raw
from ragassay.jobs.progress.task import advance, expect
from ragassay.jobs.runtime.clean_output import clean_task
from ragassay.jobs.runtime.resources import DRIVER_CPUS
from ragassay.jobs.storage.folder import Folder
from ragassay.jobs.verdicts import errors
from ragassay.pipeline.errors import FitError, OutputError
from ragassay.pipeline.members import NUMBERS, Value, logprobs_of, member_structs, readable_scores
from ragassay.pipeline.verdict.moments import merge, moments_of
from ragassay.pipeline.verdict.normalize import Fit
from ragassay.schemas.stats import Moments, PartitionStats


def fit_output(values: dict[str, str], output: Folder, without: Collection[str] = ()) -> dict[str, PartitionStats]:
    """Bring `stats/` up to date with `raw/`: only partitions whose raw files are new are read, and of them only scores.

    Args:
        values: Member -> which of its numbers is normalized.
        output: The output folder.
        without: Hive paths of partitions that are not whole yet, which don't count.

    Returns:
        Statistics by partition.

    Raises:
        OutputError: There is nothing scored.
    """
    import ray

    raw = open_raw(output).without(without).partitions
    if not raw:
        raise OutputError(errors.NO_SCORED_ROWS, output=output.uri)
    stats: dict[str, PartitionStats] = {}
    tasks: dict[str, Any] = {}
    remote = ray.remote(num_cpus=DRIVER_CPUS)(clean_task(partition_stats))
    for partition, part in raw.items():
        known = known_stats(output, partition)
        if known and known.values == values and known.raw_files == _names(part):
            stats[partition] = known
        else:
            tasks[partition] = remote.remote(part, values)
    expect(len(tasks), "partitions")
    for partition, task in tasks.items():
        stats[partition] = ray.get(task)
        advance(1, "partitions")
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
    return {m: Value(values[m]).fit(m, moments) for m, moments in merged.items()}


def partition_stats(raw: ScoredDataset, values: dict[str, str]) -> PartitionStats:
    """Statistics of one partition, read in batches; only the score columns are read."""
    found = stats_of((rows.batch for rows in raw.batches(NUMBERS)), values)
    return replace(found, partition=raw.files[0].partition, raw_files=_names(raw))


def stats_of(rows: Iterable[pa.RecordBatch], values: dict[str, str]) -> PartitionStats:
    """Statistics of rows of `raw/`, wherever they are.

    Args:
        rows: Batches with the columns NUMBERS.
        values: Member -> which of its numbers is used.
    """
    members: dict[str, list[Moments]] = {name: [] for name in values}
    mass: dict[str, list[Moments]] = {name: [] for name in values}
    statuses: Counter[str] = Counter()
    sentences = 0
    for batch in rows:
        statuses.update(batch["status"].to_pylist())
        for scores, counts in readable_scores(batch, values):
            sentences += int(counts.sum())
            for name, array in scores.items():
                members[name].append(moments_of(array[~np.isnan(array)]))
        for name, member in member_structs(batch, [name for name in values if Value(values[name]).of_logprobs]).items():
            mass[name].append(_label_mass(member))
    return PartitionStats(
        partition="",
        members={name: merge(parts) for name, parts in members.items()},
        values=values,
        label_mass={name: merge(parts) for name, parts in mass.items()},
        rows=dict(statuses),
        sentences=sentences,
        raw_files=[],
    )


def _label_mass(member: pa.StructArray) -> Moments:
    """P(yes) + P(no) of every sentence, by an SLM."""
    return moments_of(np.exp(np.logaddexp(*logprobs_of(member))))


def _frozen(path: str, values: Mapping[str, str]) -> dict[str, Fit]:
    members = list(values)
    try:
        data = json.loads(Path(path).read_text(encoding="utf-8"))
        if "runs" in data:
            data = next((run["fit"]["members"] for run in reversed(data["runs"]) if run["fit"] and run["fit"]["members"]), {})
        fits = {m: Fit(**{key: data[m][key] for key in ("mu", "sigma", "count", "low")}) for m in members}
    except OSError as error:
        raise FitError(errors.UNREADABLE_STATISTICS, path=path, reason=error.strerror or error) from error
    except (ValueError, TypeError, KeyError) as error:
        raise FitError(
            errors.WRONG_STATISTICS, path=path, members=", ".join(members), type=type(error).__name__, reason=error
        ) from error
    for name, fit in fits.items():
        if not (np.isfinite([fit.mu, fit.sigma, fit.low]).all() and fit.sigma > 0):
            raise FitError(errors.FROZEN_SIGMA, path=path, member=name, mu=fit.mu, sigma=fit.sigma)
        if data[name].get("value", values[name]) != values[name]:
            raise FitError(errors.FROZEN_VALUE, path=path, member=name, value=data[name]["value"], wanted=values[name])
    return fits


def _names(raw: ScoredDataset) -> list[str]:
    return sorted(file.path.rpartition("/")[2] for file in raw.files)


def _stats_path(partition: str) -> str:
    return f"stats/{partition}/stats.json" if partition else "stats/stats.json"
