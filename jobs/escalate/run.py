"""The cascade: choose doubtful responses, put them to the judge, and let it decide those that it could."""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

import numpy as np
from rich.console import Console

from ragassay.jobs.config import Job
from ragassay.jobs.escalate.apply import Applied, apply_file
from ragassay.jobs.escalate.candidates import Candidates, before, candidates, choose
from ragassay.jobs.escalate.written import Outcomes, drop_superseded, outcomes, spent
from ragassay.jobs.output.fingerprint import differences, short
from ragassay.jobs.output.manifest import write_manifest
from ragassay.jobs.output.partitions import hive_keys, hive_path, partitions
from ragassay.jobs.output.snapshot import judged_id
from ragassay.jobs.plan import Sink, run_plan
from ragassay.jobs.progress.task import advance, expect, task
from ragassay.jobs.resources import DRIVER_CPUS
from ragassay.jobs.score.checkpoint import clear_pending
from ragassay.jobs.score.progress import progress
from ragassay.jobs.score.register import check_slm
from ragassay.jobs.score.stages import slm_stage
from ragassay.jobs.scored_rows import Place, by_file, chosen_rows
from ragassay.jobs.storage import Folder
from ragassay.jobs.verdict.judged import judged_partitions
from ragassay.pipeline.arrays import Ints
from ragassay.pipeline.errors import BalanceError, OutputError
from ragassay.pipeline.escalate.config import Escalate
from ragassay.pipeline.escalate.dynamic import Segment
from ragassay.pipeline.stages.escalate import FromJudge, ToJudge
from ragassay.pipeline.stages.stage import Stage
from ragassay.schemas.columns import Status
from ragassay.schemas.escalated import ESCALATED, escalated_key, escalated_place, escalated_schema
from ragassay.schemas.manifest import Escalation, JudgeRecord, Manifest, Run

CHECKPOINT = "_escalating"

SERVED_BLOCK_MIB = 0.5
"""A block of rows for a served judge is no larger: what a run that is killed has under way is paid for, and lost."""


@dataclass
class Escalated:
    """What an escalation did to `scored/`.

    Attributes:
        partitions: Those it chose from, as they stand on disk.
        rise: Number of an input file -> how many more of its responses are hallucinated than before.
    """

    partitions: list[str]
    rise: Counter[int] = field(default_factory=Counter)


def escalate_output(job: Job, output: Folder, manifest: Manifest, run: Run, console: Console, *, anew: bool) -> Escalated:
    """Escalate what has verdicts and was not escalated yet, write `escalated/`, and put the decisions into `scored/`.

    Args:
        job: Its `escalate` says what is asked of whom.
        output: The output folder, finalised and locked; Ray is running.
        manifest: Its manifest.
        run: The run's record, which gets that of the escalation.
        console: Where progress goes.
        anew: Choose again from partitions that were escalated by another `when` or `share`.

    Raises:
        RagassayError: See `pipeline.errors`; no answer that is committed is lost, the same command goes on where it stopped.
    """
    escalate = job.escalate
    assert escalate is not None
    started = time.perf_counter()
    judge = JudgeRecord(escalate.to.name, escalate.to.value, escalate.to.suspicious_below, escalate.identity())
    _check_judge(output, manifest, judge)
    clear_pending(output, CHECKPOINT, ESCALATED)
    output.delete(CHECKPOINT)
    drop_superseded(output)
    pending = not_escalated(output, manifest, escalate if anew else None)
    found = candidates(output, pending, escalate, job.values)
    known = outcomes(output)
    _refuse_other_verdicts(output, found, known)
    earlier = {p: files for p, files in _finalized(output, manifest).items() if p not in pending}
    chosen = choose(found, escalate, _history(output, earlier, job, escalate))
    asked_before = known.keys[np.isin(known.keys, found.keys) | known.failed]
    keys = np.union1d(found.keys[chosen], asked_before)
    wanted = wanted_rows(found, chosen, known, earlier)
    if wanted:
        manifest.judge = judge
        write_manifest(output, manifest)
        _ask(job, escalate, output, manifest, run.run_id, wanted, console)
        drop_superseded(output)
    touched = [*pending, *{place for place, _ in wanted if place not in pending}]
    record = _account(output, manifest, escalate, judge, keys)
    record.partitions, record.scored = sorted(map(hive_path, pending)), len(found.keys)
    with task(console, "deciding", "escalated", unit="partitions"):
        done = _apply(output, manifest, touched, keys, judged_id(run.run_id))
    record.changed = done.changed
    for place in pending:
        manifest.escalated[hive_path(place)] = run.run_id
    record.seconds = round(time.perf_counter() - started, 3)
    run.escalation, run.seconds["escalate"] = record, record.seconds
    write_manifest(output, manifest)
    output.delete(CHECKPOINT)
    return Escalated(list(pending), done.rise)


def not_escalated(output: Folder, manifest: Manifest, under: Escalate | None = None) -> dict[str, list[str]]:
    """Partitions of `scored/` that have verdicts and were not escalated; all, where `escalated/` was moved away.

    Args:
        output: The output folder.
        manifest: Its manifest.
        under: Also those that were escalated by another `when` or `share` than this one's.
    """
    moved = manifest.judge is not None and not output.list(ESCALATED, ".parquet")
    done = {} if moved else manifest.escalated
    if under is not None:
        records = {run.run_id: run.escalation for run in manifest.runs}
        ways = {run_id: (record.when, record.share) for run_id, record in records.items() if record is not None}
        done = {place: run_id for place, run_id in done.items() if ways.get(run_id) == (under.when, under.share)}
    return {p: files for p, files in _finalized(output, manifest).items() if hive_path(p) not in done}


def _finalized(output: Folder, manifest: Manifest) -> dict[str, list[str]]:
    return {p: files for p, files in partitions(output, "scored").items() if hive_path(p) in manifest.finalized}


def judge_stages(job: Job, escalate: Escalate, run_id: str = "") -> list[Stage]:
    """The stages of the plan: the judge's own, as that of any SLM, between two that fit it to its source and its sink."""
    return [
        ToJudge(),
        slm_stage(job, escalate.to, (escalate.to.replicas,)),
        FromJudge(run_id),
    ]


def _check_judge(output: Folder, manifest: Manifest, now: JudgeRecord) -> None:
    """Refuse to mix the verdicts of two judges."""
    if manifest.judge is None or not output.list(ESCALATED, ".parquet"):
        return
    found = differences(asdict(manifest.judge), asdict(now))
    if found:
        raise OutputError(
            "\n".join(
                [
                    f"output {output.uri} holds the verdicts of another judge than escalate.to names:",
                    *(f"  {where.removeprefix('identity.')}: was {short(a)}, is {short(b)}" for where, a, b in found),
                    f"Take the settings back; or, to have all of it judged anew, move {output.uri_of(ESCALATED)} away and run "
                    f"`ragassay finalize {output.uri}` with the job file first",
                ]
            )
        )


def _refuse_other_verdicts(output: Folder, found: Candidates, known: Outcomes) -> None:
    """Refuse verdicts of a judge of whose answers `escalated/` holds none any more: only `finalize` can take them back."""
    gone = found.judged & ~np.isin(found.keys, known.keys)
    if gone.any():
        raise OutputError(
            f"{int(gone.sum())} verdicts of output {output.uri} are of a judge whose answers no longer stand in {ESCALATED}/: "
            f"run `ragassay finalize {output.uri}` with the job file first, which gives them back to the ensemble"
        )


def _history(output: Folder, earlier: Mapping[str, Sequence[str]], job: Job, escalate: Escalate) -> Segment:
    return before(output, earlier, escalate, job.values) if escalate.threshold else Segment()


def wanted_rows(found: Candidates, chosen: Ints, known: Outcomes, earlier: Mapping[str, Sequence[str]]) -> dict[Place, Ints]:
    """The rows to ask about, by their files: those chosen that have no outcome, and errors of any night."""
    asked = np.isin(found.keys, known.keys[known.failed])
    asked[chosen] |= ~np.isin(found.keys[chosen], known.keys)
    wanted = by_file(found.paths, found.files[asked], found.keys[asked])
    for place, paths in earlier.items():
        again = known.keys[known.failed & known.of(hive_path(escalated_place(place)))]
        if len(again):
            wanted |= {(place, path): again for path in paths}
    return wanted


def _ask(
    job: Job,
    escalate: Escalate,
    output: Folder,
    manifest: Manifest,
    run_id: str,
    wanted: Mapping[Place, Ints],
    console: Console,
) -> None:
    if not escalate.to.engine.SERVED:
        check_slm(escalate.to)
    rows = sum(map(len, wanted.values()))
    console.print(f"{rows} responses to put to the judge")
    names = {key: escalated_key(key) for place, _ in wanted for key in hive_keys(place)}
    output.fs.create_dir(output.path(ESCALATED), recursive=True)
    sink = Sink(output, ESCALATED, list(names.values()), escalated_schema(names.values()), CHECKPOINT)
    block_mib = min(job.block_mib, SERVED_BLOCK_MIB) if escalate.to.engine.SERVED else job.block_mib
    stages = judge_stages(job, escalate, run_id)
    with progress(stages, rows, 0, console) as counts:
        run_plan(chosen_rows(output, wanted, names), stages, sink, block_mib, counts)


def _account(output: Folder, manifest: Manifest, escalate: Escalate, judge: JudgeRecord, keys: Ints) -> Escalation:
    """The record of an escalation, from what stands in `escalated/`.

    Raises:
        BalanceError: A row that was to be judged has not exactly one outcome.
    """
    there = outcomes(output).keys
    there = np.sort(there[np.isin(there, keys)])
    if not np.array_equal(there, keys):
        raise BalanceError(
            f"{len(keys)} responses were to be judged, and {output.uri_of(ESCALATED)} has {len(there)} outcomes of them, "
            f"{len(np.unique(there))} of different ones: run the same command again"
        )
    counted = [run.run_id for run in manifest.runs if run.escalation is not None]
    statuses, used, asked = spent(output, keys, counted)
    record = Escalation(judge.name, escalate.when, escalate.share, judge.identity, chosen=len(keys), asked=asked, usage=used)
    record.decided = statuses.pop(Status.OK.value, 0)
    record.failed = dict(statuses)
    if escalate.price is not None:  # an answer is one token
        record.dollars = escalate.price.of(used["tokens_computed"] - used["prompts"], used["prompts"])
    return record


def _apply(output: Folder, manifest: Manifest, places: Sequence[str], keys: Ints, verdicts_id: str) -> Applied:
    """Put the decisions into partitions of `scored/`, and their shares of flagged responses into the manifest."""
    import ray

    remote = ray.remote(num_cpus=DRIVER_CPUS)(apply_file)
    scored, judged = partitions(output, "scored"), judged_partitions(output, manifest, places)
    tasks = {
        p: [remote.remote(output.fs, path, judged[p], keys, verdicts_id) for path in scored[p]]
        for p in places
        if judged[p].files
    }
    total = Applied()
    expect(len(tasks), "partitions")
    for place, parts in tasks.items():
        done: list[Applied] = [ray.get(part) for part in parts]
        advance(1, "partitions")
        manifest.finalized[hive_path(place)].flagged = sum(part.flagged for part in done)
        manifest.verdict_files[hive_path(place)] = verdicts_id
        total.changed += sum(part.changed for part in done)
        for part in done:
            total.rise.update(part.rise)
    return total
