"""A run: a plan, then five steps.

    plan = make_plan(job, logs, output, options)   decides what is scored, finalized and escalated, and why
    score(plan)       scores the selected rows into `raw/`                        -> ScoreResult
    fit(plan)         computes mu, sigma and the threshold                        -> FitResult
    decide(plan)      writes the verdicts into `scored/`                          -> DecideResult
    escalate(plan)    asks a judge about doubtful responses                       -> EscalationResult
    account           adds each result to the manifest, and checks drift at the end -> Manifest, DriftCheck

The plan and the results are frozen. Each step also takes the manifest as the earlier steps left it, and does not change it.
`account.py` adds the result of a step to a new manifest; `commands.py` writes that manifest before the next step begins, and
defines the order of all writes, so that a run can be killed at any time. A command runs all steps or some of them.
"""

from ragassay.jobs.run.commands import escalate_job, finalize_job, fit_job, run_job, score_job
from ragassay.jobs.run.plan import Command, RunOptions, RunPlan, make_plan

__all__ = [
    "Command",
    "RunOptions",
    "RunPlan",
    "escalate_job",
    "finalize_job",
    "fit_job",
    "make_plan",
    "run_job",
    "score_job",
]
