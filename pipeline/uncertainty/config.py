"""Models that read texts behind prompts: a score of uncertainty as a member of the ensemble, and the re-ranking of passages."""

from typing import Any, ClassVar, Literal

from pydantic import Field, field_validator, model_validator
from pydantic_core import PydanticCustomError

from ragassay.pipeline.engines.model import Model
from ragassay.pipeline.engines.transformers_engine import TransformersSettings
from ragassay.pipeline.members import ValueKind
from ragassay.pipeline.slm.config import Replicas
from ragassay.pipeline.uncertainty.scores import Attention, Score

ANSWER_PROMPT = """\
Answer the question from the context.

Context:
{% for passage in context %}{{ passage }}
{% endfor %}

Question: {{ question }}"""

QUESTION_PROMPT = """\
Write the question that this passage answers.

Passage:
{% for passage in context %}{{ passage }}
{% endfor %}"""

NOT_OF_VALUES = {"name", "model", "adapter", "trust_remote_code", "engine", "replicas", "in_ensemble", "flag_below"}
"""Settings that no value depends on; weights are known by what they hold, and the engine says its own."""

OF_THE_SCORE = {"name", "score", "window", "attention", "in_ensemble", "flag_below"}
"""Settings in which members that are read together may differ."""


class ReadingModel(Model):
    """A model that reads a text behind a prompt, as if it had written it.

    Attributes:
        TEXT: Variable of a prompt that the text is, which no prompt of it may hold.
        model: Who reads: `embedded`, a hub id, a local folder, or a GGUF file.
        engine: transformers, the one that shows its attention, with its settings.
        system: System message; None leaves the chat template's own.
        prompt: Jinja template (sandboxed) of the user message; the text stands behind it as the model's answer.
        chat: Wrap the prompt in the model's chat template; false sends it as it stands.
        replicas: Its actor pool.
    """

    TEXT: ClassVar[str]

    engine: TransformersSettings = TransformersSettings()
    system: str | None = None
    prompt: str
    chat: bool = True
    replicas: Replicas = Replicas()

    @property
    def who(self) -> str:
        """Whose a prompt is, for messages."""
        return self.name

    def identity(self) -> dict[str, Any]:
        """What its values depend on beside its weights: all of its settings, but for those that no value depends on."""
        return {**self.model_dump(mode="json", exclude=NOT_OF_VALUES), **self.engine.identity()}

    @field_validator("engine", mode="before")
    @classmethod
    def _by_name(cls, given: Any) -> Any:
        if isinstance(given, str):
            return {"kind": given}
        return {"kind": "transformers", **given} if isinstance(given, dict) else given


class Rerank(ReadingModel):
    """Passages in the order of how well the question fits each: G of the question, read behind one passage (eq. 6).

    Attributes:
        name: Its name in `usage`; no member may have it.
        attention: What weighs a token of the question: max (the paper's), mean or last.
        prompt: Its `context` is a list of one passage, or of a piece of one that is longer than the window.
        keep: Passages that are kept where not all fit the window of an SLM; None cuts nothing, and windows are judged.
    """

    TEXT: ClassVar[str] = "question"

    name: Literal["rerank"] = "rerank"
    attention: Attention = Attention.MAX
    prompt: str = QUESTION_PROMPT
    keep: int | None = Field(None, ge=1)


class Uncertainty(ReadingModel):
    """One score of uncertainty. Its values are higher where the model is surer, which stands for better supported.

    Attributes:
        name: Its name in `members`; unique in a job. Members that differ in score, window and attention alone are read
            together, once.
        model: Best the model that wrote the responses.
        score: Which score; see `pipeline.uncertainty.scores`.
        window: K, tokens a window of attenhscore and surprisal.
        attention: What weighs a token there: max (the paper's), mean or last.
        text: What is read: the logged response, or the model's own answer to the question, which it writes first. Then it has a
            value of the whole response, and none of its sentences.
        max_tokens: Tokens of its own answer at most.
        samples: Column of the logs with further answers to the question, a list of strings, for lexical_similarity and
            eigenscore. They have a value of the whole response too.
        prompt: With `context` (list of passages) and `question`; the response stands behind it.
        in_ensemble: Average its values into the scores; false leaves them beside, for `evaluate`, `compare` and `escalate`.
        flag_below: Value of a whole response below which `compare` counts it as flagged; None takes the mean of
            those that it compares.
    """

    TEXT: ClassVar[str] = "response"

    score: Score = Score.ATTENHSCORE
    window: int = Field(16, ge=1)
    attention: Attention = Attention.MAX
    text: Literal["response", "own"] = "response"
    max_tokens: int = Field(64, ge=1, le=1024)
    samples: str = Field("samples", min_length=1)
    prompt: str = ANSWER_PROMPT
    in_ensemble: bool = False
    flag_below: float | None = None

    @property
    def who(self) -> str:
        """See `ReadingModel.who`."""
        return f"uncertainty {self.name!r}"

    @property
    def value(self) -> str:
        """Which of its numbers is normalised (`pipeline.members.ValueKind`): it has but one."""
        return ValueKind.SCORE.value

    @property
    def suspicious_below(self) -> float | None:
        """Value of a whole response below which it is suspicious; None where it has no such limit."""
        return self.flag_below

    def reading(self) -> "Uncertainty":
        """What is read for it, the same for all members that can be read together."""
        return Uncertainty.model_construct(**{**dict(self), **{key: _READING[key] for key in OF_THE_SCORE}})

    @model_validator(mode="after")
    def _can_be_had(self) -> "Uncertainty":
        if self.score.of_samples and self.text == "own":
            raise PydanticCustomError(
                "config.samples-of-own",
                "{score} compares answers in the logs: leave out text: own",
                {"score": self.score.value},
            )
        if self.in_ensemble and (self.score.of_samples or self.text == "own"):
            raise PydanticCustomError(
                "config.no-sentence-value",
                "it has no value of a sentence, so it can't be in the ensemble: leave out in_ensemble: true",
            )
        return self


_READING = {key: field.default for key, field in Uncertainty.model_fields.items()} | {"name": "read"}
