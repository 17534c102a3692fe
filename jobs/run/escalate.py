"""The step `escalate`: ask a judge about doubtful responses, and write its verdicts into `scored/`."""

import time
from dataclasses import replace

from rich.console import Console

from ragassay.jobs.run.plan import RunPlan
from ragassay.jobs.second_pass.escalate.command import (
    ChosenResponses,
    EscalationResult,
    apply_decisions,
    ask_judge,
    choose_responses,
)
from ragassay.schemas.manifest import Manifest


def choose(plan: RunPlan, manifest: Manifest) -> ChosenResponses:
    """Choose the responses for the judge. The command `escalate` chooses again if `when` or `share` has changed."""
    return choose_responses(plan.job, plan.output, manifest, choose_again=not plan.options.command.reads_input)


def escalate(plan: RunPlan, manifest: Manifest, chosen: ChosenResponses, console: Console) -> EscalationResult:
    """Ask the judge about the chosen responses and apply its decisions.

    Args:
        plan: The plan.
        manifest: The manifest after the earlier steps; it names the judge.
        chosen: The chosen responses.
        console: Where to show progress.

    Raises:
        RagassayError: See `pipeline.errors`. No committed answer is lost; the same command resumes.
    """
    if chosen.unanswered:
        ask_judge(plan.job, plan.output, manifest.runs[-1].run_id, chosen.unanswered, console)
    escalated = apply_decisions(plan.job, plan.output, manifest, chosen, console)
    seconds = round(time.perf_counter() - chosen.started, 3)
    return replace(escalated, record=replace(escalated.record, seconds=seconds))
