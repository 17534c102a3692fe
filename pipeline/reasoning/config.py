"""What defines the reasoner: the model that explains, how it is asked, and what it costs."""

from typing import Annotated, Any

from pydantic import BaseModel, Field, model_validator
from pydantic_core import PydanticCustomError

from ragassay.pipeline.engines.model import MODEL_CONFIG, Model
from ragassay.pipeline.engines.server import ServerSettings
from ragassay.pipeline.engines.settings import EngineSettings
from ragassay.pipeline.engines.text import TextEngine
from ragassay.pipeline.engines.vllm_engine import VllmSettings
from ragassay.pipeline.reasoning.categories import CATEGORIES, Category, find_category_fault
from ragassay.pipeline.reasoning.prompt import hash_prompt
from ragassay.pipeline.reasoning.strategy import Strategy
from ragassay.pipeline.slm.config import Replicas

TextEngineConfig = Annotated[VllmSettings | ServerSettings, Field(discriminator="kind")]
"""The engines that answer in text."""


SCORE_ONLY_SETTINGS = {"max_model_len", "top_logprobs"}
"""Settings of engines that scores depend on and whole answers don't."""


class Price(BaseModel):
    """What a served model costs.

    Attributes:
        input: US dollars a million tokens of prompts.
        output: US dollars a million tokens of answers.
    """

    model_config = MODEL_CONFIG

    input: float = Field(ge=0)
    output: float = Field(ge=0)

    def compute_cost(self, prompt_tokens: float, completion_tokens: float) -> float:
        """US dollars for so many tokens."""
        return (self.input * prompt_tokens + self.output * completion_tokens) / 1_000_000


class Reasoner(Model):
    """The model that explains what was flagged.

    Attributes:
        name: Its name, for messages.
        model: Its name at the server; or, for vLLM, `embedded`, a hub id, a local folder or a GGUF file.
        engine: What runs it: {kind: server, …}, an OpenAI-compatible endpoint, or {kind: vllm, …}, a pool in the same Ray job.
        strategy: How it may disagree, if the command line names no strategy.
        categories: The kinds of hallucination it chooses from under `categorized`; one has is_hallucination: false.
        max_tokens: Tokens that an answer may have.
        structured: Hold answers to a JSON schema while they are written; false for servers that can't.
        price: What a served model costs; None leaves costs out, and takes no budget in money.
        replicas: Its actor pool.
    """

    name: str = Field("reasoner", min_length=1, pattern=r"^[A-Za-z0-9._-]+$")
    engine: TextEngineConfig = VllmSettings()
    strategy: Strategy = Strategy.CATEGORIZED
    categories: tuple[Category, ...] = CATEGORIES
    max_tokens: int = Field(400, ge=16)
    structured: bool = True
    price: Price | None = None
    replicas: Replicas = Replicas()

    def identity(self, strategy: Strategy) -> dict[str, Any]:
        """What explanations depend on beside the weights: all settings, but for those that no answer depends on."""
        kept = self.model_dump(mode="json", include={"max_tokens", "structured"})
        engine = {key: value for key, value in self.engine.identity().items() if key not in SCORE_ONLY_SETTINGS}
        return {**kept, "prompt": hash_prompt(strategy, self.categories), **engine}

    def load_engine(self, threads: int) -> TextEngine:
        """Load it.

        Raises:
            ModelError: The model can't be found or loaded.
        """
        return self.engine.load_text_engine(self, gpus=self.replicas.num_gpus, threads=threads)

    @model_validator(mode="before")
    @classmethod
    def _engine_by_name(cls, given: Any) -> Any:
        if isinstance(given, dict) and isinstance(given.get("engine"), str):
            return {**given, "engine": {"kind": given["engine"]}}
        return given

    @model_validator(mode="after")
    def _can_explain(self) -> "Reasoner":
        served = isinstance(self.engine, ServerSettings)
        if fault := find_category_fault(self.categories):
            raise fault
        if served and (self.adapter or self.model == "embedded"):
            raise PydanticCustomError(
                "config.served-reasoner", "a served reasoner takes no adapter, and needs model: its name at the server"
            )
        if not served and (fault := self.engine.find_fault(self.replicas.num_gpus)):
            raise fault
        return self


def resolve_engine(reasoner: Reasoner) -> Reasoner:
    """With what it leaves to the machine settled as on this one; see `EngineSettings.resolve`."""
    engine: EngineSettings = reasoner.engine
    return reasoner.model_copy(update={"engine": engine.resolve(reasoner.replicas.num_gpus)})
