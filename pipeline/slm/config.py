"""What defines one small language model (SLM) of the ensemble: weights, prompt, labels, engine limits, replicas."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from ragassay.pipeline.engines.adapter import trained_with
from ragassay.pipeline.engines.config import KINDS, EngineConfig
from ragassay.pipeline.engines.model import Model
from ragassay.pipeline.engines.prepare import window_of
from ragassay.pipeline.engines.protocol import Engine
from ragassay.pipeline.engines.settings import EngineSettings, LocalSettings
from ragassay.pipeline.engines.vllm_engine import Vllm, quantization_fault
from ragassay.pipeline.errors import ConfigError
from ragassay.pipeline.rows import Row
from ragassay.pipeline.slm import errors

DEFAULT_PROMPT = """\
You check whether a statement is supported by a context. Reply with Yes or No only.

Context:
{% for passage in context %}{{ passage }}
{% endfor %}

Question: {{ question }}

Statement: {{ sentence }}

Is the statement supported by the context? Reply Yes or No."""

VERIFIER_PROMPT = """\
Does the context support the statement? Answer Yes or No.

Context:
{% for passage in context %}{{ passage }}
{% endfor %}
Question: {{ question }}
{{ padding }}Statement: {{ sentence }}
Answer:"""
"""The prompt of models that are trained for it: what changes from sentence to sentence begins on a block of the prefix cache,
and little stands behind the sentence, since both are computed again for each. Sent without a chat template."""

SUSPICIOUS_BELOW = {"p_yes": 0.5, "p_yes_share": 0.5, "log_odds": 0.0}
"""Value of its worst sentence below which an SLM alone finds a response suspicious: it says No rather than Yes."""

NOT_OF_SCORES = {"model", "adapter", "trust_remote_code", "engine", "replicas"}
"""Settings that no score depends on; weights are known by what they hold, and the engine says its own."""

TRAINED = ("system", "prompt", "chat", "supported", "unsupported")
"""Settings that an adapter is trained with."""

Words = Annotated[tuple[str, ...], Field(min_length=1)]


class Replicas(BaseModel):
    """Actor pool of one SLM: Ray Data scales it between min and max.

    Attributes:
        min: Replicas that are started at once and kept.
        max: Replicas that it may grow to.
        num_cpus: Logical CPUs that one replica reserves in Ray; a fraction is fine.
        num_gpus: GPUs that one replica reserves; 0.25 puts four replicas on a card.
        hang_minutes: A replica whose engine gives no answer for so long, while it loads or has work (a step of the engine that
            ends no prompt is an answer too), is ended, and another is started; null waits for ever.
        restarts: How often a replica is started anew in one run, where its process was ended so, or ended otherwise; then the
            run ends with an error.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    min: int = Field(1, ge=1)
    max: int = Field(1, ge=1)
    num_cpus: float = Field(0.5, ge=0)
    num_gpus: float = Field(0, ge=0)
    hang_minutes: float | None = Field(60, gt=0)
    restarts: int = Field(5, ge=0)

    @model_validator(mode="after")
    def _ordered(self) -> "Replicas":
        if self.max < self.min:
            raise PydanticCustomError(
                "config.replicas-range", "max ({max}) is below min ({min})", {"max": self.max, "min": self.min}
            )
        return self


class Slm(Model):
    """One SLM.

    Attributes:
        name: Its name in `members`; unique in a job.
        model: `embedded`, a hub id, a local folder, or a GGUF file.
        adapter: LoRA adapter that is merged into the model: one that comes with the package, or a folder, such as
            `ragassay tune` writes. It brings system, prompt, chat, supported and unsupported with it.
        revision: Commit or tag of a hub id.
        trust_remote_code: Run code that comes with the model; needed by some hub models, off unless asked for.
        engine: What runs it, with its settings: {kind: vllm, …}, {kind: transformers, …} (slow; the reference), or
            {kind: server, …}: a model behind an OpenAI-compatible endpoint, which `model` names. Its name alone will do, and
            its settings may stand among the SLM's own.
        system: System message; None leaves the chat template's own.
        prompt: Jinja template (sandboxed) of the user message, with `context` (list of passages), `question` and
            `sentence`. Put `sentence` last: all sentences of a response then share their prefix. Where `{{ padding }}` stands
            before it, line breaks fill up the shared part to whole blocks of the prefix cache.
        chat: Wrap the prompt in the model's chat template; false sends it as it stands.
        supported: Words by which it says "supported": their probability is the P(yes) of the formulas. Every spelling that
            is one token counts, with and without a leading space.
        unsupported: Words by which it says "not supported". For a model whose Yes means "ungrounded", swap the two.
        value: Which number is normalised: p_yes, p_yes_share = P(yes) / (P(yes) + P(no)), or
            log_odds = log P(yes) - log P(no).
        whole_response: Also ask about the whole response (the paper's P(yes) baseline).
        replicas: Its actor pool.
    """

    engine: EngineConfig = Vllm()
    system: str | None = None
    prompt: str = DEFAULT_PROMPT
    chat: bool = True
    supported: Words = ("Yes", "YES", "yes")
    unsupported: Words = ("No", "NO", "no")
    value: Literal["p_yes", "p_yes_share", "log_odds"] = "log_odds"
    whole_response: bool = False
    replicas: Replicas = Replicas()

    ALSO_READ: ClassVar[frozenset[str]] = frozenset(name for kind in KINDS for name in kind.model_fields) - {"kind"}
    """Settings of engines, which may stand here too."""

    def identity(self) -> dict[str, Any]:
        """What its scores depend on beside its weights: all of its settings, but for those that no score depends on."""
        return {**self.model_dump(mode="json", exclude=NOT_OF_SCORES), **self.engine.identity()}

    @property
    def suspicious_below(self) -> float:
        """Value of its worst sentence below which it alone finds a response suspicious."""
        return SUSPICIOUS_BELOW[self.value]

    @property
    def local(self) -> LocalSettings:
        """Its engine, where that runs in a process of ours.

        Raises:
            ConfigError: It is served.
        """
        if not isinstance(self.engine, LocalSettings):
            raise ConfigError(errors.NEEDS_WEIGHTS, member=self.name)
        return self.engine

    @property
    def cache_block(self) -> int:
        """Tokens a block of its engine's prefix cache; 0 where it has none."""
        return self.local.cache_block(self.replicas.num_gpus)

    def window(self) -> int:
        """Tokens that its engine has room for; see `window_of`."""
        return window_of(self, self.local.max_model_len)

    def texts(self, row: Row) -> list[str]:
        """What it is asked about of a row: its sentences, and then the whole response, if that is asked about."""
        return [*row.sentences, *([row.response] if self.whole_response else [])]

    def load_engine(self, threads: int) -> Engine:
        """Load its engine.

        Args:
            threads: CPU threads it may use.

        Raises:
            ModelError: The model can't be found or loaded.
        """
        labels = len(self.supported + self.unsupported)
        return self.local.load(self, labels=labels, gpus=self.replicas.num_gpus, threads=threads)

    @model_validator(mode="before")
    @classmethod
    def _with_engine(cls, given: Any) -> Any:
        """An engine by its name alone, and its settings among the SLM's own: as its settings."""
        if not isinstance(given, dict):
            return given
        flat = {key: value for key, value in given.items() if key in cls.ALSO_READ}
        rest = {key: value for key, value in given.items() if key not in flat}
        engine = given.get("engine", {})
        if isinstance(engine, EngineSettings):
            engine = {"kind": engine.kind, **engine.model_dump(exclude_unset=True)}
        elif isinstance(engine, str):
            engine = {"kind": engine}
        if not isinstance(engine, dict):
            return rest
        engine = {"kind": "vllm", **engine}
        kind = next((kind for kind in KINDS if kind.model_fields["kind"].default == engine["kind"]), None)
        if kind is not None and issubclass(kind, LocalSettings):
            # What another local engine would be told is passed over, so that one word of a job file changes the engine.
            others = set().union(*(other.model_fields for other in KINDS if issubclass(other, LocalSettings)))
            passed = {key: flat.pop(key) for key in others - set(kind.model_fields) if key in flat}
            if passed.get("quantization"):
                raise quantization_fault(passed["quantization"], "leave it out")
        for key in flat.keys() & engine.keys():
            if flat[key] != engine[key]:
                raise PydanticCustomError(
                    "config.engine-setting-twice",
                    "{key} stands twice, as {value} and in engine as {other}: leave one out",
                    {"key": key, "value": repr(flat[key]), "other": repr(engine[key])},
                )
        return {**rest, "engine": {**flat, **engine}}

    @model_validator(mode="before")
    @classmethod
    def _as_trained(cls, given: Any) -> Any:
        """An adapter judges under the prompt that it was trained with; under another its numbers would mean nothing."""
        trained = trained_with(given["adapter"]) if isinstance(given, dict) and given.get("adapter") else {}
        for key in TRAINED:
            if key in trained and key in given and _plain(given[key]) != trained[key]:
                raise PydanticCustomError(
                    "config.adapter-setting",
                    "adapter '{adapter}' was trained with another {key}: leave {key} out",
                    {"adapter": given["adapter"], "key": key},
                )
        return {**given, **{key: trained[key] for key in TRAINED if key in trained}} if trained else given

    @model_validator(mode="after")
    def _labels_differ(self) -> "Slm":
        refuse_shared_words(self.supported, self.unsupported)
        return self

    @model_validator(mode="after")
    def _served_as_it_is(self) -> "Slm":
        if self.engine.SERVED and (self.adapter or self.system or not self.chat):
            raise PydanticCustomError(
                "config.served-prompt",
                "a served SLM takes neither adapter nor system nor chat: false: the server puts its chat around it",
            )
        if self.engine.SERVED and self.model == "embedded":
            raise PydanticCustomError("config.served-model", "a served SLM needs model: its name at the server")
        return self

    @model_validator(mode="after")
    def _engine_can(self) -> "Slm":
        if fault := self.engine.fault(self.replicas.num_gpus):
            raise fault
        return self


def refuse_shared_words(supported: Words, unsupported: Words) -> None:
    """Refuse words that would say both.

    Raises:
        ValueError: There are some.
    """
    both = set(supported) & set(unsupported)
    if both:
        raise PydanticCustomError(
            "config.shared-words", "supported and unsupported share the words {words}", {"words": sorted(both)}
        )


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
