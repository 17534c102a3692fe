"""Settings of the uncertainty members and of the re-ranking of passages."""

from typing import Any, ClassVar, Literal

from pydantic import Field, field_validator, model_validator
from pydantic_core import PydanticCustomError

from ragassay.pipeline.engines.model import Model
from ragassay.pipeline.engines.replicas import Replicas
from ragassay.pipeline.engines.transformers_engine import TransformersSettings
from ragassay.pipeline.member_values import ValueKind
from ragassay.pipeline.uncertainty.scores import AttentionWeighting, UncertaintyScore

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

EXCLUDED_FROM_IDENTITY = {"name", "model", "adapter", "trust_remote_code", "engine", "replicas", "in_ensemble", "flag_below"}
"""Settings that do not affect values, or that are identified elsewhere: the weights by their content, the engine by itself."""

SCORE_FIELDS = {"name", "score", "window", "attention", "in_ensemble", "flag_below"}
"""Settings that may differ between members that share one pass of the model."""


class UncertaintyModelConfig(Model):
    """A model that measures the uncertainty of a text after a prompt, as if it had generated the text.

    Attributes:
        TEXT_VARIABLE: Prompt variable of that text. The prompt must not contain it.
        model: `embedded`, a hub id, a local folder, or a GGUF file.
        engine: Settings of transformers, the only engine that returns attention.
        system: System message; None uses that of the chat template.
        prompt: Jinja template (sandboxed) of the user message. The text follows as the model's answer.
        chat: Wrap the prompt in the model's chat template; false sends it unchanged.
        replicas: Actor pool of the model.
    """

    TEXT_VARIABLE: ClassVar[str]

    engine: TransformersSettings = TransformersSettings()
    system: str | None = None
    prompt: str
    chat: bool = True
    replicas: Replicas = Replicas()

    @property
    def display_name(self) -> str:
        """Name for messages."""
        return self.name

    def identity(self) -> dict[str, Any]:
        """Return the settings, except the weights, that affect its values, for the fingerprint."""
        return {**self.model_dump(mode="json", exclude=EXCLUDED_FROM_IDENTITY), **self.engine.identity()}

    @field_validator("engine", mode="before")
    @classmethod
    def _complete_engine(cls, engine: Any) -> Any:
        if isinstance(engine, str):
            return {"kind": engine}
        return {"kind": "transformers", **engine} if isinstance(engine, dict) else engine


class Rerank(UncertaintyModelConfig):
    """Re-ranking of passages by how well the question fits each: G of the question after the passage.

    G is eq. 6 of AttenHScore's paper (`pipeline.uncertainty.scores`).

    Attributes:
        name: Name in `usage`; no member may use it.
        attention: Attention that weights a token of the question: max (the paper's), mean or last.
        prompt: `context` is a list of one passage, or of one piece of a passage that is longer than the window.
        keep: Best passages that an SLM scores if not all fit its window; None keeps all and scores several windows.
    """

    TEXT_VARIABLE: ClassVar[str] = "question"

    name: Literal["rerank"] = "rerank"
    attention: AttentionWeighting = AttentionWeighting.MAX
    prompt: str = QUESTION_PROMPT
    keep: int | None = Field(None, ge=1)


class Uncertainty(UncertaintyModelConfig):
    """An uncertainty score as a member. Higher values mean a more certain model, and so a better supported sentence.

    Attributes:
        name: Name in `members`; unique in a job. Members that differ only in score, window and attention share one pass of the
            model.
        model: Preferably the model that generated the responses.
        score: The score; see `pipeline.uncertainty.scores`.
        window: K, tokens per window of attenhscore and surprisal.
        attention: Attention that weights a token there: max (the paper's), mean or last.
        text: Text to measure: `response`, the logged response, or `own`, an answer that the model first generates itself. An
            own answer gives a value of the whole response, but none of its sentences.
        max_tokens: Maximum number of tokens of an own answer.
        samples: Log column with further answers to the question, a list of strings, for lexical_similarity and eigenscore.
            These scores too have values of whole responses only.
        prompt: Template with `context` (list of passages) and `question`. The response follows it.
        in_ensemble: Average its values into the scores. If false, `evaluate` and `escalate` can still use them.
        flag_below: Value of a whole response below which `evaluate --members` counts it as flagged; None uses the mean over the
            compared responses.
    """

    TEXT_VARIABLE: ClassVar[str] = "response"

    score: UncertaintyScore = UncertaintyScore.ATTENHSCORE
    window: int = Field(16, ge=1)
    attention: AttentionWeighting = AttentionWeighting.MAX
    text: Literal["response", "own"] = "response"
    max_tokens: int = Field(64, ge=1, le=1024)
    samples: str = Field("samples", min_length=1)
    prompt: str = ANSWER_PROMPT
    in_ensemble: bool = False
    flag_below: float | None = None

    @property
    def display_name(self) -> str:
        """See `UncertaintyModelConfig.display_name`."""
        return f"uncertainty {self.name!r}"

    @property
    def value(self) -> str:
        """Kind of the value that is normalized (`pipeline.member_values.ValueKind`): it has only its score."""
        return ValueKind.SCORE.value

    @property
    def suspicious_below(self) -> float | None:
        """Value of a whole response below which the response is suspicious; None if there is no limit."""
        return self.flag_below

    def measurement_settings(self) -> "Uncertainty":
        """Return the settings that determine its pass of the model. They are equal for members that share the pass."""
        return Uncertainty.model_construct(**{**dict(self), **{key: _DEFAULTS[key] for key in SCORE_FIELDS}})

    @model_validator(mode="after")
    def _check_score(self) -> "Uncertainty":
        if self.score.compares_samples and self.text == "own":
            raise PydanticCustomError(
                "config.samples-of-own",
                "{score} compares answers in the logs: remove `text: own`",
                {"score": self.score.value},
            )
        if self.in_ensemble and (self.score.compares_samples or self.text == "own"):
            raise PydanticCustomError(
                "config.no-sentence-value",
                "it has no value of a sentence, so it can't be in the ensemble: remove `in_ensemble: true`",
            )
        return self


_DEFAULTS = {key: field.default for key, field in Uncertainty.model_fields.items()} | {"name": "read"}
