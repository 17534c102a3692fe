"""Choose the engines of single answers: vLLM takes longer to start than another engine takes to judge them."""

from ragassay.jobs.config.job import Job
from ragassay.pipeline.engines.settings import LocalSettings
from ragassay.pipeline.engines.torch_engine import TorchSettings, can_read_model
from ragassay.pipeline.engines.transformers_engine import TransformersSettings
from ragassay.pipeline.engines.vllm_engine import VllmSettings
from ragassay.pipeline.slm.config import Slm

MAX_ANSWERS = 50
"""Maximum number of answers for which vLLM is not started."""


def choose_answer_engines(job: Job, answers: int) -> Job:
    """Return the job with another engine instead of vLLM for each SLM, if there are few answers and the engine can follow the
    settings. The weights, their type and the window stay the same.

    Args:
        job: The job, with resolved dtypes.
        answers: Number of answers.

    Raises:
        ModelError: A model or its adapter is unknown or can't be read.
    """
    if answers > MAX_ANSWERS:
        return job
    slms = tuple(slm.model_copy(update={"engine": _choose_engine(slm)}) for slm in job.members.slms)
    return job.model_copy(update={"members": job.members.model_copy(update={"slms": slms})})


def describe_answer_engines(job: Job, chosen: Job) -> str:
    """Describe the engines of the SLMs, and why vLLM judges where it does."""
    return "; ".join(
        f"{slm.name} on {engine.kind}, {engine.compute_dtype}{_explain_vllm(slm) if engine == slm.engine else ''}"
        for slm, engine in zip(job.members.slms, (slm.engine for slm in chosen.members.slms), strict=True)
        if isinstance(engine, LocalSettings)
    )


def _choose_engine(slm: Slm) -> object:
    engine = slm.engine
    if not isinstance(engine, VllmSettings) or _explain_vllm(slm):
        return engine
    kind = TorchSettings if can_read_model(slm) else TransformersSettings
    return kind(dtype=engine.dtype, max_model_len=engine.max_model_len, threads=engine.threads)


def _explain_vllm(slm: Slm) -> str:
    """Explain why an SLM needs vLLM; empty if it does not."""
    if isinstance(slm.engine, VllmSettings) and slm.engine.quantization:
        return f" (for quantization {slm.engine.quantization})"
    if isinstance(slm.engine, VllmSettings) and slm.trust_remote_code:
        return " (for trust_remote_code)"
    return ""
