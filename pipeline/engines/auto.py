"""The engine `auto`, the default: PyTorch on CPUs for the models that it reads, otherwise vLLM."""

from typing import ClassVar, Literal

from ragassay.pipeline.engines.model import Model
from ragassay.pipeline.engines.protocol import Engine
from ragassay.pipeline.engines.settings import LocalSettings
from ragassay.pipeline.engines.torch_engine import TorchSettings, can_read_model
from ragassay.pipeline.engines.vllm_engine import VllmSettings


class AutoSettings(VllmSettings):
    """Settings of auto: those of vLLM. PyTorch uses the settings that it has."""

    PACKAGES: ClassVar[tuple[str, ...]] = TorchSettings.PACKAGES

    kind: Literal["auto"] = "auto"  # type: ignore[assignment]

    def resolve(self, model: Model, gpus: float) -> LocalSettings:
        """See `EngineSettings.resolve`."""
        kind = VllmSettings if gpus or not can_read_model(model) else TorchSettings
        settings = {name: getattr(self, name) for name in kind.model_fields if name != "kind"}
        return kind(**settings).resolve(model, gpus)

    def load_engine(self, model: Model, *, labels: int, gpus: float, threads: int) -> Engine:
        """See `LocalSettings.load_engine`."""
        return self.resolve(model, gpus).load_engine(model, labels=labels, gpus=gpus, threads=threads)
