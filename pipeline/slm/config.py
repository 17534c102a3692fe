"""What defines one small language model (SLM) of the ensemble: weights, prompt, labels, engine limits, replicas."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from ragassay.pipeline.slm.adapter import trained_with

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

NOT_OF_SCORES = {
    "model", "adapter", "trust_remote_code", "max_num_batched_tokens", "max_num_seqs", "block_size", "enforce_eager",
    "gpu_memory_utilization", "kv_cache_gib", "threads", "replicas",
}  # fmt: skip
"""Settings that no score depends on, beside the names of the weights, which are known by what they hold."""

TRAINED = ("system", "prompt", "chat", "supported", "unsupported")
"""Settings that an adapter is trained with."""

Words = Annotated[tuple[str, ...], Field(min_length=1)]

Dtype = Literal["auto", "bfloat16", "float16", "float32"]


class Replicas(BaseModel):
    """Actor pool of one SLM: Ray Data scales it between min and max.

    Attributes:
        min: Replicas that are started at once and kept.
        max: Replicas that it may grow to.
        num_cpus: Logical CPUs that one replica reserves in Ray; a fraction is fine.
        num_gpus: GPUs that one replica reserves; 0.25 puts four replicas on a card.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    min: int = Field(1, ge=1)
    max: int = Field(1, ge=1)
    num_cpus: float = Field(0.5, ge=0)
    num_gpus: float = Field(0, ge=0)

    @model_validator(mode="after")
    def _ordered(self) -> "Replicas":
        if self.max < self.min:
            raise ValueError(f"max ({self.max}) is below min ({self.min})")
        return self


class Slm(BaseModel):
    """One SLM.

    Attributes:
        name: Its name in `members`; unique in a job.
        model: `embedded`, a hub id, a local folder, or a GGUF file.
        adapter: LoRA adapter that is merged into the model: one that comes with the package, or a folder, such as
            `ragassay tune` writes. It brings system, prompt, chat, supported and unsupported with it.
        revision: Commit or tag of a hub id.
        trust_remote_code: Run code that comes with the model; needed by some hub models, off unless asked for.
        engine: vllm, or transformers (slow; the reference).
        dtype: Type of weights and activations; auto takes the fastest that is sound, see `pipeline.engines.dtype`.
        quantization: Makes weights fp8 when they are loaded, with a scale a tensor, channel or block, on GPUs that compute
            with it; None leaves them.
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
        max_model_len: Window in tokens; None takes the model's own, at most 8192.
        max_num_batched_tokens: Tokens an engine step may hold.
        max_num_seqs: Prompts an engine step may hold.
        block_size: Prefix-cache block; None is 32 on CPU (its smallest) and vLLM's default on GPU.
        enforce_eager: No compilation: starts faster; compiled CPU code runs faster on long jobs.
        gpu_memory_utilization: Share of the GPU that one replica takes.
        kv_cache_gib: Size of the KV cache; None is 1 on CPU, and on GPU what vLLM finds free. Replicas that share a card
            need it: vLLM measures free memory while it starts, and the others' start would mislead it.
        threads: CPU threads of one replica; None shares the machine's cores among the replicas.
        replicas: Its actor pool.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, protected_namespaces=())

    name: str = Field(min_length=1, pattern=r"^[A-Za-z0-9._-]+$")
    model: str = "embedded"
    adapter: str | None = None
    revision: str | None = None
    trust_remote_code: bool = False
    engine: Literal["vllm", "transformers"] = "vllm"
    dtype: Dtype = "auto"
    quantization: Literal["fp8_per_tensor", "fp8_per_channel", "fp8_per_block"] | None = None
    system: str | None = None
    prompt: str = DEFAULT_PROMPT
    chat: bool = True
    supported: Words = ("Yes", "YES", "yes")
    unsupported: Words = ("No", "NO", "no")
    value: Literal["p_yes", "p_yes_share", "log_odds"] = "log_odds"
    whole_response: bool = False
    max_model_len: int | None = Field(None, ge=64)
    max_num_batched_tokens: int = Field(8192, ge=64)
    max_num_seqs: int = Field(256, ge=1)
    block_size: int | None = Field(None, ge=1)
    enforce_eager: bool = True
    gpu_memory_utilization: float = Field(0.9, gt=0, le=1)
    kv_cache_gib: float | None = Field(None, gt=0)
    threads: int | None = Field(None, ge=1)
    replicas: Replicas = Replicas()

    def identity(self) -> dict[str, Any]:
        """What its scores depend on beside its weights: all of its settings, but for those that no score depends on."""
        return self.model_dump(mode="json", exclude=NOT_OF_SCORES)

    @property
    def suspicious_below(self) -> float:
        """Value of its worst sentence below which it alone finds a response suspicious."""
        return SUSPICIOUS_BELOW[self.value]

    @model_validator(mode="before")
    @classmethod
    def _as_trained(cls, given: Any) -> Any:
        """An adapter judges under the prompt that it was trained with; under another its numbers would mean nothing."""
        trained = trained_with(given["adapter"]) if isinstance(given, dict) and given.get("adapter") else {}
        for key in TRAINED:
            if key in trained and key in given and _plain(given[key]) != trained[key]:
                raise ValueError(f"adapter {given['adapter']!r} was trained with another {key}: leave {key} out")
        return {**given, **{key: trained[key] for key in TRAINED if key in trained}} if trained else given

    @model_validator(mode="after")
    def _labels_differ(self) -> "Slm":
        both = set(self.supported) & set(self.unsupported)
        if both:
            raise ValueError(f"supported and unsupported share the words {sorted(both)}")
        return self

    @model_validator(mode="after")
    def _engine_can(self) -> "Slm":
        if self.quantization and (self.engine != "vllm" or not self.replicas.num_gpus):
            raise ValueError(f"quantization {self.quantization} is for vllm on GPUs: set replicas.num_gpus, or leave it out")
        if 0 < self.replicas.num_gpus < 1 and self.engine == "vllm" and self.kv_cache_gib is None:
            raise ValueError("replicas that share a GPU need kv_cache_gib: vLLM can't measure what is free while others start")
        return self


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
