"""The step `account`, and the folds: what each step returned, into the manifest and the record of the run.

A fold is a function of the manifest so far and of the record of a step; it gives a new manifest, and reads and writes nothing.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from ragassay.jobs.config.job import Job
from ragassay.jobs.output.partitions import hive_path
from ragassay.jobs.run import errors as codes
from ragassay.jobs.run.decide import Written
from ragassay.jobs.run.fit import Fitted
from ragassay.jobs.run.plan import RunPlan
from ragassay.jobs.run.score import Scored
from ragassay.jobs.scoring.backfill import left_of
from ragassay.jobs.scoring.register import waiting_partitions
from ragassay.jobs.second_pass.escalate.run import Chosen, Escalated
from ragassay.jobs.verdicts.drift import check_drift
from ragassay.jobs.verdicts.error_share import worst_share
from ragassay.jobs.verdicts.fit import fit_output
from ragassay.jobs.verdicts.verdicts import count_rows
from ragassay.pipeline.errors import BalanceError
from ragassay.schemas.columns import Status
from ragassay.schemas.manifest import LEFT, PENDING, SCORED, DriftCheck, InputFile, Manifest, Run, Verdicts

Value = TypeVar("Value")


@dataclass(frozen=True)
class Outcome:
    """What the steps of a run returned; None where one did not run.

    Attributes:
        scored: Of `score`.
        fitted: Of `fit`; None also where every partition waits.
        escalated: Of `escalate`.
    """

    scored: Scored | None = None
    fitted: Fitted | None = None
    escalated: Escalated | None = None


def account(plan: RunPlan, manifest: Manifest, outcome: Outcome) -> DriftCheck | None:
    """Compare the partitions that got verdicts with the history before them; of a run that read logs.

    Args:
        plan: The plan.
        manifest: As the step before left it.
        outcome: What the steps returned.
    """
    scored, fitted = outcome.scored, outcome.fitted
    if scored is None:
        return None
    waiting = waiting_partitions(manifest, scored.begun, scored.deferred)
    latest = list(fitted.scores.chosen) if fitted is not None else []
    if not latest and outcome.escalated is not None:  # a run that broke off behind its verdicts is compared now
        # A partition that waits has no statistics to compare.
        latest = [place for place in outcome.escalated.partitions if hive_path(place) not in waiting]
    if not latest:
        return None
    stats = fitted.scores.stats if fitted is not None else fit_output(plan.job.members.values, plan.output, waiting)
    return check_drift(plan.job.verdict, manifest, stats, latest)


def begin_run(plan: RunPlan, run: Run) -> Manifest:
    """The plan's manifest with the record of a run that begins, and with what is new of its input."""
    manifest, registration = plan.manifest, plan.registration
    if registration is None:
        return replace(manifest, runs=[*manifest.runs, run])
    selection = registration.selection
    run = replace(
        run,
        source=selection.logs.source,
        share=plan.options.backfill.share,
        files_touched=registration.touched,
        files_skipped=registration.skipped,
    )
    manifest = manifest.with_unsealed(registration.unsealed)
    files = {**manifest.files, **registration.entries}
    return replace(manifest, fingerprint=registration.fingerprint, files=files, runs=[*manifest.runs, run])


def fold_score(manifest: Manifest, plan: RunPlan, scored: Scored) -> Manifest:
    """Add what was scored: files that are whole now are scored, and their partitions have no verdicts until they are made.

    Raises:
        BalanceError: The rows of the run do not add up.
    """
    assert plan.selection is not None
    files = {n: replace(file, state=LEFT) if file.state == PENDING else file for n, file in manifest.files.items()}
    for number, file in scored.whole.items():
        rows_out = scored.counted.statuses.get(number, Counter()).total()
        # Verdicts of a part of its rows are none of the rest.
        files[number] = replace(files[number], state=SCORED, judged=False, sampled_out=(file.rows or 0) - rows_out)
    ended = {files[number].partition for number in scored.whole}
    statuses = scored.counted.all_statuses()
    sampled_out = sum(files[number].sampled_out for number in scored.whole)
    rows = _rows(plan, scored, statuses, sampled_out)
    skips = {
        "sampled_out": sampled_out,
        "outside": sum(file.rows or 0 for file in plan.selection.outside),
        "left": sum(file.rows or 0 for file in scored.deferred),
    }
    share = plan.options.backfill.share
    done_now = sum(scored.committed.values()) + statuses.total() - scored.resumed
    manifest = replace(
        manifest,
        files=files,
        finalized=_without(manifest.finalized, ended),
        escalated=_without(manifest.escalated, ended),
    )
    return _with_run(
        manifest,
        resumed=scored.resumed,
        statuses=dict(statuses),
        usage=scored.counted.usage,
        sentences=scored.counted.sentences.total(),
        errors=worst_share(statuses),
        dtypes=_dtypes(plan.job),
        rows=rows,
        left=left_of(scored.deferred, scored.committed, share, done_now),
        skips={why: count for why, count in skips.items() if count},
        seconds={**manifest.runs[-1].seconds, "score": scored.seconds},
    )


def fold_fit(manifest: Manifest, fitted: Fitted) -> Manifest:
    """Add how scores become verdicts; the partitions that get them have none until they are written."""
    seconds = {**manifest.runs[-1].seconds, "fit": fitted.seconds}
    manifest = replace(manifest, finalized=_without(manifest.finalized, set(map(hive_path, fitted.scores.chosen))))
    return _with_run(
        manifest, fit=fitted.decided.fit, origins=fitted.decided.origins, threshold=fitted.threshold, seconds=seconds
    )


def fold_verdicts(manifest: Manifest, scored: Scored | None, fitted: Fitted, written: Written) -> Manifest:
    """Add the verdicts that were written.

    Args:
        manifest: As the fit left it.
        scored: What this run has scored, whose rows it reports; None reports the rows of all that was written.
        fitted: How scores became verdicts.
        written: The verdicts.
    """
    run = manifest.runs[-1]
    counted = count_rows(manifest.files, written.partitions.values(), scored.whole if scored is not None else None)
    statuses, sentences, skipped = counted.statuses, counted.sentences, 0
    if scored is not None:  # files whose partitions wait have no verdicts, and are scored all the same
        without = {number for number in scored.whole if manifest.files[number].partition in fitted.waiting}
        statuses = statuses + scored.counted.all_statuses(without)
        sentences += sum(scored.counted.sentences[number] for number in without)
        skipped = run.rows["skipped"]
    ok, total = statuses[Status.OK.value], statuses.total()
    judged = {number: replace(manifest.files[number], judged=True) for number in counted.files & manifest.files.keys()}
    places = {hive_path(place): part for place, part in written.partitions.items()}
    manifest = replace(
        manifest,
        files={**manifest.files, **judged},
        finalized={
            **manifest.finalized,
            **{place: _verdicts(run.run_id, part.statuses, part.flagged) for place, part in places.items()},
        },
        verdict_files={**manifest.verdict_files, **dict.fromkeys(places, run.run_id)},
    )
    return _with_run(
        manifest,
        partitions=sorted(places),
        statuses=dict(statuses),
        sentences=sentences,
        flagged=counted.flagged,
        rows={"in": total + skipped, "scored": ok, "failed": total - ok, "skipped": skipped},
        errors=counted.errors or run.errors,
        seconds={**run.seconds, "finalize": written.seconds},
    )


def fold_judge(manifest: Manifest, chosen: Chosen) -> Manifest:
    """Name the judge, before it is asked: `escalated/` is to hold its answers."""
    return replace(manifest, judge=chosen.judge)


def fold_escalation(manifest: Manifest, scored: Scored | None, escalated: Escalated) -> Manifest:
    """Add what the judge decided; the run's own count of flagged responses, where it has one, is that of the verdicts in force.

    Args:
        manifest: As the step before left it.
        scored: What this run has scored, whose rows it reports; None for a command of its own.
        escalated: What the judge decided.
    """
    run = manifest.runs[-1]
    finalized = {place: replace(manifest.finalized[place], flagged=count) for place, count in escalated.flagged.items()}
    done = dict.fromkeys(map(hive_path, escalated.partitions), run.run_id)
    changes: dict[str, Any] = {}
    if scored is None:
        rows = manifest.scored_rows().total()
        changes["rows"] = {"in": rows, "scored": 0, "failed": 0, "skipped": rows}
    if run.flagged is not None:
        rise = sum(more for number, more in escalated.rise.items() if scored is None or number in scored.whole)
        changes["flagged"] = run.flagged + rise
    manifest = replace(
        manifest,
        finalized={**manifest.finalized, **finalized},
        verdict_files={**manifest.verdict_files, **dict.fromkeys(escalated.flagged, escalated.verdicts_id)},
        escalated={**manifest.escalated, **done},
    )
    seconds = {**run.seconds, "escalate": escalated.record.seconds}
    return _with_run(manifest, escalation=escalated.record, seconds=seconds, **changes)


def end_run(manifest: Manifest, drift: DriftCheck | None, finished: str) -> Manifest:
    """End the record of the run.

    Args:
        manifest: As the last step left it.
        drift: Of `account`.
        finished: Time, UTC, ISO 8601.
    """
    errors = manifest.runs[-1].errors
    if not errors:  # it wrote no row: what was wrong with those before is wrong still
        errors = next((before.errors for before in reversed(manifest.runs) if before.errors), {})
    return _with_run(manifest, drift=drift, errors=errors, finished=finished)


def open_files(files: Mapping[int, InputFile]) -> list[int]:
    """Numbers of the files that are not scored, of which the checkpoint alone may know rows."""
    return [number for number, file in files.items() if file.state in (PENDING, LEFT)]


def _rows(plan: RunPlan, scored: Scored, statuses: Counter[str], sampled_out: int) -> dict[str, int]:
    """The rows of the input: in = scored + failed + skipped."""
    assert plan.selection is not None
    rows_in = sum(file.rows or 0 for file in plan.selection.logs.files)
    skipped = rows_in - sum(file.rows or 0 for file in scored.whole.values()) + sampled_out
    ok = statuses[Status.OK.value]
    rows = {"in": rows_in, "scored": ok, "failed": statuses.total() - ok, "skipped": skipped}
    if rows["in"] != rows["scored"] + rows["failed"] + rows["skipped"]:
        raise BalanceError(codes.RUN_UNBALANCED, rows=rows)
    return rows


def _dtypes(job: Job) -> dict[str, str]:
    members = job.members
    engines = {slm.name: slm.engine for slm in members.slms} | {model.name: model.engine for model in members.reading_models}
    return {name: engine.computes_in for name, engine in engines.items()}


def _verdicts(run_id: str, statuses: Mapping[int, Counter[str]], flagged: Counter[int]) -> Verdicts:
    return Verdicts(run_id, sum(found[Status.OK.value] for found in statuses.values()), flagged.total())


def _without(known: Mapping[str, Value], places: Collection[str]) -> dict[str, Value]:
    return {place: value for place, value in known.items() if place not in places}


def _with_run(manifest: Manifest, **changes: Any) -> Manifest:
    """The manifest with changes to the record of its last run."""
    return replace(manifest, runs=[*manifest.runs[:-1], replace(manifest.runs[-1], **changes)])
