"""The job file: one YAML document, checked as a whole before anything runs."""

from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import yaml
from pydantic import AfterValidator, Field, ValidationError, field_validator, model_validator
from pydantic_core import PydanticCustomError

from ragassay.jobs import errors
from ragassay.jobs.config.job_text import faults, parse
from ragassay.jobs.config.sections import (
    Aggregate,
    Columns,
    Drift,
    DropText,
    History,
    Input,
    Normalize,
    OpenLineage,
    Section,
    Splitter,
    Threshold,
)
from ragassay.pipeline.cascade.config import Escalate
from ragassay.pipeline.detectors.config import Detector
from ragassay.pipeline.errors import ConfigError
from ragassay.pipeline.reasoning.config import Reasoner
from ragassay.pipeline.slm.config import Replicas, Slm
from ragassay.pipeline.slm.judge import Judge, check_judge
from ragassay.pipeline.slm.prompt import check_template, needs_question
from ragassay.pipeline.text.written_language import code_of
from ragassay.pipeline.uncertainty.config import ReadingModel, Rerank, Uncertainty
from ragassay.pipeline.uncertainty.prompt import check_answer_prompt

LanguageCode = Annotated[str, Field(pattern=r"^[a-z]{2}$"), AfterValidator(code_of)]

BUNDLED, NONE = "bundled", "none"
"""What `calibration` may be other than a file."""

ANY: Literal["any"] = "any"
"""`languages` of a job that judges rows in every language."""


def default_members() -> dict[str, Any]:
    """The members of a job that names none, with the weights that measured best: the bundled verifier decides, the detectors
    without a model add a little and say what is missing (docs/background/method.md)."""
    detectors = ("entities", "attribution", "novelty")
    return {
        "slms": [{"name": "facts", "adapter": "facts"}],
        "detectors": [{"name": kind, "kind": kind} for kind in detectors],
        "weights": {"facts": 27, **dict.fromkeys(detectors, 1)},
    }


class Job(Section):
    """A whole job file.

    Attributes:
        input: What INPUT is.
        columns: Names of our columns in the logs.
        redact: A function of one's own, `module:function`, that question, passages and response go through as they are read.
        drop_text: Which columns of text OUTPUT may hold, where it is to hold no other text; None drops nothing.
        splitter: How responses are split into sentences.
        languages: ISO 639-1 codes of the languages in which rows are judged; ANY judges all. None takes the languages that the
            members were measured in, where a calibration states them, and otherwise ANY.
        slms: The SLMs of the ensemble; a row goes through them in this order. Without one, detectors alone decide.
        uncertainty: Scores of how sure a model is of the responses, such as AttenHScore; beside the ensemble unless they say
            otherwise.
        rerank: The model that puts passages in order, best first, for SLMs and scores of uncertainty; None leaves them.
        detectors: Members that need no model. Where neither SLMs nor detectors are named, they are those of `default_members`.
        weights: Member -> its weight in the ensemble, above 0; all of them, or none, and then all count the same.
        calibration: What gives the parts of the verdicts that normalize, aggregate and threshold leave open: BUNDLED (the
            calibration of the package where it was fitted for exactly these members, otherwise none), NONE, or a file of
            `ragassay calibrate`, which brings its own weights too.
        normalize: Where mu and sigma come from.
        rule: What a verdict follows. both: a response is hallucinated if its mean is at or below the threshold or a sentence is
            flagged. aggregate: the mean alone, as in the source.
        aggregate: Mean and positivity policy.
        threshold: tau.
        max_error_share: Share of a run's rows that may end with status `error`, a fault of this program on that row; with
            more, the run ends with an error after everything is written.
        history: What tonight is compared with.
        drift: When it counts as drift.
        judge: A served model that `evaluate` compares with, through an OpenAI-compatible endpoint; it gives no verdicts.
        escalate: The cascade: a larger judge decides the most doubtful responses.
        explain: The larger model that `explain` asks why sentences were flagged; it gives no verdicts either.
        on_bad_file: stop, or skip an unreadable Parquet file and score the rest.
        block_mib: Rows travel, and are committed, in blocks of about this size; larger is faster on GPUs, smaller
            loses less at a crash.
        cluster_mib: Rows are gathered over so much text and put in the order of their contexts, before they are cut into
            blocks: for logs in which a context comes back after many rows. Each read task holds that much; 0 keeps the order.
        ray_address: A Ray cluster to join (`auto`, or its address); None starts Ray on this machine.
        openlineage: The server that runs are told to.
    """

    input: Input = Input()
    columns: Columns = Columns()
    redact: str | None = Field(None, pattern=r"^[\w.]+:\w+$")
    drop_text: DropText | None = None
    splitter: Splitter = Splitter()
    languages: Literal["any"] | Annotated[tuple[LanguageCode, ...], Field(min_length=1)] | None = None
    slms: tuple[Slm, ...] = ()
    uncertainty: tuple[Uncertainty, ...] = ()
    rerank: Rerank | None = None
    detectors: tuple[Detector, ...] = ()
    weights: dict[str, Annotated[float, Field(gt=0, allow_inf_nan=False)]] = Field(default_factory=dict)
    calibration: str = Field("bundled", min_length=1)
    normalize: Normalize = Normalize()
    rule: Literal["both", "aggregate"] = "both"
    aggregate: Aggregate = Aggregate()
    threshold: Threshold = Threshold()
    max_error_share: float = Field(0.05, ge=0, le=1)
    history: History = History()
    drift: Drift = Drift()
    judge: Judge | None = None
    escalate: Escalate | None = None
    explain: Reasoner | None = None
    on_bad_file: Literal["stop", "skip"] = "stop"
    block_mib: float = Field(0.5, gt=0)
    cluster_mib: float = Field(0, ge=0, le=1024)
    ray_address: str | None = None
    openlineage: OpenLineage = OpenLineage()

    @model_validator(mode="before")
    @classmethod
    def _default_members(cls, given: Any) -> Any:
        """Who names some members has named them all; who names none gets those that measured best."""
        if not isinstance(given, dict):
            return given
        if "slms" in given or "detectors" in given:
            return given
        return {**default_members(), **given}

    @field_validator("calibration", mode="before")
    @classmethod
    def _names_a_calibration(cls, given: Any) -> Any:
        if given is None:
            raise PydanticCustomError(
                "config.null-calibration", "null names no calibration: give bundled, none, or a file of `ragassay calibrate`"
            )
        return given

    @field_validator("drop_text", mode="before")
    @classmethod
    def _yes_or_no(cls, given: Any) -> Any:
        return {True: {}, False: None}[given] if isinstance(given, bool) else given

    @model_validator(mode="after")
    def _a_judge_reads_text(self) -> "Job":
        if self.drop_text is not None and self.escalate is not None:
            raise PydanticCustomError(
                "config.judge-without-text",
                "escalate puts texts of OUTPUT to a judge, and drop_text leaves none there: leave out one of both",
            )
        return self

    @model_validator(mode="after")
    def _staged_traces_hold_text(self) -> "Job":
        unwanted = [name for name in ("drop_text", "redact") if getattr(self, name) is not None]
        if self.input.preset is not None and unwanted:
            raise PydanticCustomError(
                "config.preset-keeps-text",
                "input.preset writes the texts of traces into OUTPUT (_traces) as they are exported, and {settings} can't keep "
                "them out of there: let the tool mask them before it exports, and leave {settings} out",
                {"settings": " and ".join(unwanted)},
            )
        return self

    @model_validator(mode="after")
    def _preset_brings_its_columns(self) -> "Job":
        if self.input.preset is not None and self.columns != Columns():
            raise PydanticCustomError(
                "config.preset-columns",
                "input.preset: {preset} brings its own columns: leave columns out",
                {"preset": self.input.preset},
            )
        return self

    @model_validator(mode="after")
    def _names_differ(self) -> "Job":
        names = [member.name for member in self.members]
        if len(set(names)) != len(names):
            raise PydanticCustomError("config.member-names", "names of members must differ: {names}", {"names": names})
        if len(self.beside) == len(names):
            raise PydanticCustomError(
                "config.no-member", "an ensemble needs a member: give an SLM, or a detector with in_ensemble: true"
            )
        return self

    @model_validator(mode="after")
    def _escalates_by_its_members(self) -> "Job":
        if self.escalate is not None:
            self.escalate.check_members([member.name for member in self.members])
        return self

    @model_validator(mode="after")
    def _rerank_is_for_somebody(self) -> "Job":
        if self.rerank is None:
            return self
        if self.rerank.name in self.values:
            raise PydanticCustomError(
                "config.rerank-name",
                "no member can have the name '{name}' beside the section rerank: rename it",
                {"name": self.rerank.name},
            )
        if not self.slms and not self.uncertainty:
            raise PydanticCustomError(
                "config.rerank-unused",
                "rerank puts passages in order for SLMs and scores of uncertainty, and there are none: leave it out",
            )
        return self

    @model_validator(mode="after")
    def _weights_are_of_the_members(self) -> "Job":
        members = [name for name in self.values if name not in self.beside]
        if self.weights and set(self.weights) != set(members):
            raise PydanticCustomError(
                "config.weights-of-members",
                "weights must name every member of the ensemble and nothing else: {members}",
                {"members": ", ".join(members)},
            )
        return self

    @model_validator(mode="after")
    def _calibration_brings_its_weights(self) -> "Job":
        if self.calibration_file is not None and self.weights and self.weights != default_members()["weights"]:
            raise PydanticCustomError(
                "config.weights-of-calibration",
                "calibration {path} brings its own weights: leave weights out, or write `calibration: none`",
                {"path": self.calibration_file},
            )
        return self

    @property
    def calibration_file(self) -> str | None:
        """The file of `ragassay calibrate` that judges; None without one."""
        return None if self.calibration in (BUNDLED, NONE) else self.calibration

    def with_calibration(self, calibration: str | None) -> "Job":
        """The job under a calibration of the command line; a file takes the place of normalize, aggregate and threshold.

        Args:
            calibration: BUNDLED, NONE or a file, as in the job file; None leaves the job as it is.
        """
        if calibration is None:
            return self
        update: dict[str, Any] = {"calibration": calibration}
        if calibration not in (BUNDLED, NONE):
            update |= {"normalize": Normalize(), "aggregate": Aggregate(), "threshold": Threshold()}
        return self.model_copy(update=update)

    @property
    def values(self) -> dict[str, str]:
        """Every member -> which of its numbers is normalised."""
        return {member.name: member.value for member in self.members}

    @property
    def members(self) -> tuple[Slm | Uncertainty | Detector, ...]:
        """All members, in the order in which a row goes through them."""
        return (*self.slms, *self.uncertainty, *self.detectors)

    @property
    def readings(self) -> list[list[Uncertainty]]:
        """The members of uncertainty, those together that one model reads at once."""
        groups: list[list[Uncertainty]] = []
        for member in self.uncertainty:
            group = next((group for group in groups if group[0].reading() == member.reading()), None)
            if group is None:
                groups.append([member])
            else:
                group.append(member)
        return groups

    @property
    def local_pools(self) -> dict[str, Replicas]:
        """Stage that holds a model in processes of ours -> its actor pool."""
        slms = {slm.name: slm.replicas for slm in self.slms if not slm.engine.SERVED}
        readings = {members[0].name: members[0].replicas for members in self.readings}
        return {**({self.rerank.name: self.rerank.replicas} if self.rerank else {}), **slms, **readings}

    @property
    def reading_models(self) -> tuple[ReadingModel, ...]:
        """All models that read texts: the scores of uncertainty, and what re-ranks."""
        return (*self.uncertainty, *([self.rerank] if self.rerank else []))

    @property
    def beside(self) -> set[str]:
        """Names of the members that are not averaged into the scores."""
        return {member.name for member in (*self.uncertainty, *self.detectors) if not member.in_ensemble}

    @property
    def beside_values(self) -> dict[str, str]:
        """Of those, which number would be normalised."""
        return {name: value for name, value in self.values.items() if name in self.beside}

    @property
    def limits(self) -> dict[str, float | None]:
        """Member -> value of a response below which it alone finds it suspicious; None where it has no such limit."""
        return {member.name: member.suspicious_below for member in self.members}

    @property
    def question_needed(self) -> bool:
        """Whether a row without a question can't be scored."""
        return any(needs_question(slm) for slm in self.slms)

    @property
    def ensemble_weights(self) -> dict[str, float] | None:
        """Weights of the members, sum 1, and 0 for a detector beside the ensemble; None where all are equal."""
        if self.weights:
            total = sum(self.weights.values())
            return {name: self.weights.get(name, 0.0) / total for name in self.values}
        share = 1 / (len(self.values) - len(self.beside))
        return {name: 0.0 if name in self.beside else share for name in self.values} if self.beside else None


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
    try:
        data: Any = parse(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(errors.UNREADABLE, path=path, reason=error.strerror or error) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(errors.NO_YAML, path=path, reason=error) from error
    if not isinstance(data, dict | None):
        raise ConfigError(errors.NO_MAPPING, path=path, type=type(data).__name__)
    return make_job(data or {}, where=f"job file {path}")


_Local = TypeVar("_Local", Slm, Uncertainty, Rerank)


def with_dtypes(job: Job) -> Job:
    """A job whose models' dtypes are settled, on the machine it is started from: all of its replicas then compute alike."""
    settled = {
        "slms": tuple(map(_settled, job.slms)),
        "uncertainty": tuple(map(_settled, job.uncertainty)),
        "rerank": job.rerank and _settled(job.rerank),
        "escalate": job.escalate and job.escalate.model_copy(update={"to": _settled(job.escalate.to)}),
    }
    return job.model_copy(update=settled)


def _settled(member: _Local) -> _Local:
    return member.model_copy(update={"engine": member.engine.settled(member.replicas.num_gpus)})


def make_job(data: dict[str, Any], where: str = "job") -> Job:
    """Check a job given as plain data; see `load_job`."""
    try:
        job = Job.model_validate(data)
    except ValidationError as error:
        found = faults(error, Job)
        lines = "\n".join(f"  {fault['place']}: {fault['text']}" for fault in found)
        raise ConfigError(errors.INVALID, file=where, count=len(found), lines=lines, faults=found) from error
    for slm in [*job.slms, *([job.escalate.to] if job.escalate else [])]:
        check_template(slm)
    for model in job.reading_models:
        check_answer_prompt(model)
    if job.judge is not None:
        check_judge(job.judge)
    return job
