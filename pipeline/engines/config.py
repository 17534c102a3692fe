"""The engines that a job file can select."""

from typing import Annotated, get_args

from pydantic import Field

from ragassay.pipeline.engines.server import ServerSettings
from ragassay.pipeline.engines.settings import EngineSettings
from ragassay.pipeline.engines.torch_engine import TorchSettings
from ragassay.pipeline.engines.transformers_engine import TransformersSettings
from ragassay.pipeline.engines.vllm_engine import VllmSettings

EngineConfig = Annotated[VllmSettings | TransformersSettings | TorchSettings | ServerSettings, Field(discriminator="kind")]
"""Settings of an SLM's engine."""

ENGINE_CLASSES: tuple[type[EngineSettings], ...] = get_args(get_args(EngineConfig)[0])
