"""The engines that a job file can select."""

from typing import Annotated, get_args

from pydantic import Field, WrapValidator

from ragassay.pipeline.engines.auto import AutoSettings
from ragassay.pipeline.engines.server import ServerSettings
from ragassay.pipeline.engines.settings import EngineSettings
from ragassay.pipeline.engines.torch_engine import TorchSettings
from ragassay.pipeline.engines.transformers_engine import TransformersSettings
from ragassay.pipeline.engines.vllm_engine import VllmSettings
from ragassay.pipeline.plugins import ENGINES, read_kind

_Kinds = AutoSettings | VllmSettings | TransformersSettings | TorchSettings | ServerSettings

ENGINE_CLASSES: tuple[type[EngineSettings], ...] = get_args(_Kinds)

EngineConfig = Annotated[_Kinds, Field(discriminator="kind"), WrapValidator(read_kind(ENGINES, EngineSettings, ENGINE_CLASSES))]
"""Settings of an SLM's engine. An engine of another package is a plug-in."""
