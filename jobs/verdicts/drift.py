"""Compare the statistics of the latest partitions with their history."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from ragassay.jobs.config.verdict import Drift, VerdictConfig
from ragassay.jobs.display.counted import format_count
from ragassay.jobs.output.partitions import earlier_partitions, hive_path, natural_key
from ragassay.jobs.storage.folder import Folder
from ragassay.jobs.verdicts.partition_stats import read_partition_stats
from ragassay.pipeline.calibration.proportions import difference_interval, is_beyond_chance
from ragassay.pipeline.verdict.drift import kolmogorov_smirnov_distance, population_stability_index
from ragassay.pipeline.verdict.moments import merge_moments
from ragassay.schemas.columns import NULL_PARTITION, Status
from ragassay.schemas.manifest import DriftCheck, Manifest, PartitionVerdicts, Shift
from ragassay.schemas.stats import PartitionStats


def check_output_drift(
    config: VerdictConfig, manifest: Manifest, output: Folder, known: Mapping[str, PartitionStats] | None = None
) -> DriftCheck:
    """Compare the latest partition of an output with the history before it: what `run`, `report` and `drift` show.

    Partitions without verdicts count on neither side.

    Args:
        config: Its `history` sets the length of the history, its `drift` the limits.
        manifest: Manifest of the output folder.
        output: The output folder, or a snapshot of it.
        known: Path of a partition on disk -> its current statistics, which are not read again.

    Raises:
        OutputError: Statistics are missing or out of date.
    """
    values = {name: member.value for name, member in manifest.last_fit.members.items()} if manifest.last_fit else {}
    stats = read_partition_stats(output, values, frozenset(manifest.finalized), known) if values else {}
    return check_drift(config, manifest, stats)


def restore_drift_config(manifest: Manifest) -> VerdictConfig:
    """Return the settings of the latest drift check of a run, for readers without a job file; else the defaults."""
    checks = [run.drift for run in reversed(manifest.runs) if run.drift is not None and run.drift.limits]
    if not checks:
        return VerdictConfig()
    limits = dict(checks[0].limits)
    return VerdictConfig.model_validate({"history": {"partitions": limits.pop("history")}, "drift": limits})


def check_drift(
    config: VerdictConfig, manifest: Manifest, stats: Mapping[str, PartitionStats], latest: Collection[str] | None = None
) -> DriftCheck:
    """Compare the latest partitions with the history before them.

    Args:
        config: Its `history` sets the length of the history, its `drift` the limits.
        manifest: Manifest of the output folder, with the verdicts of each partition.
        stats: Path of a partition on disk -> its statistics.
        latest: Paths of the latest partitions on disk; None for those with the last value of the first hive key.
    """
    check = _compare_partitions(config, manifest, stats, latest)
    return replace(check, limits={**config.drift.model_dump(), "history": config.history.partitions})


def _compare_partitions(
    config: VerdictConfig, manifest: Manifest, stats: Mapping[str, PartitionStats], latest: Collection[str] | None
) -> DriftCheck:
    if latest is None:
        first_keys = sorted((path.partition("/")[0] for path in stats), key=natural_key)
        dated = [key for key in first_keys if not key.endswith(f"={NULL_PARTITION}")] or first_keys
        latest = [path for path in stats if path.partition("/")[0] == dated[-1]]
    before = earlier_partitions(stats, latest, config.history.partitions)
    current, earlier = ([stats[path] for path in paths] for paths in (latest, before))
    sentences = sum(part.sentences for part in current), sum(part.sentences for part in earlier)
    names = [hive_path(path) for path in sorted(latest)], [hive_path(path) for path in before]
    if not before:
        return DriftCheck(*names, sentences, [], "there is no earlier partition to compare with")
    limits = config.drift
    error_counts = (_count_errors({path: stats[path] for path in paths}, manifest) for paths in (latest, before))
    errors = _compare_errors(limits, *error_counts)
    if min(sentences) < limits.min_sentences:
        setting = f"verdict.drift.min_sentences: {limits.min_sentences}"
        counts = f"{format_count(sentences[0], 'sentence')} against {sentences[1]:,} before"
        note = f"{counts} are too few to distinguish drift from chance ({setting})"
        # A run in which every row failed has no sentence: then the errors are the drift.
        return DriftCheck(*names, sentences, [errors] if errors.drifted else [], note)
    shifts = [*_compare_members(limits, current, earlier), errors, _compare_lengths(limits, current, earlier)]
    shifts += _compare_flags(
        limits, *([manifest.finalized[name] for name in group if name in manifest.finalized] for group in names)
    )
    return DriftCheck(*names, sentences, shifts, None)


def _compare_members(limits: Drift, current: list[PartitionStats], earlier: list[PartitionStats]) -> list[Shift]:
    shifts = []
    for name in current[0].members:
        moments, earlier_moments = (
            merge_moments(part.members[name] for part in parts if name in part.members) for parts in (current, earlier)
        )
        if moments.count and earlier_moments.count:
            for metric, distance, limit in (
                ("psi", population_stability_index(moments, earlier_moments), limits.psi),
                ("ks", kolmogorov_smirnov_distance(moments, earlier_moments), limits.ks),
            ):
                shifts.append(Shift(metric, name, None, None, distance, limit, distance > limit))
        mass, earlier_mass = (
            merge_moments(part.label_mass[name] for part in parts if name in part.label_mass) for parts in (current, earlier)
        )
        if mass.count and earlier_mass.count:
            shifts.append(_compare("label_mass", mass.mean, earlier_mass.mean, limits.label_mass, member=name))
    return shifts


def _count_errors(parts: Mapping[str, PartitionStats], manifest: Manifest) -> tuple[int, int]:
    """Return the number of rows without a score, in `raw/` if the partition has no verdicts, and of all rows."""
    rows = scored = 0
    for path, part in parts.items():
        verdicts = manifest.finalized.get(hive_path(path))
        rows += sum(part.rows.values())
        scored += part.rows.get(Status.OK.value, 0) if verdicts is None else verdicts.scored
    return rows - scored, rows


def _compare_errors(limits: Drift, latest: tuple[int, int], earlier: tuple[int, int]) -> Shift:
    """Compare the error rate with that of the history. Only a rise beyond chance is drift."""
    rate, rate_before = (errors / rows if rows else 0.0 for errors, rows in (latest, earlier))
    rise = rate - rate_before
    is_drift = rise > limits.error_rate and is_beyond_chance(difference_interval(*earlier, *latest))
    return Shift("error_rate", None, rate, rate_before, rise, limits.error_rate, is_drift)


def _compare_lengths(limits: Drift, current: list[PartitionStats], earlier: list[PartitionStats]) -> Shift:
    """Compare the sentences per scored response."""
    lengths = []
    for parts in (current, earlier):
        scored = sum(part.rows.get(Status.OK.value, 0) for part in parts)
        lengths.append(sum(part.sentences for part in parts) / scored)
    return _compare("sentences", lengths[0], lengths[1], limits.sentences, scale=lengths[1])


def _compare(
    metric: str, current: float, earlier: float, limit: float, *, scale: float = 1.0, member: str | None = None
) -> Shift:
    distance = abs(current - earlier) / scale
    return Shift(metric, member, current, earlier, distance, limit, distance > limit)


def _compare_flags(
    limits: Drift, current: Sequence[PartitionVerdicts], earlier: Sequence[PartitionVerdicts]
) -> Iterator[Shift]:
    """Compare the share of scored responses that are flagged, where both have any. A change within chance is no drift."""
    (flagged, scored), (flagged_before, scored_before) = (
        (sum(part.flagged for part in parts), sum(part.scored for part in parts)) for parts in (current, earlier)
    )
    if scored and scored_before:
        shift = _compare("flagged", flagged / scored, flagged_before / scored_before, limits.flagged)
        is_beyond = is_beyond_chance(difference_interval(flagged_before, scored_before, flagged, scored))
        yield replace(shift, drifted=shift.drifted and is_beyond)
