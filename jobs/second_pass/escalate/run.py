"""The cascade: choose doubtful responses, put them to the judge, and let it decide those that it could."""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace

import numpy as np
from rich.console import Console

from ragassay.jobs.config.job import Job
from ragassay.jobs.output.partitions import hive_path
from ragassay.jobs.output.scored_dataset import DataFile, ScoredDataset, open_scored
from ragassay.jobs.output.sidecar import open_escalations
from ragassay.jobs.output.snapshot import judged_id
from ragassay.jobs.progress.stages import show_stages
from ragassay.jobs.progress.task import advance, expect, task
from ragassay.jobs.runtime.clean_output import clean_task
from ragassay.jobs.runtime.dataflow import run_dataflow
from ragassay.jobs.runtime.resources import MODEL_FREE_TASK_CPUS
from ragassay.jobs.scoring.register import check_slm
from ragassay.jobs.scoring.stages import make_slm_stage
from ragassay.jobs.second_pass.escalate import errors
from ragassay.jobs.second_pass.escalate.apply import VerdictChanges, rewrite_file
from ragassay.jobs.second_pass.escalate.candidates import Candidates, read_candidates, select_responses, sum_earlier_doubt
from ragassay.jobs.second_pass.escalate.outcomes import Outcomes, drop_superseded, read_outcomes, sum_usage
from ragassay.jobs.second_pass.scored_rows import group_by_file, make_row_source
from ragassay.jobs.storage.folder import Folder
from ragassay.jobs.verdicts.judge_files import find_judge_files
from ragassay.pipeline.arrays import Ints
from ragassay.pipeline.cascade.config import EscalationPolicy
from ragassay.pipeline.cascade.dynamic import ScoreTotal
from ragassay.pipeline.errors import OutputError
from ragassay.pipeline.stages.escalate import JudgeInputStage, JudgeOutputStage
from ragassay.pipeline.stages.stage import Stage
from ragassay.schemas.columns import Status
from ragassay.schemas.escalated import ESCALATED, escalated_partition_key, escalated_partition_path, escalated_schema
from ragassay.schemas.manifest import Escalation, JudgeRecord, Manifest

SERVED_BLOCK_MIB = 0.5
"""A block of rows for a served judge is no larger: what a run that is killed has under way is paid for, and lost."""


@dataclass(frozen=True)
class ChosenResponses:
    """The responses that the judge is to decide.

    Attributes:
        judge: Who it is.
        pending: Partitions of `scored/` that they were chosen from, as on disk.
        scored: Scored responses in these.
        keys: `row_key` of each response that the judge decides, those that it was asked about before among them.
        wanted: Those that it is still to be asked about, by their files.
        started: When choosing began (`time.perf_counter()`).
    """

    judge: JudgeRecord
    partitions: list[str]
    scored: int
    keys: Ints
    unanswered: dict[DataFile, Ints]
    started: float


@dataclass(frozen=True)
class EscalationResult:
    """What an escalation did to `scored/`.

    Attributes:
        record: What the manifest says of it; without its time.
        partitions: Those that it chose from, as they stand on disk.
        flagged: Hive path of each partition that was written anew -> its hallucinated responses.
        verdicts_id: Id of the verdicts in these.
        rise: Number of an input file -> how many more of its responses are hallucinated than before.
    """

    record: Escalation
    partitions: list[str]
    flagged: dict[str, int]
    verdicts_id: str
    increase: Counter[int] = field(default_factory=Counter)


def choose_responses(job: Job, output: Folder, manifest: Manifest, *, choose_again: bool) -> ChosenResponses:
    """Choose the responses to escalate from what has verdicts and was not escalated yet; first clear up after a killed run.

    Args:
        job: Its `escalation` names the judge, and what it is asked.
        output: The output folder, finalised and locked.
        manifest: Its manifest.
        choose_again: Choose again from partitions that were escalated by another `when` or `share`.

    Raises:
        RagassayError: See `pipeline.errors`.
    """
    started, escalate = time.perf_counter(), job.escalation.policy
    assert escalate is not None
    judge = JudgeRecord(escalate.judge.name, escalate.judge.value, escalate.judge.suspicious_below, escalate.identity())
    advice = f"move {output.uri_of(ESCALATED)} away and run `ragassay finalize {output.uri}` with the job file first"
    then = asdict(manifest.judge) if manifest.judge else None
    open_escalations(output).check_settings(then, asdict(judge), "the verdicts of a judge", advice)
    open_escalations(output).discard_uncommitted()
    drop_superseded(output)
    pending = find_unescalated(output, manifest, escalate if choose_again else None)
    found = read_candidates(pending, escalate, job.members.values)
    known = read_outcomes(output)
    _require_answers(output, found, known)
    earlier = open_scored(output).select_partitions(manifest.finalized).exclude_partitions(map(hive_path, pending.partitions))
    chosen = select_responses(
        found, escalate, sum_earlier_doubt(earlier, escalate, job.members.values) if escalate.threshold else ScoreTotal()
    )
    asked_before = known.keys[np.isin(known.keys, found.keys) | known.is_error]
    keys = np.union1d(found.keys[chosen], asked_before)
    return ChosenResponses(
        judge, list(pending.partitions), len(found.keys), keys, select_unanswered(found, chosen, known, earlier), started
    )


def ask_judge(job: Job, output: Folder, run_id: str, wanted: Mapping[DataFile, Ints], console: Console) -> None:
    """Put responses to the judge; its answers are written to `escalated/`.

    Args:
        job: Its `escalation` names the judge, and what it is asked.
        output: The output folder, locked; its manifest names this judge. Ray is running.
        run_id: Of the run that asks.
        wanted: The responses, by their files.
        console: Where progress goes.

    Raises:
        RagassayError: See `pipeline.errors`; no answer that is committed is lost, the same command goes on where it stopped.
    """
    escalate = job.escalation.policy
    assert escalate is not None
    if not escalate.judge.engine.IS_SERVED:
        check_slm(escalate.judge)
    rows = sum(map(len, wanted.values()))
    console.print(f"{rows} responses to put to the judge")
    names = {key: escalated_partition_key(key) for file in wanted for key in file.keys}
    sink = open_escalations(output).make_sink(list(names.values()), escalated_schema(names.values()))
    block_mib = min(job.runtime.block_mib, SERVED_BLOCK_MIB) if escalate.judge.engine.IS_SERVED else job.runtime.block_mib
    stages = make_judge_stages(job, escalate, run_id)
    with show_stages(stages, rows, 0, console) as board:
        run_dataflow(make_row_source(output, wanted, names), stages, sink, block_mib, board)
    drop_superseded(output)


def apply_decisions(
    job: Job, output: Folder, manifest: Manifest, chosen: ChosenResponses, console: Console
) -> EscalationResult:
    """Put the judge's decisions into `scored/`, and count what it decided and what that cost.

    Args:
        job: Its `escalation` states what an answer costs.
        output: The output folder, finalised and locked; Ray is running.
        manifest: Its manifest; its last run is this one.
        chosen: The responses, which the judge was asked about.
        console: Where progress goes.

    Raises:
        BalanceError: A row that was to be judged has not exactly one outcome.
    """
    escalate = job.escalation.policy
    assert escalate is not None
    touched = list(dict.fromkeys([*chosen.partitions, *(file.partition for file in chosen.unanswered)]))
    record = _make_record(output, manifest, escalate, chosen)
    verdicts_id = judged_id(manifest.runs[-1].run_id)
    with task(console, "deciding", "escalated", unit="partitions"):
        flagged, changed, rise = _rewrite_partitions(output, manifest, touched, chosen.keys, verdicts_id)
    return EscalationResult(replace(record, changed=changed), chosen.partitions, flagged, verdicts_id, rise)


def find_unescalated(output: Folder, manifest: Manifest, policy: EscalationPolicy | None = None) -> ScoredDataset:
    """Partitions of `scored/` that have verdicts and were not escalated; all, where `escalated/` was moved away.

    Args:
        output: The output folder.
        manifest: Its manifest.
        policy: Also those that were escalated by another `when` or `share` than this one's.
    """
    moved = manifest.judge is not None and not output.list(ESCALATED, ".parquet")
    done = {} if moved else manifest.escalated
    if policy is not None:
        records = {run.run_id: run.escalation for run in manifest.runs}
        ways = {run_id: (record.when, record.share) for run_id, record in records.items() if record is not None}
        done = {place: run_id for place, run_id in done.items() if ways.get(run_id) == (policy.when, policy.share)}
    return open_scored(output).select_partitions(manifest.finalized).exclude_partitions(done)


def make_judge_stages(job: Job, escalate: EscalationPolicy, run_id: str = "") -> list[Stage]:
    """The stages of the plan: the judge's own, as that of any SLM, between two that fit it to its source and its sink."""
    return [
        JudgeInputStage(),
        make_slm_stage(job, escalate.judge, (escalate.judge.replicas,)),
        JudgeOutputStage(run_id),
    ]


def _require_answers(output: Folder, found: Candidates, known: Outcomes) -> None:
    """Refuse verdicts of a judge of whose answers `escalated/` holds none any more: only `finalize` can take them back."""
    gone = found.has_judge_verdict & ~np.isin(found.keys, known.keys)
    if gone.any():
        raise OutputError(errors.ANSWERS_GONE, verdicts=int(gone.sum()), output=output.uri, folder=ESCALATED)


def select_unanswered(found: Candidates, chosen: Ints, known: Outcomes, earlier: ScoredDataset) -> dict[DataFile, Ints]:
    """The rows to ask about, by their files: those chosen that have no outcome, and errors of any night."""
    asked = np.isin(found.keys, known.keys[known.is_error])
    asked[chosen] |= ~np.isin(found.keys[chosen], known.keys)
    wanted = group_by_file(found.files, found.file_numbers[asked], found.keys[asked])
    for place, part in earlier.partitions.items():
        again = known.keys[known.is_error & known.is_in_partition(hive_path(escalated_partition_path(place)))]
        if len(again):
            wanted |= dict.fromkeys(part.files, again)
    return wanted


def _make_record(output: Folder, manifest: Manifest, escalate: EscalationPolicy, chosen: ChosenResponses) -> Escalation:
    """The record of an escalation, from what stands in `escalated/`.

    Raises:
        BalanceError: A row that was to be judged has not exactly one outcome.
    """
    keys, judge = chosen.keys, chosen.judge
    there = read_outcomes(output).keys
    open_escalations(output).check_outcomes(keys, there[np.isin(there, keys)])
    counted = [run.run_id for run in manifest.runs if run.escalation is not None]
    statuses, used, asked = sum_usage(output, keys, counted)
    dollars = None
    if escalate.price is not None:  # an answer is one token
        dollars = escalate.price.compute_cost(used["tokens_computed"] - used["prompts"], used["prompts"])
    return Escalation(
        judge.name,
        escalate.when,
        escalate.share,
        judge.identity,
        partitions=sorted(map(hive_path, chosen.partitions)),
        scored=chosen.scored,
        chosen=len(keys),
        decided=statuses.pop(Status.OK.value, 0),
        failed=dict(statuses),
        sent=asked,
        usage=used,
        dollars=dollars,
    )


def _rewrite_partitions(
    output: Folder, manifest: Manifest, places: Sequence[str], keys: Ints, verdicts_id: str
) -> tuple[dict[str, int], int, Counter[int]]:
    """Put the decisions into partitions of `scored/`.

    Returns:
        Hallucinated responses of each that was written, by hive path; verdicts that changed; `Escalated.rise`.
    """
    import ray

    remote = ray.remote(num_cpus=MODEL_FREE_TASK_CPUS)(clean_task(rewrite_file))
    scored, judged = open_scored(output).partitions, find_judge_files(output, manifest, places)
    tasks = {
        p: [remote.remote(output.fs, file, judged[p], keys, verdicts_id) for file in scored[p].files]
        for p in places
        if judged[p].files
    }
    flagged: dict[str, int] = {}
    changed, rise = 0, Counter[int]()
    expect(len(tasks), "partitions")
    for place, parts in tasks.items():
        done: list[VerdictChanges] = [ray.get(part) for part in parts]
        advance(1, "partitions")
        flagged[hive_path(place)] = sum(part.flagged for part in done)
        changed += sum(part.changed for part in done)
        for part in done:
            rise.update(part.increase)
    return flagged, changed, rise
