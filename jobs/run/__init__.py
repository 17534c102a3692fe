"""A run: a plan, then five steps.

    plan = make_plan(job, logs, output, options)   what will be scored, finalised and escalated, with which resources, and why
    score(plan)      scores the selected rows into `raw/`          -> Scored
    fit(plan)        finds mu, sigma and the threshold             -> Fitted
    decide(plan)     writes the verdicts into `scored/`            -> Decided
    escalate(plan)   puts doubtful responses to a judge            -> Escalated
    account(plan)    compares the latest partitions with history   -> Accounted

The plan and what the steps return are frozen. Each step also takes the manifest as the steps before left it, and changes none:
`account.py` folds what a step returned into a new manifest, and `commands.py` writes it before the next step begins. What must
be written before what, so that a run can be killed at any moment, is said there. A command does all steps, or some of them.
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
