"""Resolve the settings of verdicts, and write the verdicts of partitions without losing a row."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from ragassay.jobs.config.job import Job
from ragassay.jobs.config.members import MembersConfig
from ragassay.jobs.config.verdict import DEFAULT_QUANTILE, Threshold, VerdictConfig
from ragassay.jobs.display.address import without_secrets
from ragassay.jobs.output.partitions import history, hive_path
from ragassay.jobs.output.scored_dataset import ScoredDataset
from ragassay.jobs.progress.task import advance, expect
from ragassay.jobs.runtime.clean_output import clean_task
from ragassay.jobs.runtime.resources import MODEL_FREE_TASK_CPUS
from ragassay.jobs.storage.folder import Folder
from ragassay.jobs.verdicts import errors as codes
from ragassay.jobs.verdicts.error_share import find_worst_error_share
from ragassay.jobs.verdicts.finalize import FinalizedPartition, finalize_partition, count_score_cells
from ragassay.jobs.verdicts.fit import fit_members
from ragassay.jobs.verdicts.judged import find_judge_files
from ragassay.jobs.verdicts.parts import VerdictParts, find_calibration, name_calibration, resolve_parts
from ragassay.pipeline.errors import BalanceError, ConfigError
from ragassay.pipeline.stages.finalize import VerdictSettings
from ragassay.pipeline.verdict.aggregate import Mean, Positive
from ragassay.pipeline.verdict.exact_quantile import Cells, share_cut
from ragassay.pipeline.verdict.normalize import Fit
from ragassay.pipeline.verdict.rule import Rule
from ragassay.schemas.calibration import Calibration, ProbabilityMap
from ragassay.schemas.columns import Status
from ragassay.schemas.manifest import FitRecord, InputFile, Manifest, MemberFit, Run, ThresholdRecord
from ragassay.schemas.origins import Origins
from ragassay.schemas.stats import PartitionStats

NO_SCORE = "none: no row could be scored"
TIED = 0.01
"""Excess of the flagged share over the quantile above which the record mentions ties."""


@dataclass(frozen=True)
class ResolvedSettings:
    """Settings of verdicts, with their records for the manifest.

    Attributes:
        settings: The settings; their threshold is None if it is a quantile that is not computed yet.
        fit: Record of mu and sigma.
        threshold: Record of the threshold; None if it is not computed yet.
        origins: Origin of each part; None if no row has a score.
    """

    settings: VerdictSettings
    fit: FitRecord
    threshold: ThresholdRecord | None
    origins: Origins | None


@dataclass(frozen=True)
class ScoredPartitions:
    """Complete partitions of an output folder. Keys are paths on disk.

    Attributes:
        raw: Partition -> its rows in `raw/`.
        stats: Partition -> its statistics.
        chosen: The partitions that get verdicts.
    """

    raw: Mapping[str, ScoredDataset]
    stats: Mapping[str, PartitionStats]
    chosen: Sequence[str]


@dataclass(frozen=True)
class RowCounts:
    """Counts of rows in `scored/` that a run reports.

    Attributes:
        statuses: Rows by status.
        sentences: Sentences of the rows with a score.
        flagged: Rows with the verdict hallucinated.
        errors: Rows with the status `error` and all rows (`schemas.manifest.Run.errors`); None if no row was written.
        files: Numbers of the input files whose rows were written.
    """

    statuses: Counter[str]
    sentences: int
    flagged: int
    errors: dict[str, int] | None
    files: set[int]


def find_partitions_without_verdicts(raw: Iterable[str], manifest: Manifest) -> list[str]:
    """Find the partitions of `raw/` without verdicts: they are new, or a run ended before it finalized them."""
    return [path for path in raw if hive_path(path) not in manifest.finalized]


def resolve_settings(
    job: Job, calibration: Calibration | None, run_id: str, stats: Mapping[str, PartitionStats], chosen: Sequence[str]
) -> ResolvedSettings:
    """Resolve the settings of verdicts from a calibration and the job file.

    Args:
        job: The job.
        calibration: The calibration, as `find_calibration` returns it.
        run_id: Id of the run, written into every row.
        stats: Statistics of every partition.
        chosen: The partitions that get verdicts.

    Raises:
        RagassayError: Nothing can be fitted, or the job file contradicts the calibration.
    """
    # If all rows failed there is nothing to fit; the rows are written without a verdict.
    if not sum(stats[path].rows.get(Status.OK.value, 0) for path in chosen):
        return _resolve_without_scores(job, run_id)
    parts = resolve_parts(job, calibration)
    config = job.verdict
    # Members that the calibration does not contain are outside the ensemble; they are fitted here.
    unfitted = {name: value for name, value in job.members.values.items() if name not in parts.rule.fits}
    fits = fit_members(config.normalize, unfitted, stats, chosen, config.history.partitions) if unfitted else {}
    settings = _make_settings(job, parts, run_id, fits)
    source = name_calibration(calibration) if calibration is not None and not parts.own_moments else config.normalize.source or "run"
    fit = _make_fit_record(job.members, source, settings.rule, calibrated=config.calibration_file is not None)
    return ResolvedSettings(settings, fit, _make_threshold_record(config.threshold, calibration, parts.tau), parts.origins)


def resolve_standalone_settings(job: Job, calibration: Calibration | None, run_id: str) -> tuple[VerdictSettings, Origins]:
    """Resolve the settings for single rows, without the moments or the quantile of a run.

    Args:
        job: The job.
        calibration: The calibration in use; None without one.
        run_id: Id of the run, written into every row.

    Returns:
        The settings, and the origin of each part.

    Raises:
        ConfigError: Moments or threshold need a run, or the job file contradicts the calibration.
    """
    parts = resolve_parts(job, calibration)
    if (parts.own_moments and job.verdict.normalize.source != "frozen") or parts.tau is None:
        raise ConfigError(codes.NOTHING_TO_JUDGE_BY)
    weights = parts.rule.weights
    members = {name: value for name, value in job.members.values.items() if not weights or name in weights}
    fits = fit_members(job.verdict.normalize, members, {}, [], 1) if parts.own_moments else {}
    return _make_settings(job, parts, run_id, fits), parts.origins


def restore_settings(run: Run, run_id: str, probability: ProbabilityMap | None) -> VerdictSettings:
    """Restore the settings of an earlier run from its record.

    Args:
        run: Record of the run, whose rows had scores.
        run_id: Id of the new run, written into every row.
        probability: Map to P(supported) of the earlier run.
    """
    fit = run.fit
    assert fit is not None and run.threshold is not None
    fits = {name: Fit(member.mu, member.sigma, member.count, member.low) for name, member in fit.members.items()}
    rule = Rule(fits, Mean(fit.mean), Positive(fit.positive), fit.epsilon, fit.weights, fit.sentence)
    return VerdictSettings(
        {name: member.value for name, member in fit.members.items()}, rule, run.threshold.value, run_id, probability
    )


def _make_settings(job: Job, parts: VerdictParts, run_id: str, fits: Mapping[str, Fit]) -> VerdictSettings:
    """Make settings from parts and the fits of members that the calibration does not contain.

    Members without a fit are omitted. Members outside the ensemble get weight 0.
    """
    all_fits = {**parts.rule.fits, **fits}
    values = {name: value for name, value in job.members.values.items() if name in all_fits}
    weights = parts.rule.weights and {**dict.fromkeys(values, 0.0), **parts.rule.weights}
    rule = replace(parts.rule, fits=all_fits, weights=weights)
    return VerdictSettings(values, rule, parts.tau, run_id, parts.probability)


def check_verdict_settings(job: Job, fingerprint: dict[str, Any]) -> None:
    """Check, before there are scores, that the job file and its calibration can give verdicts.

    Args:
        job: The job.
        fingerprint: Fingerprint of the scores.

    Raises:
        ConfigError: The calibration cannot be read or belongs to other scores, or the job file contradicts it.
    """
    resolve_parts(job, find_calibration(job, fingerprint))


def _make_threshold_record(
    threshold: Threshold, calibration: Calibration | None, tau: float | None
) -> ThresholdRecord | None:
    if tau is None:
        return None
    if calibration is not None and not threshold.is_given:
        return ThresholdRecord(tau, f"{name_calibration(calibration)}, made for {calibration.target}", calibration.calibration_id)
    measured_on = threshold.measured_on or "an unnamed set"
    return ThresholdRecord(tau, f"value in the job file, measured on {without_secrets(measured_on)}")


def _resolve_without_scores(job: Job, run_id: str) -> ResolvedSettings:
    rule = replace(resolve_parts(job, None).rule, weights=None)
    record = _make_fit_record(job.members, job.verdict.normalize.source or "run", rule)
    return ResolvedSettings(VerdictSettings(job.members.values, rule, None, run_id), record, ThresholdRecord(None, NO_SCORE), None)


def _make_fit_record(config: MembersConfig, source: str, rule: Rule, *, calibrated: bool = False) -> FitRecord:
    members = {
        name: MemberFit(**asdict(fit), value=config.values[name], suspicious_below=config.suspicious_below[name])
        for name, fit in rule.fits.items()
    }
    weights = None if rule.weights is None else dict(rule.weights)
    return FitRecord(source, members, rule.mean.value, rule.positive.value, rule.epsilon, weights, calibrated, rule.sentence)


def find_quantile_threshold(config: VerdictConfig, scores: ScoredPartitions, settings: VerdictSettings) -> ThresholdRecord:
    """Find the threshold that is a quantile of the response scores. Without a score it has no value.

    Args:
        config: Its `threshold` sets the quantile and the responses over which it is computed.
        scores: The complete partitions.
        settings: Settings of the verdicts.
    """
    import ray

    raw, chosen = scores.raw, scores.chosen
    paths = [*chosen, *(history(raw, chosen, config.history.partitions) if config.threshold.of == "history" else [])]
    remote = ray.remote(num_cpus=MODEL_FREE_TASK_CPUS)(clean_task(count_score_cells))

    def count_cells(low: int, high: int) -> Iterator[Cells]:
        tasks = [remote.remote(raw[path], settings, low, high) for path in sorted(paths)]
        while tasks:  # one result at a time: those of hundreds of partitions take a gigabyte
            yield ray.get(tasks.pop())

    return compute_quantile_threshold(config.threshold, count_cells)


def compute_quantile_threshold(threshold: Threshold, look: Callable[[int, int], Iterable[Cells]]) -> ThresholdRecord:
    """Compute a quantile threshold.

    Args:
        threshold: Settings of the threshold.
        look: Counts scores within a range of keys, see `share_cut`.
    """
    target_share = DEFAULT_QUANTILE if threshold.quantile is None else threshold.quantile
    cut = share_cut(look, target_share)
    if cut is None:
        return ThresholdRecord(None, NO_SCORE)
    history_text = " and its history" if threshold.of == "history" else ""
    source = f"quantile {target_share:g} of the {cut.count} responses of this run{history_text}"
    flagged_share = cut.flagged / cut.count
    if flagged_share > target_share + TIED:
        source += (
            f"; {flagged_share:.1%} have that score or less, because many tie (aggregate.positive: cdf or shift makes fewer ties)"
        )
    return ThresholdRecord(cut.value, source)


def write_verdicts(output: Folder, manifest: Manifest, scores: ScoredPartitions, settings: VerdictSettings) -> dict[str, FinalizedPartition]:
    """Write partitions of `scored/`, each whole or not at all.

    Args:
        output: The output folder.
        manifest: Manifest of the output folder: its input files, and the judge whose decisions are kept.
        scores: The partitions that get verdicts.
        settings: Settings of the verdicts.

    Returns:
        Path of a partition on disk -> counts of its rows.

    Raises:
        BalanceError: Rows would be lost.
    """
    import ray

    remote = ray.remote(num_cpus=MODEL_FREE_TASK_CPUS)(clean_task(finalize_partition))
    targets = {path: output.path("/".join(filter(None, ["scored", path, "part-0.parquet"]))) for path in scores.chosen}
    judge_files = find_judge_files(output, manifest, scores.chosen)
    tasks = {path: remote.remote(scores.raw[path], targets[path], settings, judge_files[path]) for path in scores.chosen}
    scored_rows = manifest.scored_rows()
    results: dict[str, FinalizedPartition] = {}
    expect(len(tasks), "partitions")
    for path, task in tasks.items():
        result = results[path] = ray.get(task)
        advance(1, "partitions")
        rows_in = scored_rows[hive_path(path)]
        if not result.rows == rows_in == sum(scores.stats[path].rows.values()):
            raise BalanceError(codes.PARTITION_UNBALANCED, partition=path, rows_in=rows_in, rows_out=result.rows)
    return results


def count_written_rows(files: Mapping[int, InputFile], partitions: Iterable[FinalizedPartition], scored: Collection[int] | None) -> RowCounts:
    """Count the rows of `scored/` that a run reports. A row can have a score in `raw/` and none in `scored/`.

    Errors are counted twice: among all written rows, and among the rows without an earlier verdict (scored by an earlier `score`
    command or by a run that ended early). The larger share counts, so that a large partition does not hide the errors of new rows.

    Args:
        files: Input files of the manifest, by number. Sealed files, which are missing, have verdicts.
        partitions: Counts of the written partitions.
        scored: Numbers of the input files that this run has scored, whose rows it reports; None for all.
    """
    statuses, new_rows, written_rows = Counter[str](), Counter[str](), Counter[str]()
    sentences = flagged = 0
    numbers: set[int] = set()
    for partition in partitions:
        for number, counts in partition.statuses.items():
            written_rows.update(counts)
            had_verdicts = number not in files or files[number].judged
            new_rows.update({} if had_verdicts or number in numbers else counts)
            numbers.add(number)
            if scored is None or number in scored:
                statuses.update(counts)
                sentences += partition.sentences[number]
                flagged += partition.flagged[number]
    return RowCounts(statuses, sentences, flagged, find_worst_error_share(new_rows, written_rows) if written_rows else None, numbers)
