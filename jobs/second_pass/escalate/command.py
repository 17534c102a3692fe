"""Escalate doubtful responses: choose them, ask the judge, and apply its decisions."""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace

import numpy as np
from rich.console import Console

from ragassay.jobs.config.job import Job
from ragassay.jobs.display.counted import format_count
from ragassay.jobs.output.partitions import hive_path
from ragassay.jobs.output.scored_dataset import DataFile, ScoredDataset, open_scored
from ragassay.jobs.output.sidecar_dataset import open_escalations
from ragassay.jobs.output.snapshot import judged_id
from ragassay.jobs.progress.stages import show_stages
from ragassay.jobs.progress.task import advance, expect, task
from ragassay.jobs.runtime.board import open_board
from ragassay.jobs.runtime.dataflow import run_dataflow
from ragassay.jobs.runtime.resources import MODEL_FREE_TASK_CPUS
from ragassay.jobs.runtime.tasks import make_task
from ragassay.jobs.scoring.register import prepare_slm
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
from ragassay.pipeline.stages.judge_input_output import JudgeInputStage, JudgeOutputStage
from ragassay.pipeline.stages.stage import Stage
from ragassay.schemas.columns import Status
from ragassay.schemas.escalated_columns import ESCALATED, escalated_partition_key, escalated_partition_path, escalated_schema
from ragassay.schemas.manifest import Escalation, JudgeRecord, Manifest

SERVED_BLOCK_MIB = 0.5
"""Maximum block size for a served judge: an interrupted run loses the answers of its open blocks, which are already billed."""


@dataclass(frozen=True)
class ChosenResponses:
    """The responses that the judge decides.

    Attributes:
        judge: The judge.
        partitions: Paths on disk of the partitions of `scored/` that they were chosen from.
        scored: Number of scored responses in these partitions.
        keys: `row_key` of each response, including those that already have an answer.
        unanswered: File -> `row_key`s of the responses to ask about.
        started: Start of the choice (`time.perf_counter()`).
    """

    judge: JudgeRecord
    partitions: list[str]
    scored: int
    keys: Ints
    unanswered: dict[DataFile, Ints]
    started: float


@dataclass(frozen=True)
class EscalationResult:
    """The effect of an escalation on `scored/`.

    Attributes:
        record: Record for the manifest, without its time.
        partitions: Paths on disk of the partitions that responses were chosen from.
        flagged: Hive path of each rewritten partition -> number of its hallucinated responses.
        verdicts_id: Id of the verdicts in these.
        increase: Number of an input file -> increase in its hallucinated responses; may be negative.
    """

    record: Escalation
    partitions: list[str]
    flagged: dict[str, int]
    verdicts_id: str
    increase: Counter[int] = field(default_factory=Counter)


def choose_responses(job: Job, output: Folder, manifest: Manifest, *, choose_again: bool) -> ChosenResponses:
    """Choose the responses to escalate from partitions that are finalized and not yet escalated.

    What an interrupted run left in `escalated/` is cleaned up first.

    Args:
        job: The job; `escalation` names the judge and the policy.
        output: The output folder, finalized and locked.
        manifest: Manifest of the output folder.
        choose_again: Include partitions that were escalated under another `when` or `share`.

    Raises:
        RagassayError: See `pipeline.errors`.
    """
    started, policy = time.perf_counter(), job.escalation.policy
    assert policy is not None
    judge = JudgeRecord(policy.judge.name, policy.judge.value, policy.judge.suspicious_below, policy.identity())
    advice = f"move {output.uri_of(ESCALATED)} away and run `ragassay finalize {output.uri}` with the job file first"
    recorded_judge = asdict(manifest.judge) if manifest.judge else None
    open_escalations(output).check_settings(recorded_judge, asdict(judge), "the verdicts of a judge", advice)
    open_escalations(output).discard_uncommitted()
    drop_superseded(output)
    unescalated = find_unescalated(output, manifest, policy if choose_again else None)
    candidates = read_candidates(unescalated, policy, job.members.value_kinds)
    outcomes = read_outcomes(output)
    _require_answers(output, candidates, outcomes)
    finalized = open_scored(output).select_partitions(manifest.finalized)
    earlier = finalized.exclude_partitions(map(hive_path, unescalated.partitions))
    earlier_doubt = sum_earlier_doubt(earlier, policy, job.members.value_kinds) if policy.threshold else ScoreTotal()
    selected = select_responses(candidates, policy, earlier_doubt)
    sent = outcomes.keys[np.isin(outcomes.keys, candidates.keys) | outcomes.is_error]
    return ChosenResponses(
        judge,
        list(unescalated.partitions),
        scored=len(candidates.keys),
        keys=np.union1d(candidates.keys[selected], sent),
        unanswered=select_unanswered(candidates, selected, outcomes, earlier),
        started=started,
    )


def ask_judge(job: Job, output: Folder, run_id: str, unanswered: Mapping[DataFile, Ints], console: Console) -> None:
    """Ask the judge about responses, and write its answers to `escalated/`.

    Args:
        job: The job; `escalation` names the judge.
        output: The output folder, locked; its manifest names this judge. Ray is running.
        run_id: Id of the run.
        unanswered: File -> `row_key`s of the responses.
        console: Where to show progress.

    Raises:
        RagassayError: See `pipeline.errors`. No committed answer is lost; the same command resumes.
    """
    policy = job.escalation.policy
    assert policy is not None
    if not policy.judge.engine.IS_SERVED:
        prepare_slm(policy.judge)
    rows = sum(map(len, unanswered.values()))
    console.print(f"{format_count(rows, 'response')} to send to the judge")
    partition_keys = {key: escalated_partition_key(key) for file in unanswered for key in file.keys}
    schema = escalated_schema(partition_keys.values())
    sink = open_escalations(output).make_sink(list(partition_keys.values()), schema)
    block_mib = min(job.runtime.block_mib, SERVED_BLOCK_MIB) if policy.judge.engine.IS_SERVED else job.runtime.block_mib
    stages = make_judge_stages(job, policy, run_id)
    with open_board(len(stages)) as board, show_stages(stages, rows, 0, board, console):
        run_dataflow(make_row_source(output, unanswered, partition_keys), stages, sink, block_mib, board)
    drop_superseded(output)


def apply_decisions(
    job: Job, output: Folder, manifest: Manifest, chosen: ChosenResponses, console: Console
) -> EscalationResult:
    """Apply the judge's decisions to `scored/`, and count them and their cost.

    Args:
        job: The job; `escalation` contains the judge's price.
        output: The output folder, finalized and locked. Ray is running.
        manifest: Manifest of the output folder, with the current run as its last one.
        chosen: The responses that the judge was asked about.
        console: Where to show progress.

    Raises:
        BalanceError: A chosen row does not have exactly one outcome.
    """
    policy = job.escalation.policy
    assert policy is not None
    paths = list(dict.fromkeys([*chosen.partitions, *(file.partition for file in chosen.unanswered)]))
    record = _make_record(output, manifest, policy, chosen)
    verdicts_id = judged_id(manifest.runs[-1].run_id)
    with task(console, "deciding", "escalated", unit="partitions"):
        flagged, changed, increase = _rewrite_partitions(output, manifest, paths, chosen.keys, verdicts_id)
    return EscalationResult(replace(record, changed=changed), chosen.partitions, flagged, verdicts_id, increase)


def find_unescalated(output: Folder, manifest: Manifest, policy: EscalationPolicy | None = None) -> ScoredDataset:
    """Find the partitions of `scored/` that are finalized and not escalated; all finalized ones if `escalated/` is missing.

    Args:
        output: The output folder.
        manifest: Manifest of the output folder.
        policy: Include partitions that were escalated under another `when` or `share` than those of this policy.
    """
    is_missing = manifest.judge is not None and not output.list(ESCALATED, ".parquet")
    escalated = {} if is_missing else manifest.escalated
    if policy is not None:
        records = {run.run_id: run.escalation for run in manifest.runs}
        policies = {run_id: (record.when, record.share) for run_id, record in records.items() if record is not None}
        escalated = {path: run_id for path, run_id in escalated.items() if policies.get(run_id) == (policy.when, policy.share)}
    return open_scored(output).select_partitions(manifest.finalized).exclude_partitions(escalated)


def make_judge_stages(job: Job, policy: EscalationPolicy, run_id: str = "") -> list[Stage]:
    """Make the stages that ask the judge: an SLM's stage between two that convert its input and output."""
    return [
        JudgeInputStage(),
        make_slm_stage(job, policy.judge, (policy.judge.replicas,)),
        JudgeOutputStage(run_id),
    ]


def _require_answers(output: Folder, candidates: Candidates, outcomes: Outcomes) -> None:
    """Refuse verdicts of a judge without answers in `escalated/`: only `finalize` can restore the ensemble's verdicts."""
    has_no_answer = candidates.has_judge_verdict & ~np.isin(candidates.keys, outcomes.keys)
    if has_no_answer.any():
        raise OutputError(errors.ANSWERS_GONE, verdicts=int(has_no_answer.sum()), output=output.uri, folder=ESCALATED)


def select_unanswered(
    candidates: Candidates, selected: Ints, outcomes: Outcomes, earlier: ScoredDataset
) -> dict[DataFile, Ints]:
    """Select the rows to ask about, by file: selected candidates without an outcome, and errors of all partitions."""
    is_unanswered = np.isin(candidates.keys, outcomes.keys[outcomes.is_error])
    is_unanswered[selected] |= ~np.isin(candidates.keys[selected], outcomes.keys)
    unanswered = group_by_file(candidates.files, candidates.file_numbers[is_unanswered], candidates.keys[is_unanswered])
    for path, partition in earlier.partitions.items():
        in_partition = outcomes.is_in_partition(hive_path(escalated_partition_path(path)))
        keys = outcomes.keys[outcomes.is_error & in_partition]
        if len(keys):
            unanswered |= dict.fromkeys(partition.files, keys)
    return unanswered


def _make_record(output: Folder, manifest: Manifest, policy: EscalationPolicy, chosen: ChosenResponses) -> Escalation:
    """Make the record of an escalation from the rows of `escalated/`.

    Raises:
        BalanceError: A chosen row does not have exactly one outcome.
    """
    keys, judge = chosen.keys, chosen.judge
    outcome_keys = read_outcomes(output).keys
    open_escalations(output).check_outcomes(keys, outcome_keys[np.isin(outcome_keys, keys)])
    counted_runs = [run.run_id for run in manifest.runs if run.escalation is not None]
    statuses, usage, sent = sum_usage(output, keys, counted_runs)
    dollars = None
    if policy.price is not None:  # an answer is one token
        dollars = policy.price.compute_cost(usage["tokens_computed"] - usage["prompts"], usage["prompts"])
    return Escalation(
        judge.name,
        policy.when,
        policy.share,
        judge.identity,
        partitions=sorted(map(hive_path, chosen.partitions)),
        scored=chosen.scored,
        chosen=len(keys),
        decided=statuses.pop(Status.OK.value, 0),
        failed=dict(statuses),
        sent=sent,
        usage=usage,
        dollars=dollars,
    )


def _rewrite_partitions(
    output: Folder, manifest: Manifest, paths: Sequence[str], keys: Ints, verdicts_id: str
) -> tuple[dict[str, int], int, Counter[int]]:
    """Write the decisions into partitions of `scored/`.

    Returns:
        Hive path of each rewritten partition -> number of its hallucinated responses; number of changed verdicts;
        `EscalationResult.increase`.
    """
    start = make_task(rewrite_file, MODEL_FREE_TASK_CPUS)
    partitions, judge_files = open_scored(output).partitions, find_judge_files(output, manifest, paths)
    tasks = {
        path: [start(output.fs, file, judge_files[path], keys, verdicts_id) for file in partitions[path].files]
        for path in paths
        if judge_files[path].files
    }
    flagged: dict[str, int] = {}
    changed, increase = 0, Counter[int]()
    expect(len(tasks), "partitions")
    for path, file_tasks in tasks.items():
        changes: list[VerdictChanges] = [file_task.result() for file_task in file_tasks]
        advance(1, "partitions")
        flagged[hive_path(path)] = sum(file_changes.flagged for file_changes in changes)
        changed += sum(file_changes.changed for file_changes in changes)
        for file_changes in changes:
            increase.update(file_changes.increase)
    return flagged, changed, increase
