"""The engines that a job file can select."""

from typing import Annotated, get_args

from pydantic import Field

from ragassay.pipeline.engines.server import Server
from ragassay.pipeline.engines.settings import EngineSettings
from ragassay.pipeline.engines.transformers_engine import Transformers
from ragassay.pipeline.engines.vllm_engine import Vllm

EngineConfig = Annotated[Vllm | Transformers | Server, Field(discriminator="kind")]
"""Settings of an SLM's engine."""

KINDS: tuple[type[EngineSettings], ...] = get_args(get_args(EngineConfig)[0])
