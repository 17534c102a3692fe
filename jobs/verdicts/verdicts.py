"""Plan 2's driver half: how scores become verdicts, every partition's verdicts written, and no row lost."""

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
from ragassay.jobs.runtime.resources import DRIVER_CPUS
from ragassay.jobs.storage.folder import Folder
from ragassay.jobs.verdicts import errors as codes
from ragassay.jobs.verdicts.error_share import worst_share
from ragassay.jobs.verdicts.finalize import Finalized, finalize_partition, score_cells
from ragassay.jobs.verdicts.fit import fits_of
from ragassay.jobs.verdicts.judged import judged_partitions
from ragassay.jobs.verdicts.parts import Parts, calibration_of, name_of, parts_of
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
"""A quantile that flags more than its share by this much says so."""


@dataclass(frozen=True)
class Decided:
    """How scores become verdicts, and what the manifest says of it.

    Attributes:
        settings: How; its threshold is None where that is a quantile, still to be found.
        fit: Where mu and sigma come from.
        threshold: Where tau comes from; None where it is still to be found.
        origins: Which part comes from where; None where there is no score.
    """

    settings: VerdictSettings
    fit: FitRecord
    threshold: ThresholdRecord | None
    origins: Origins | None


@dataclass(frozen=True)
class Scores:
    """The scores of an output folder that are whole, by partition, as it stands on disk.

    Attributes:
        raw: Partition -> its rows of `raw/`.
        stats: Partition -> its statistics.
        chosen: The partitions that get verdicts.
    """

    raw: Mapping[str, ScoredDataset]
    stats: Mapping[str, PartitionStats]
    chosen: Sequence[str]


@dataclass(frozen=True)
class Written:
    """What a run wrote, as `scored/` has it.

    Attributes:
        statuses: Of the rows that it reports, by status.
        sentences: Of those with a score.
        flagged: Of those with a score, responses with the verdict hallucinated.
        errors: Rows with the status `error`, and all, where a row was written (`schemas.manifest.Run.errors`).
        files: Numbers of the input files whose rows were written.
    """

    statuses: Counter[str]
    sentences: int
    flagged: int
    errors: dict[str, int] | None
    files: set[int]


def without_verdict(raw: Iterable[str], manifest: Manifest) -> list[str]:
    """Which partitions of `raw/` are new, or of a run that died before it finalised them."""
    return [p for p in raw if hive_path(p) not in manifest.finalized]


def decide(
    job: Job, calibration: Calibration | None, run_id: str, stats: Mapping[str, PartitionStats], chosen: Sequence[str]
) -> Decided:
    """How the scores of partitions become verdicts: by a calibration, or by the job file.

    Args:
        job: The job.
        calibration: As `calibration_of` gives it.
        run_id: Written into every row.
        stats: Statistics of every partition.
        chosen: The partitions.

    Raises:
        RagassayError: Nothing can be fitted, or the job file contradicts the calibration.
    """
    # A night whose rows all failed has nothing to fit; its rows are written all the same, without a verdict.
    if not sum(stats[p].rows.get(Status.OK.value, 0) for p in chosen):
        return _without_scores(job, run_id)
    parts = parts_of(job, calibration)
    # Members that a calibration does not know stand beside it, by their own moments.
    config = job.verdict
    others = {name: value for name, value in job.members.values.items() if name not in parts.rule.fits}
    fits = fits_of(config.normalize, others, stats, chosen, config.history.partitions) if others else {}
    settings = _settings(job, parts, run_id, fits)
    source = name_of(calibration) if calibration is not None and not parts.own_moments else config.normalize.source or "run"
    fit = _fit_record(job.members, source, settings.rule, calibrated=config.calibration_file is not None)
    return Decided(settings, fit, _fixed_threshold(config.threshold, calibration, parts.tau), parts.origins)


def decide_alone(job: Job, calibration: Calibration | None, run_id: str) -> tuple[VerdictSettings, Origins]:
    """How rows become verdicts that are judged one by one, without the moments or the quantile of a run.

    Args:
        job: The job.
        calibration: The calibration that judges; None without one.
        run_id: Written into every row.

    Returns:
        How, and which part comes from where.

    Raises:
        ConfigError: Moments or threshold are those of a run, or the job file contradicts the calibration.
    """
    parts = parts_of(job, calibration)
    if (parts.own_moments and job.verdict.normalize.source != "frozen") or parts.tau is None:
        raise ConfigError(codes.NOTHING_TO_JUDGE_BY)
    weights = parts.rule.weights
    members = {name: value for name, value in job.members.values.items() if not weights or name in weights}
    fits = fits_of(job.verdict.normalize, members, {}, [], 1) if parts.own_moments else {}
    return _settings(job, parts, run_id, fits), parts.origins


def decide_as_before(run: Run, run_id: str, probability: ProbabilityMap | None) -> VerdictSettings:
    """How rows become verdicts like those of an earlier run.

    Args:
        run: That run, whose rows had scores.
        run_id: Written into every row.
        probability: Its map to P(supported).
    """
    fit = run.fit
    assert fit is not None and run.threshold is not None
    fits = {name: Fit(m.mu, m.sigma, m.count, m.low) for name, m in fit.members.items()}
    rule = Rule(fits, Mean(fit.mean), Positive(fit.positive), fit.epsilon, fit.weights, fit.sentence)
    return VerdictSettings(
        {name: member.value for name, member in fit.members.items()}, rule, run.threshold.value, run_id, probability
    )


def _settings(job: Job, parts: Parts, run_id: str, fits: Mapping[str, Fit]) -> VerdictSettings:
    """The only place where parts become settings: with moments of the members that a calibration has none of.

    Members without any moments are left out: they stand beside the ensemble.
    """
    known = {**parts.rule.fits, **fits}
    values = {name: value for name, value in job.members.values.items() if name in known}
    weights = parts.rule.weights and {**dict.fromkeys(values, 0.0), **parts.rule.weights}
    return VerdictSettings(values, replace(parts.rule, fits=known, weights=weights), parts.tau, run_id, parts.probability)


def check_parts(job: Job, fingerprint: dict[str, Any]) -> None:
    """Check, before there are scores, that the job file and its calibration can judge them.

    Args:
        job: The job.
        fingerprint: Of the scores.

    Raises:
        ConfigError: The calibration can't be read or belongs to other scores, or the job file contradicts it.
    """
    parts_of(job, calibration_of(job, fingerprint))


def _fixed_threshold(threshold: Threshold, calibration: Calibration | None, tau: float | None) -> ThresholdRecord | None:
    if tau is None:
        return None
    if calibration is not None and not threshold.is_given:
        return ThresholdRecord(tau, f"{name_of(calibration)}, made for {calibration.target}", calibration.calibration_id)
    measured_on = threshold.measured_on or "nothing it names"
    return ThresholdRecord(tau, f"value in the job file, measured on {without_secrets(measured_on)}")


def _without_scores(job: Job, run_id: str) -> Decided:
    rule = replace(parts_of(job, None).rule, weights=None)
    record = _fit_record(job.members, job.verdict.normalize.source or "run", rule)
    return Decided(VerdictSettings(job.members.values, rule, None, run_id), record, ThresholdRecord(None, NO_SCORE), None)


def _fit_record(config: MembersConfig, source: str, rule: Rule, *, calibrated: bool = False) -> FitRecord:
    members = {
        name: MemberFit(**asdict(fit), value=config.values[name], suspicious_below=config.suspicious_below[name])
        for name, fit in rule.fits.items()
    }
    weights = None if rule.weights is None else dict(rule.weights)
    return FitRecord(source, members, rule.mean.value, rule.positive.value, rule.epsilon, weights, calibrated, rule.sentence)


def quantile(config: VerdictConfig, scores: Scores, settings: VerdictSettings) -> ThresholdRecord:
    """tau, where it is a quantile of the response scores; without any score it has no value.

    Args:
        config: Its `threshold` names the quantile, and the responses it is computed over.
        scores: The partitions that get verdicts, and all others.
        settings: How scores are made.
    """
    import ray

    raw, chosen = scores.raw, scores.chosen
    names = [*chosen, *(history(raw, chosen, config.history.partitions) if config.threshold.of == "history" else [])]
    remote = ray.remote(num_cpus=DRIVER_CPUS)(clean_task(score_cells))

    def look(low: int, high: int) -> Iterator[Cells]:
        tasks = [remote.remote(raw[p], settings, low, high) for p in sorted(names)]
        while tasks:  # one at a time: hundreds of partitions have a gigabyte of them
            yield ray.get(tasks.pop())

    return share_threshold(config.threshold, look)


def share_threshold(threshold: Threshold, look: Callable[[int, int], Iterable[Cells]]) -> ThresholdRecord:
    """tau, where it is a quantile: see `share_cut` for what `look` does."""
    wanted = DEFAULT_QUANTILE if threshold.quantile is None else threshold.quantile
    cut = share_cut(look, wanted)
    if cut is None:
        return ThresholdRecord(None, NO_SCORE)
    source = f"quantile {wanted:g} of the {cut.count} responses of this run" + (
        " and its history" if threshold.of == "history" else ""
    )
    share = cut.flagged / cut.count
    if share > wanted + TIED:
        source += f"; {share:.1%} have that score or less, because many tie (aggregate.positive: cdf or shift makes fewer ties)"
    return ThresholdRecord(cut.value, source)


def write_verdicts(output: Folder, manifest: Manifest, scores: Scores, settings: VerdictSettings) -> dict[str, Finalized]:
    """Write partitions of `scored/`, each whole or not at all.

    Args:
        output: The output folder.
        manifest: Its manifest: input files, and the judge of a cascade whose decisions are kept.
        scores: The partitions that get verdicts.
        settings: How scores become verdicts.

    Returns:
        How the rows of each ended.

    Raises:
        BalanceError: Rows would be lost.
    """
    import ray

    remote = ray.remote(num_cpus=DRIVER_CPUS)(clean_task(finalize_partition))
    target = {p: output.path("/".join(filter(None, ["scored", p, "part-0.parquet"]))) for p in scores.chosen}
    judged = judged_partitions(output, manifest, scores.chosen)
    tasks = {p: remote.remote(scores.raw[p], target[p], settings, judged[p]) for p in scores.chosen}
    rows = manifest.scored_rows()
    finished: dict[str, Finalized] = {}
    expect(len(tasks), "partitions")
    for partition, task in tasks.items():
        done = finished[partition] = ray.get(task)
        advance(1, "partitions")
        rows_in = rows[hive_path(partition)]
        if not done.rows == rows_in == sum(scores.stats[partition].rows.values()):
            raise BalanceError(codes.PARTITION_UNBALANCED, partition=partition, rows_in=rows_in, rows_out=done.rows)
    return finished


def count_rows(files: Mapping[int, InputFile], done: Iterable[Finalized], scored: Collection[int] | None) -> Written:
    """Count rows as `scored/` has them: of some input files, or of all. A row may have lost its score on the way.

    Errors are counted of all rows that were written, and of those alone that had no verdict before (of earlier runs of `score`,
    or of one that died), so that a large partition around them doesn't hide them.

    Args:
        files: The manifest's, by number; what it has sealed is judged.
        done: What was written, a partition.
        scored: Numbers of the input files that this run has scored, whose rows it reports; None reports all.
    """
    statuses, new, written = Counter[str](), Counter[str](), Counter[str]()
    sentences = flagged = 0
    numbers = set()
    for part in done:
        for number, found in part.statuses.items():
            written.update(found)
            judged = number not in files or files[number].judged
            new.update({} if judged or number in numbers else found)
            numbers.add(number)
            if scored is None or number in scored:
                statuses.update(found)
                sentences += part.sentences[number]
                flagged += part.flagged[number]
    return Written(statuses, sentences, flagged, worst_share(new, written) if written else None, numbers)
