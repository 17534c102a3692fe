"""The step `escalate`: doubtful responses to a judge, and its verdicts into `scored/`."""

import time
from dataclasses import replace

from rich.console import Console

from ragassay.jobs.run.plan import RunPlan
from ragassay.jobs.second_pass.escalate.run import Chosen, Escalated, apply_decisions, ask_judge, choose_responses
from ragassay.schemas.manifest import Manifest


def choose(plan: RunPlan, manifest: Manifest) -> Chosen:
    """Choose the responses that the judge is to decide; a command of its own chooses anew where `when` or `share` changed."""
    return choose_responses(plan.job, plan.output, manifest, anew=not plan.options.command.reads_input)


def escalate(plan: RunPlan, manifest: Manifest, chosen: Chosen, console: Console) -> Escalated:
    """Put responses to the judge, and let it decide those that it could.

    Args:
        plan: The plan.
        manifest: As the step before left it; it names the judge.
        chosen: The responses.
        console: Where progress goes.

    Raises:
        RagassayError: See `pipeline.errors`; no answer that is committed is lost, the same command goes on where it stopped.
    """
    if chosen.wanted:
        ask_judge(plan.job, plan.output, manifest.runs[-1].run_id, chosen.wanted, console)
    done = apply_decisions(plan.job, plan.output, manifest, chosen, console)
    return replace(done, record=replace(done.record, seconds=round(time.perf_counter() - chosen.started, 3)))
