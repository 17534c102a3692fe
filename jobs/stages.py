"""The stages of a job, in the order in which a row goes through them. A new one is a function or an actor and a line here."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ragassay.jobs.config import Job
from ragassay.jobs.resources import LIGHT_CPUS, engine_environment, threads_of
from ragassay.jobs.score.engine_metrics import engine_counters
from ragassay.pipeline.detectors.frequencies import Frequencies
from ragassay.pipeline.slm.config import Replicas, Slm
from ragassay.pipeline.stages.detect import detect_batch
from ragassay.pipeline.stages.slm import SlmScorer
from ragassay.pipeline.stages.split import split_batch


@dataclass(frozen=True)
class Stage:
    """A step of a plan: a table of rows in, the same rows with more columns out.

    Attributes:
        name: Its name.
        call: A function of a table; or a class, whose instances are called, where something heavy is held between tables.
        arguments: Further arguments, of the function or of the class.
        replicas: Actor pool of a class; None for a function, which runs in tasks of LIGHT_CPUS.
        environment: Environment variables of its processes.
    """

    name: str
    call: Callable[..., Any]
    arguments: Mapping[str, Any]
    replicas: Replicas | None = None
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def step(self) -> Callable[..., Any]:
        """The function with its arguments, or what makes an actor."""
        return partial(self.call, **self.arguments)


def stages(job: Job, frequencies: Frequencies | None = None) -> list[Stage]:
    """The stages between reading and writing.

    Args:
        job: The job.
        frequencies: Document frequencies of its contexts, which the detectors need when they run.
    """
    # The detectors stand behind the SLMs: a busy CPU must never keep an engine waiting for rows.
    return [split_stage(job), *slm_stages(job), *([detect_stage(job, frequencies)] if job.detectors else [])]


def split_stage(job: Job) -> Stage:
    """Responses to sentences."""
    splitter = (job.splitter.name, job.splitter.language)
    return Stage("split", split_batch, {"splitter": splitter, "question_needed": job.question_needed})


def slm_stages(job: Job) -> list[Stage]:
    """Each SLM's log-probabilities."""
    return [_slm_stage(job, slm) for slm in job.slms]


def _slm_stage(job: Job, slm: Slm) -> Stage:
    splitter = (job.splitter.name, job.splitter.language)
    arguments = {"slm": slm, "splitter": splitter, "threads": threads_of(slm, job), "metrics": engine_counters}
    return Stage(slm.name, SlmScorer, arguments, slm.replicas, engine_environment())


def detect_stage(job: Job, frequencies: Frequencies | None) -> Stage:
    """The detectors' values and evidence."""
    arguments = {"language": job.splitter.language, "frequencies": frequencies, "threads": os.cpu_count() or 1}
    return Stage("detect", detect_batch, {"detectors": job.detectors, **arguments})


def pool_cpus(stages: Sequence[Stage]) -> float:
    """Logical CPUs that the actor pools take at least."""
    return sum(stage.replicas.min * stage.replicas.num_cpus for stage in stages if stage.replicas)


def needed_resources(stages: Sequence[Stage]) -> tuple[float, float]:
    """Logical CPUs and GPUs without which a plan could wait for itself for ever."""
    gpus = sum(stage.replicas.min * stage.replicas.num_gpus for stage in stages if stage.replicas)
    return pool_cpus(stages) + 4 * LIGHT_CPUS, gpus
