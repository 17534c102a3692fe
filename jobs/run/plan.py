"""The plan of a run: what will be scored, finalised and escalated, with which resources, and why. Made without side effects."""

import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from ragassay.jobs.config.job import Job
from ragassay.jobs.input import Logs
from ragassay.jobs.output.manifest import needs_text, read_manifest
from ragassay.jobs.output.partitions import hive_path
from ragassay.jobs.output.scored_dataset import open_raw, open_scored
from ragassay.jobs.runtime.dataflow import needed_resources
from ragassay.jobs.runtime.resources import CHEAP
from ragassay.jobs.scoring.backfill import WHOLE_INPUT, Backfill
from ragassay.jobs.scoring.checkpoint import begun_files
from ragassay.jobs.scoring.register import Registration, match_input, waiting_partitions
from ragassay.jobs.scoring.selection import Selection
from ragassay.jobs.scoring.stages import stages
from ragassay.jobs.second_pass.escalate.run import judge_stages, not_escalated
from ragassay.jobs.storage.folder import Folder
from ragassay.jobs.verdicts.languages import settle_languages
from ragassay.jobs.verdicts.verdicts import check_parts, without_verdict
from ragassay.pipeline.slm.config import Slm
from ragassay.pipeline.stages.stage import Stage
from ragassay.schemas.manifest import Manifest


class Command(StrEnum):
    """A command that makes a run, and by which others know it."""

    RUN = "run"
    SCORE = "score"
    FINALIZE = "finalize"
    ESCALATE = "escalate"

    @property
    def reads_input(self) -> bool:
        """Whether it reads logs, and scores them; the others are about all of an output folder."""
        return self in (Command.RUN, Command.SCORE)

    @property
    def finalizes(self) -> bool:
        """Whether it gives verdicts."""
        return self in (Command.RUN, Command.FINALIZE)

    @property
    def escalates(self) -> bool:
        """Whether it puts responses to a judge, if the job has one."""
        return self in (Command.RUN, Command.ESCALATE)


@dataclass(frozen=True)
class RunOptions:
    """What the command line asks for.

    Attributes:
        backfill: What of the input, in which order, and when to end.
        command: Which steps.
        began: Time (`time.time()`) from which a budget of hours counts.
    """

    backfill: Backfill = WHOLE_INPUT
    command: Command = Command.RUN
    began: float = field(default_factory=time.time)

    @property
    def deadline(self) -> float | None:
        """Time after which no more rows are begun; None for no end."""
        return None if self.backfill.hours is None else self.began + 3600 * self.backfill.hours


class Why(StrEnum):
    """Why a file is scored."""

    NEW = "new"
    RESUMED = "resumed"
    EXTENDED = "larger sample"


@dataclass(frozen=True)
class PlannedStep:
    """A step after scoring.

    Attributes:
        runs: Whether it will run.
        partitions: Hive paths of the partitions that it is about, sorted; a deadline or a fault may leave some of them out.
        reason: Why it runs, or not.
    """

    runs: bool
    partitions: tuple[str, ...]
    reason: str


@dataclass(frozen=True)
class RunPlan:
    """A run before it begins.

    Attributes:
        job: The job.
        scoring_job: The job with its languages settled, for the stages that score.
        output: The output folder.
        options: What was asked for.
        manifest: The manifest that the plan was made from.
        registration: The input beside the manifest; None where no logs are read.
        why: Number of each file that is to be scored -> why.
        finalize: Which partitions get verdicts.
        escalate: From which partitions responses are put to the judge.
        cpus: Logical CPUs that the steps need, which run one after the other.
        gpus: GPUs that they need.
    """

    job: Job
    scoring_job: Job
    output: Folder
    options: RunOptions
    manifest: Manifest
    registration: Registration | None
    why: dict[int, Why]
    finalize: PlannedStep
    escalate: PlannedStep
    cpus: float
    gpus: float

    @property
    def selection(self) -> Selection | None:
        """The files to score, and which of their rows; None where no logs are read."""
        return self.registration.selection if self.registration is not None else None

    @property
    def scores(self) -> bool:
        """Whether there is any file to score."""
        return bool(self.why)

    @property
    def needs_ray(self) -> bool:
        """Whether any step needs Ray."""
        return self.scores or self.finalize.runs or self.escalate.runs

    def describe(self) -> list[tuple[str, str]]:
        """The plan in lines: what, and why."""
        lines = [] if self.selection is None else _selection_lines(self, self.selection)
        for name, step in (("finalize", self.finalize), ("escalate", self.escalate)):
            if step.runs:
                lines.append((name, f"{_partitions(step.partitions)}: {step.reason}"))
            elif step.reason:
                lines.append((name, f"nothing: {step.reason}"))
        if self.needs_ray:
            lines.append(("needs", f"{self.cpus:g} logical CPUs" + (f", {self.gpus:g} GPUs" if self.gpus else "")))
        return lines


def make_plan(job: Job, logs: Logs | None, output: Folder, options: RunOptions) -> RunPlan:
    """Decide what a run will do. Reads the manifest, names and footers of files, and the ids of a sample; writes nothing.

    Args:
        job: The job, with its dtypes.
        logs: The input, checked; None for a command that is about all of the output.
        output: The output folder; in a run, locked and cleared of what was pending (`clear_pending`).
        options: What was asked for.

    Returns:
        The plan.

    Raises:
        RagassayError: The input does not fit what the output holds, or the job file contradicts its calibration.
    """
    manifest, command = read_manifest(output), options.command
    registration, scoring_job = None, job
    if logs is not None:
        registration = match_input(job, logs, output, manifest, options.backfill)
        selection = replace(registration.selection, deadline=options.deadline)
        registration = replace(registration, selection=selection)
        if command.finalizes:
            check_parts(job, registration.fingerprint)
        scoring_job = settle_languages(job, registration.fingerprint)
    begun = begun_files(output)
    why = {} if registration is None else _why(registration, begun)
    finalize = _plan_finalize(output, manifest, registration, begun, command)
    known = manifest if registration is None else replace(manifest, fingerprint=registration.fingerprint)
    escalate = _plan_escalate(job.escalation.judge, output, known, finalize, command)
    cpus, gpus = _needed(job, to_score=bool(why), to_escalate=escalate.runs)
    return RunPlan(job, scoring_job, output, options, manifest, registration, why, finalize, escalate, cpus, gpus)


def _why(registration: Registration, begun: Collection[int]) -> dict[int, Why]:
    extended = {number for numbers in registration.reopened.values() for number in numbers}
    return {
        number: Why.EXTENDED if number in extended else Why.RESUMED if number in begun else Why.NEW
        for number in registration.selection.files
    }


def _plan_finalize(
    output: Folder, manifest: Manifest, registration: Registration | None, begun: Collection[int], command: Command
) -> PlannedStep:
    if not command.finalizes:
        return PlannedStep(False, (), "")
    raw = open_raw(output).partitions
    if registration is None:
        whole = set(map(hive_path, raw)) - waiting_partitions(manifest, begun)
        return PlannedStep(True, tuple(sorted(whole)), "all that are whole")
    selection = registration.selection
    cut = [selection.files[number] for number in selection.stops]
    others = {number for number in begun if number not in selection.files}
    waiting = waiting_partitions(manifest, others, [*selection.deferred, *cut])
    coming = {file.partition_path for file in selection.files.values()}
    without = set(map(hive_path, without_verdict(raw, manifest)))
    found = tuple(sorted((coming | without) - waiting))
    if not selection.files and not without:
        return PlannedStep(False, (), "every partition has its verdicts")
    reasons = [f"{len(coming - waiting)} with rows to score"] if coming - waiting else []
    if without - coming - waiting:
        reasons.append(f"{len(without - coming - waiting)} scored before, without verdicts")
    if (coming | without) & waiting:
        reasons.append(f"{len((coming | without) & waiting)} more wait until all of their files are scored")
    return PlannedStep(True, found, ", ".join(reasons))


def _plan_escalate(
    judge: Slm | None, output: Folder, manifest: Manifest, finalize: PlannedStep, command: Command
) -> PlannedStep:
    """Escalate verdicts that are coming, or that no judge was asked about. The command of that name looks in any case, since
    errors of the judge may have passed."""
    if not command.escalates or judge is None:
        return PlannedStep(False, (), "")
    needs_text(manifest, output.uri, "the judge of a cascade")
    if not command.reads_input:
        open_scored(output).only(manifest.finalized).require_verdicts()
    waiting = set(map(hive_path, not_escalated(output, manifest).partitions))
    found = tuple(sorted(waiting | set(finalize.partitions)))
    if not command.reads_input:
        return PlannedStep(True, found, "what was not escalated, and errors of the judge")
    if not finalize.runs and not waiting:
        return PlannedStep(False, (), "every partition was escalated")
    return PlannedStep(True, found, f"to {judge.name}")


def _needed(job: Job, *, to_score: bool, to_escalate: bool) -> tuple[float, float]:
    """Logical CPUs and GPUs that the steps need, which run one after the other."""
    plans: list[Sequence[Stage]] = [stages(job)] if to_score else []
    if to_escalate and job.escalation.policy:
        plans.append(judge_stages(job, job.escalation.policy))
    cpus, gpus = zip(CHEAP, *map(needed_resources, plans), strict=True)
    return max(cpus), max(gpus)


def _selection_lines(plan: RunPlan, selection: Selection) -> list[tuple[str, str]]:
    options, files = plan.options.backfill, selection.files
    kinds = [f"{sum(kind == why for kind in plan.why.values())} {why}" for why in Why if why in plan.why.values()]
    lines = [("score", f"{selection.rows:,} rows in {len(files):,} files ({', '.join(kinds)})" if files else "nothing is new")]
    taken = {file.path for file in [*files.values(), *selection.deferred, *selection.outside]}
    skipped = [file for file in selection.logs.files if file.path not in taken]
    for name, found, reason in (
        ("skip", skipped, "scored before"),
        ("left", selection.deferred, f"the budget of {options.rows or 0:,} rows is reached"),
        ("outside", selection.outside, "in other partitions than --partitions names"),
    ):
        if found:
            lines.append((name, f"{sum(file.rows or 0 for file in found):,} rows in {len(found):,} files: {reason}"))
    for number, row in selection.stops.items():
        lines.append(("cut", f"{files[number].path} before row {row:,}: it is larger than the budget"))
    if options.share < 1:
        lines.append(("sample", f"a share of {options.share:g} of the rows, by a hash of their ids"))
    if options.hours is not None:
        lines.append(("until", f"{options.hours:g} hours after the start"))
    return lines


def _partitions(places: Sequence[str]) -> str:
    named = ", ".join(place or "the only one" for place in places[:3])
    return f"{len(places):,} partitions" + (f" ({named}{', …' if len(places) > 3 else ''})" if places else "")
