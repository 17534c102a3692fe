"""Configuration of the reasoner: the model that explains deciding sentences."""

from typing import Annotated, Any

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from ragassay.pipeline.engines.model import Model
from ragassay.pipeline.engines.price import Price
from ragassay.pipeline.engines.replicas import Replicas
from ragassay.pipeline.engines.server import ServerSettings
from ragassay.pipeline.engines.settings import EngineSettings
from ragassay.pipeline.engines.text_protocol import TextEngine
from ragassay.pipeline.engines.vllm_engine import VllmSettings
from ragassay.pipeline.reasoning.categories import CATEGORIES, Category, find_category_fault
from ragassay.pipeline.reasoning.prompt import hash_prompt
from ragassay.pipeline.reasoning.strategy import Strategy

TextEngineConfig = Annotated[VllmSettings | ServerSettings, Field(discriminator="kind")]
"""Engines that generate text."""

SCORE_ONLY_SETTINGS = {"max_model_len", "top_logprobs"}
"""Engine settings that affect scores but not generated answers."""


class Reasoner(Model):
    """The model that explains deciding sentences.

    Attributes:
        name: Name for messages.
        model: Name at the server; or, for vLLM, `embedded`, a hub id, a local folder or a GGUF file.
        engine: {kind: server, …} for an OpenAI-compatible endpoint, or {kind: vllm, …} for a pool in the same Ray job.
        strategy: Default strategy; the command line can name another one.
        categories: Categories under the strategy `categorized`; exactly one has is_hallucination: false.
        max_tokens: Maximum number of tokens per answer.
        structured: Constrain answers to a JSON schema; false for servers that do not support it.
        price: Price of a served model; None reports no costs and allows no budget in US dollars.
        replicas: Actor pool.
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
        """Return the settings that answers depend on, without the weights."""
        settings = self.model_dump(mode="json", include={"max_tokens", "structured"})
        engine = {key: value for key, value in self.engine.identity().items() if key not in SCORE_ONLY_SETTINGS}
        return {**settings, "prompt": hash_prompt(strategy, self.categories), **engine}

    def load_engine(self, threads: int) -> TextEngine:
        """Load the model.

        Raises:
            ModelError: The model can't be found or loaded.
        """
        return self.engine.load_text_engine(self, gpus=self.replicas.num_gpus, threads=threads)

    @model_validator(mode="before")
    @classmethod
    def _expand_engine_name(cls, settings: Any) -> Any:
        if isinstance(settings, dict) and isinstance(settings.get("engine"), str):
            return {**settings, "engine": {"kind": settings["engine"]}}
        return settings

    @model_validator(mode="after")
    def _check_settings(self) -> "Reasoner":
        is_served = isinstance(self.engine, ServerSettings)
        if fault := find_category_fault(self.categories):
            raise fault
        if is_served and (self.adapter or self.model == "embedded"):
            raise PydanticCustomError(
                "config.served-reasoner", "a served reasoner can't have an adapter, and model must be its name at the server"
            )
        if not is_served and (fault := self.engine.find_fault(self.replicas.num_gpus)):
            raise fault
        return self


def resolve_engine(reasoner: Reasoner) -> Reasoner:
    """Return the reasoner with engine settings resolved for this machine; see `EngineSettings.resolve`."""
    engine: EngineSettings = reasoner.engine
    return reasoner.model_copy(update={"engine": engine.resolve(reasoner, reasoner.replicas.num_gpus)})
