"""Plan 2's driver half: fit, find tau, have every partition's verdicts written, and check that no row is lost."""

import time
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass, replace

from ragassay.jobs.config import Job
from ragassay.jobs.output.calibration_file import load_calibration, rule_of
from ragassay.jobs.output.partitions import history, hive_path, partitions
from ragassay.jobs.output.state import State
from ragassay.jobs.resources import DRIVER_CPUS
from ragassay.jobs.score.register import refuse_unfinished
from ragassay.jobs.verdict.bundled_calibration import bundled_calibration, speaks_of
from ragassay.jobs.verdict.drift import check_drift
from ragassay.jobs.verdict.error_share import worst_share
from ragassay.jobs.verdict.finalize import Finalized, finalize_partition, score_cells
from ragassay.jobs.verdict.fit import fit_output, fits_of
from ragassay.pipeline.errors import BalanceError
from ragassay.pipeline.stages.finalize import Settings
from ragassay.pipeline.verdict.exact_quantile import Cells, share_cut
from ragassay.pipeline.verdict.rule import Rule
from ragassay.schemas.calibration import Calibration
from ragassay.schemas.columns import Status
from ragassay.schemas.manifest import SCORED, FitRecord, MemberFit, ThresholdRecord, Verdicts
from ragassay.schemas.stats import PartitionStats

NO_SCORE = "none: no row could be scored"
BUNDLED = "bundled calibration"
TIED = 0.01
"""A quantile that flags more than its share by this much says so."""


def write_verdicts(job: Job, state: State, scored: Collection[int] | None) -> None:
    """Finalise the partitions without verdicts, which are then compared with the history before them; or all.

    Args:
        job: Says how.
        state: Of the output folder.
        scored: Numbers of the input files that this run has scored, whose rows it reports; None finalises everything, and
            reports the rows of the whole folder.

    Raises:
        RagassayError: A broken run has to be ended first, nothing can be fitted, or rows would be lost.
    """
    run, started = state.run, time.perf_counter()
    refuse_unfinished(state.output, state.manifest, ())
    raw, everything = partitions(state.output, "raw"), scored is None
    chosen = list(raw) if everything else without_verdict(state)
    stats = fit_output(job, state.output)
    # A night whose rows all failed has nothing to fit; its rows are written all the same, without a verdict.
    judged = sum(stats[p].rows.get(Status.OK.value, 0) for p in chosen)
    how = _how(job, state, stats, chosen) if judged else _without_scores(job, run.run_id)
    settings, run.fit = how.settings, how.fit
    run.seconds["fit"] = round(time.perf_counter() - started, 3)
    started = time.perf_counter()
    run.threshold = how.tau or _quantile(job, state, settings, raw, chosen)
    settings = replace(settings, threshold=run.threshold.value)
    for partition in chosen:  # a crash from here on leaves them to be finalised anew, not half old and half new
        state.manifest.finalized.pop(hive_path(partition), None)
    state.save()
    done = _write_scored(state, settings, {p: raw[p] for p in chosen}, stats)
    run.partitions = sorted(map(hive_path, chosen))
    _count_rows(state, done, scored)
    for partition, part in done.items():
        ok = sum(statuses[Status.OK.value] for statuses in part.statuses.values())
        state.manifest.finalized[hive_path(partition)] = Verdicts(run.run_id, ok, part.flagged.total())
    if not everything:
        run.drift = check_drift(job, state.manifest, stats, chosen)
    run.seconds["finalize"] = round(time.perf_counter() - started, 3)


def without_verdict(state: State) -> list[str]:
    """Partitions of `raw/` that are new, or of a run that died before it finalised them."""
    return [p for p in partitions(state.output, "raw") if hive_path(p) not in state.manifest.finalized]


@dataclass(frozen=True)
class _How:
    """How scores become verdicts, and what the manifest says of it; `tau` is None where it is a quantile, still to be found."""

    settings: Settings
    fit: FitRecord
    tau: ThresholdRecord | None


def _how(job: Job, state: State, stats: dict[str, PartitionStats], chosen: Sequence[str]) -> _How:
    """By a calibration, or by the job file."""
    if job.calibration is not None:
        calibration = load_calibration(job.calibration, state.manifest, job.values)
        return _calibrated(job, calibration, state.run.run_id, f"calibration {calibration.calibration_id}", own=True)
    if speaks_of(job, state.manifest.fingerprint):
        return _calibrated(job, bundled_calibration(), state.run.run_id, BUNDLED, own=False)
    fits = fits_of(job.normalize, job.values, stats, chosen, job.history.partitions)
    rule = Rule(fits, job.aggregate.mean, job.aggregate.positive, job.aggregate.epsilon, job.ensemble_weights)
    tau = job.threshold.value
    measured_on = job.threshold.measured_on or "nothing it names"
    record = None if tau is None else ThresholdRecord(tau, f"value in the job file, measured on {measured_on}")
    return _How(Settings(job.values, rule, tau, state.run.run_id), _fit_record(job, job.normalize.source, rule), record)


def _calibrated(job: Job, calibration: Calibration, run_id: str, name: str, *, own: bool) -> _How:
    rule = rule_of(calibration)
    settings = Settings(job.values, rule, calibration.threshold, run_id, calibration.probability)
    tau = ThresholdRecord(calibration.threshold, f"{name}, made for {calibration.target}", calibration.calibration_id)
    return _How(settings, _fit_record(job, name, rule, calibrated=own), tau)


def _without_scores(job: Job, run_id: str) -> _How:
    rule = Rule({}, job.aggregate.mean, job.aggregate.positive, job.aggregate.epsilon)
    record = _fit_record(job, job.normalize.source, rule)
    return _How(Settings(job.values, rule, None, run_id), record, ThresholdRecord(None, NO_SCORE))


def _fit_record(job: Job, source: str, rule: Rule, *, calibrated: bool = False) -> FitRecord:
    members = {
        name: MemberFit(**asdict(fit), value=job.values[name], suspicious_below=job.limits[name])
        for name, fit in rule.fits.items()
    }
    weights = None if rule.weights is None else dict(rule.weights)
    return FitRecord(source, members, rule.mean.value, rule.positive.value, rule.epsilon, weights, calibrated)


def _quantile(job: Job, state: State, settings: Settings, raw: dict[str, list[str]], chosen: Sequence[str]) -> ThresholdRecord:
    """tau, where it is a quantile; without any score it has no value."""
    import ray

    threshold = job.threshold
    assert threshold.quantile is not None
    names = [*chosen, *(history(raw, chosen, job.history.partitions) if threshold.of == "history" else [])]
    remote = ray.remote(num_cpus=DRIVER_CPUS)(score_cells)

    def look(low: int, high: int) -> Iterator[Cells]:
        tasks = [remote.remote(state.output.fs, raw[p], settings, low, high) for p in sorted(names)]
        while tasks:  # one at a time: hundreds of partitions have a gigabyte of them
            yield ray.get(tasks.pop())

    cut = share_cut(look, threshold.quantile)
    if cut is None:
        return ThresholdRecord(None, NO_SCORE)
    source = f"quantile {threshold.quantile:g} of the {cut.count} responses of this run" + (
        " and its history" if threshold.of == "history" else ""
    )
    share = cut.flagged / cut.count
    if share > threshold.quantile + TIED:
        source += f"; {share:.1%} have that score or less, because many tie (aggregate.positive: cdf or shift makes fewer ties)"
    return ThresholdRecord(cut.value, source)


def _write_scored(
    state: State, settings: Settings, raw: dict[str, list[str]], stats: dict[str, PartitionStats]
) -> dict[str, Finalized]:
    import ray

    remote = ray.remote(num_cpus=DRIVER_CPUS)(finalize_partition)
    tasks = {
        p: remote.remote(
            state.output.fs, files, state.output.path("/".join(filter(None, ["scored", p, "part-0.parquet"]))), settings
        )
        for p, files in raw.items()
    }
    rows: Counter[str] = Counter()
    for file in state.manifest.files:
        rows[file.partition] += (file.rows or 0) if file.state == SCORED else 0
    finished: dict[str, Finalized] = {}
    for partition, task in tasks.items():
        done = finished[partition] = ray.get(task)
        rows_in = rows[hive_path(partition)]
        if not done.rows == rows_in == sum(stats[partition].rows.values()):
            raise BalanceError(f"partition {partition!r}: {rows_in} rows in, {done.rows} rows in scored/")
    return finished


def _count_rows(state: State, done: dict[str, Finalized], scored: Collection[int] | None) -> None:
    """Report rows as `scored/` has them: of some input files, or of all. A row may have lost its score on the way.

    Errors are counted of all rows that were written, and of those alone that had no verdict before (of earlier runs of `score`,
    or of one that died), so that a large partition around them doesn't hide them.
    """
    run, files = state.run, state.manifest.files
    statuses, new, written = Counter[str](), Counter[str](), Counter[str]()
    run.sentences = run.flagged = 0
    for part in done.values():
        for number, found in part.statuses.items():
            written.update(found)
            new.update({} if files[number].judged else found)
            files[number].judged = True
            if scored is None or number in scored:
                statuses.update(found)
                run.sentences += part.sentences[number]
                run.flagged += part.flagged[number]
    ok, total = statuses[Status.OK.value], statuses.total()
    run.statuses = dict(statuses)
    if written:
        run.errors = worst_share(new, written)
    skipped = 0 if scored is None else run.rows["skipped"]
    run.rows = {"in": total + skipped, "scored": ok, "failed": total - ok, "skipped": skipped}
