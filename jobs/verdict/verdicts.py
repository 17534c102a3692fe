"""Plan 2's driver half: how scores become verdicts, every partition's verdicts written, and no row lost."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from ragassay.jobs.address import without_secrets
from ragassay.jobs.clean_output import clean_task
from ragassay.jobs.config import Job
from ragassay.jobs.output.partitions import history, hive_path
from ragassay.jobs.progress.task import advance, expect
from ragassay.jobs.resources import DRIVER_CPUS
from ragassay.jobs.sections import (
    DEFAULT_EPSILON,
    DEFAULT_MEAN,
    DEFAULT_POSITIVE,
    DEFAULT_QUANTILE,
    DEFAULT_SENTENCE,
    Threshold,
)
from ragassay.jobs.storage import Folder
from ragassay.jobs.verdict.error_share import worst_share
from ragassay.jobs.verdict.finalize import Finalized, finalize_partition, score_cells
from ragassay.jobs.verdict.fit import fits_of
from ragassay.jobs.verdict.judged import judged_partitions
from ragassay.jobs.verdict.languages import languages_of
from ragassay.jobs.verdict.parts import Parts, calibration_of, name_of, parts_of
from ragassay.pipeline.errors import BalanceError
from ragassay.pipeline.stages.finalize import VerdictSettings
from ragassay.pipeline.verdict.exact_quantile import Cells, share_cut
from ragassay.pipeline.verdict.rule import Rule
from ragassay.schemas.calibration import Calibration
from ragassay.schemas.columns import Status
from ragassay.schemas.manifest import FitRecord, InputFile, Manifest, MemberFit, ThresholdRecord
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


def decide(job: Job, manifest: Manifest, run_id: str, stats: Mapping[str, PartitionStats], chosen: Sequence[str]) -> Decided:
    """How the scores of partitions become verdicts: by a calibration, or by the job file.

    Args:
        job: The job.
        manifest: Of the output folder.
        run_id: Written into every row.
        stats: Statistics of every partition.
        chosen: The partitions.

    Raises:
        RagassayError: Nothing can be fitted, or a calibration is of other scores.
    """
    # A night whose rows all failed has nothing to fit; its rows are written all the same, without a verdict.
    if not sum(stats[p].rows.get(Status.OK.value, 0) for p in chosen):
        return _without_scores(job, run_id)
    calibration = calibration_of(job, manifest)
    parts = parts_of(job, calibration)
    rule = _with_moments(job, parts, stats, chosen)
    source = name_of(calibration) if calibration is not None and not parts.own_moments else job.normalize.source or "run"
    fit = _fit_record(job, source, rule, calibrated=job.calibration_file is not None)
    languages = languages_of(job, manifest.fingerprint, calibration)
    settings = VerdictSettings(job.values, rule, parts.tau, run_id, parts.probability, languages)
    return Decided(settings, fit, _fixed_threshold(job, calibration, parts.tau), parts.origins)


def check_parts(job: Job, manifest: Manifest) -> None:
    """Check, before there are scores, that the job file and its calibration can judge them.

    Args:
        job: The job.
        manifest: Of the output folder, with the fingerprint of the scores.

    Raises:
        ConfigError: The calibration can't be read or belongs to other scores, or the job file contradicts it.
    """
    parts_of(job, calibration_of(job, manifest))


def _fixed_threshold(job: Job, calibration: Calibration | None, tau: float | None) -> ThresholdRecord | None:
    if tau is None:
        return None
    if calibration is not None and not job.threshold.is_given:
        return ThresholdRecord(tau, f"{name_of(calibration)}, made for {calibration.target}", calibration.calibration_id)
    measured_on = job.threshold.measured_on or "nothing it names"
    return ThresholdRecord(tau, f"value in the job file, measured on {without_secrets(measured_on)}")


def _with_moments(job: Job, parts: Parts, stats: Mapping[str, PartitionStats], chosen: Sequence[str]) -> Rule:
    """The rule with mu and sigma of every member: members that a calibration does not know stand beside it, by their own."""
    rule = parts.rule
    values = {name: value for name, value in job.values.items() if name not in rule.fits}
    fits = fits_of(job.normalize, values, stats, chosen, job.history.partitions) if values else {}
    weights = rule.weights and {**dict.fromkeys(job.values, 0.0), **rule.weights}
    return replace(rule, fits={**rule.fits, **fits}, weights=weights)


def _without_scores(job: Job, run_id: str) -> Decided:
    aggregate = job.aggregate
    mean, positive = aggregate.mean or DEFAULT_MEAN, aggregate.positive or DEFAULT_POSITIVE
    sentence = None if job.rule == "aggregate" else job.threshold.sentence or DEFAULT_SENTENCE
    rule = Rule({}, mean, positive, aggregate.epsilon or DEFAULT_EPSILON, sentence=sentence)
    record = _fit_record(job, job.normalize.source or "run", rule)
    return Decided(VerdictSettings(job.values, rule, None, run_id), record, ThresholdRecord(None, NO_SCORE), None)


def _fit_record(job: Job, source: str, rule: Rule, *, calibrated: bool = False) -> FitRecord:
    members = {
        name: MemberFit(**asdict(fit), value=job.values[name], suspicious_below=job.limits[name])
        for name, fit in rule.fits.items()
    }
    weights = None if rule.weights is None else dict(rule.weights)
    return FitRecord(source, members, rule.mean.value, rule.positive.value, rule.epsilon, weights, calibrated, rule.sentence)


def quantile(
    job: Job, output: Folder, raw: Mapping[str, Sequence[str]], settings: VerdictSettings, chosen: Sequence[str]
) -> ThresholdRecord:
    """tau, where it is a quantile of the response scores; without any score it has no value.

    Args:
        job: Its `threshold` says which quantile, of what.
        output: The output folder.
        raw: Files of every partition of `raw/`.
        settings: How scores are made.
        chosen: The partitions that are being finalised.
    """
    import ray

    names = [*chosen, *(history(raw, chosen, job.history.partitions) if job.threshold.of == "history" else [])]
    remote = ray.remote(num_cpus=DRIVER_CPUS)(clean_task(score_cells))

    def look(low: int, high: int) -> Iterator[Cells]:
        tasks = [remote.remote(output.fs, raw[p], settings, low, high) for p in sorted(names)]
        while tasks:  # one at a time: hundreds of partitions have a gigabyte of them
            yield ray.get(tasks.pop())

    return share_threshold(job.threshold, look)


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


def write_verdicts(
    output: Folder,
    manifest: Manifest,
    raw: Mapping[str, Sequence[str]],
    settings: VerdictSettings,
    stats: Mapping[str, PartitionStats],
    chosen: Sequence[str],
) -> dict[str, Finalized]:
    """Write partitions of `scored/`, each whole or not at all.

    Args:
        output: The output folder.
        manifest: Its manifest: input files, and the judge of a cascade whose decisions are kept.
        raw: Files of every partition of `raw/`.
        settings: How scores become verdicts.
        stats: Statistics of every partition.
        chosen: The partitions.

    Returns:
        How the rows of each ended.

    Raises:
        BalanceError: Rows would be lost.
    """
    import ray

    remote = ray.remote(num_cpus=DRIVER_CPUS)(clean_task(finalize_partition))
    target = {p: output.path("/".join(filter(None, ["scored", p, "part-0.parquet"]))) for p in chosen}
    judged = judged_partitions(output, manifest, chosen)
    tasks = {p: remote.remote(output.fs, raw[p], target[p], settings, judged[p]) for p in chosen}
    rows = manifest.scored_rows()
    finished: dict[str, Finalized] = {}
    expect(len(tasks), "partitions")
    for partition, task in tasks.items():
        done = finished[partition] = ray.get(task)
        advance(1, "partitions")
        rows_in = rows[hive_path(partition)]
        if not done.rows == rows_in == sum(stats[partition].rows.values()):
            raise BalanceError(f"partition {partition!r}: {rows_in} rows in, {done.rows} rows in scored/")
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
