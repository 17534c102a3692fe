"""The job file: one YAML document, checked as a whole before anything runs."""

from typing import Any, TypeVar

from pydantic import model_validator
from pydantic_core import PydanticCustomError

from ragassay.jobs.config.escalation import EscalationConfig
from ragassay.jobs.config.evaluation import EvaluationConfig
from ragassay.jobs.config.input import InputConfig
from ragassay.jobs.config.integrations import IntegrationsConfig
from ragassay.jobs.config.members import MembersConfig, default_members
from ragassay.jobs.config.output import OutputConfig
from ragassay.jobs.config.runtime import RuntimeConfig
from ragassay.jobs.config.section import Section
from ragassay.jobs.config.settings_file import check_settings, read_settings
from ragassay.jobs.config.splitting import SplittingConfig
from ragassay.jobs.config.verdict import VerdictConfig
from ragassay.pipeline.slm.config import Slm
from ragassay.pipeline.slm.prompt import check_slm_prompt
from ragassay.pipeline.slm.reference_judge import check_reference_judge
from ragassay.pipeline.uncertainty.config import Rerank, Uncertainty
from ragassay.pipeline.uncertainty.prompt import check_answer_prompt


class Job(Section):
    """A job file, in the order of the flow.

    Attributes:
        input: What the input is and how its rows are read.
        splitting: How responses are split into sentences, and in which languages.
        members: The members of the ensemble and their weights.
        verdict: How scores become verdicts, and when they have drifted.
        escalation: The larger models that judge or explain a few of the responses.
        evaluation: How labels are read, and what verdicts are compared with.
        output: Which texts the output may contain.
        runtime: How a command runs, on which machines, and when it fails.
        integrations: Other tools that receive runs and verdicts.
    """

    input: InputConfig = InputConfig()
    splitting: SplittingConfig = SplittingConfig()
    members: MembersConfig = MembersConfig()
    verdict: VerdictConfig = VerdictConfig()
    escalation: EscalationConfig = EscalationConfig()
    evaluation: EvaluationConfig = EvaluationConfig()
    output: OutputConfig = OutputConfig()
    runtime: RuntimeConfig = RuntimeConfig()
    integrations: IntegrationsConfig = IntegrationsConfig()

    @model_validator(mode="after")
    def _a_judge_reads_text(self) -> "Job":
        if self.output.drop_text is not None and self.escalation.judge is not None:
            raise PydanticCustomError(
                "config.judge-without-text",
                "escalation.judge reads texts of OUTPUT, and output.drop_text leaves none there: remove one of them",
            )
        return self

    @model_validator(mode="after")
    def _converted_traces_contain_text(self) -> "Job":
        settings = {"output.drop_text": self.output.drop_text, "input.redact": self.input.redact}
        conflicting = [name for name, setting in settings.items() if setting is not None]
        if self.input.preset is not None and conflicting:
            raise PydanticCustomError(
                "config.preset-keeps-text",
                "input.preset writes the texts of traces into OUTPUT (_traces) as they are exported, and {settings} can't "
                "change that: have the tool mask them before it exports, and remove {settings}",
                {"settings": " and ".join(conflicting)},
            )
        return self

    @model_validator(mode="after")
    def _escalates_by_its_members(self) -> "Job":
        self.escalation.check_members(self.members.names)
        return self

    @model_validator(mode="after")
    def _calibration_brings_its_weights(self) -> "Job":
        path, weights = self.verdict.calibration_file, self.members.weights
        if path is not None and weights and weights != default_members()["weights"]:
            raise PydanticCustomError(
                "config.weights-of-calibration",
                "calibration {path} brings its own weights: remove members.weights, or set verdict.calibration to none",
                {"path": path},
            )
        return self

    @property
    def scoring_slms(self) -> tuple[Slm, ...]:
        """All SLMs that a run asks: the members, and the judge that responses are escalated to."""
        judge = self.escalation.judge
        return (*self.members.slms, *([judge] if judge else []))

    def with_calibration(self, calibration: str | None) -> "Job":
        """Return this job under another calibration; see `VerdictConfig.with_calibration`."""
        return self.model_copy(update={"verdict": self.verdict.with_calibration(calibration)})


def load_job(path: str | None) -> Job:
    """Read and check a job file.

    Args:
        path: A YAML file; None takes every default.

    Returns:
        The job.

    Raises:
        ConfigError: The file can't be read, or something in it is wrong; every fault is named.
    """
    if path is None:
        return Job()
    return make_job(read_settings(path, "job file"), where=f"job file {path}")


def make_job(data: dict[str, Any], where: str = "job") -> Job:
    """Check a job given as plain data; see `load_job`."""
    job = check_settings(Job, data, where)
    for slm in job.scoring_slms:
        check_slm_prompt(slm)
    for model in job.members.models_without_slms:
        check_answer_prompt(model)
    if job.evaluation.reference is not None:
        check_reference_judge(job.evaluation.reference)
    return job


_Local = TypeVar("_Local", Slm, Uncertainty, Rerank)


def resolve_engines(job: Job) -> Job:
    """Return a job whose engines and dtypes are resolved on this machine, so that all of its replicas compute alike."""
    members, judge = job.members, job.escalation.judge
    resolved = {
        "slms": tuple(map(_resolve_engine, members.slms)),
        "uncertainty": tuple(map(_resolve_engine, members.uncertainty)),
        "rerank": members.rerank and _resolve_engine(members.rerank),
    }
    return job.model_copy(
        update={
            "members": members.model_copy(update=resolved),
            "escalation": job.escalation.model_copy(update={"judge": judge and _resolve_engine(judge)}),
        }
    )


def _resolve_engine(member: _Local) -> _Local:
    return member.model_copy(update={"engine": member.engine.resolve(member, member.replicas.num_gpus)})
