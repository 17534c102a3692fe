"""What every engine can be told."""

from typing import Any, ClassVar, Self

from pydantic import BaseModel, Field
from pydantic_core import PydanticCustomError

from ragassay.pipeline.engines.dtype import Dtype, dtype_of
from ragassay.pipeline.engines.model import SETTINGS, Model
from ragassay.pipeline.engines.prepare import weights_identity
from ragassay.pipeline.engines.protocol import Engine
from ragassay.pipeline.engines.text import TextEngine


class EngineSettings(BaseModel):
    """What every engine can be told; one file an engine beside this, and a line of the union in `config`.

    Attributes:
        NOT_OF_SCORES: Settings that no score depends on.
        SERVED: Whether it is asked by text, through a server, and not by token ids in this process.
    """

    model_config = SETTINGS
    NOT_OF_SCORES: ClassVar[frozenset[str]] = frozenset({"kind"})
    SERVED: ClassVar[bool] = False

    kind: str

    def identity(self) -> dict[str, Any]:
        """What scores depend on: all settings, but for those that no score depends on."""
        return {"engine": self.kind, **self.model_dump(mode="json", exclude=set(self.NOT_OF_SCORES))}

    def fault(self, gpus: float) -> PydanticCustomError | None:
        """What speaks against it on this share of a GPU a replica; None if nothing does."""
        return None

    def settled(self, gpus: float) -> Self:
        """With what it leaves to the machine settled as on this one, so that all replicas compute alike."""
        return self

    def weights(self, model: Model) -> dict[str, Any]:
        """What tells a model's weights from others."""
        raise NotImplementedError

    @property
    def computes_in(self) -> str:
        """The type that it computes in, in words."""
        raise NotImplementedError

    def load_text(self, model: Model, *, gpus: float, threads: int) -> TextEngine:
        """Load a model that answers in text, where this engine can.

        Args:
            model: Which.
            gpus: GPUs of a replica; a fraction is a share of one, 0 is the CPU.
            threads: CPU threads that it may use.

        Raises:
            ModelError: The model can't be found or loaded.
        """
        raise NotImplementedError


class LocalSettings(EngineSettings):
    """What every engine in a process of ours can be told.

    Attributes:
        dtype: Type of weights and activations; auto takes the fastest that is sound, see `pipeline.engines.dtype`.
        max_model_len: Window in tokens; None takes the model's own, at most 8192.
        threads: CPU threads of one replica; None shares the machine's cores among the replicas.
    """

    NOT_OF_SCORES: ClassVar[frozenset[str]] = EngineSettings.NOT_OF_SCORES | {"threads"}

    dtype: Dtype = "auto"
    max_model_len: int | None = Field(None, ge=64)
    threads: int | None = Field(None, ge=1)

    def identity(self) -> dict[str, Any]:
        """See `EngineSettings.identity`."""
        return {"quantization": None, **super().identity()}  # fingerprints of engines that have none hold it as well

    def settled(self, gpus: float) -> Self:
        """See `EngineSettings.settled`."""
        return self.model_copy(update={"dtype": dtype_of(self.dtype, gpus)})

    def weights(self, model: Model) -> dict[str, Any]:
        """See `EngineSettings.weights`."""
        return {"weights": weights_identity(model)}

    @property
    def computes_in(self) -> str:
        """See `EngineSettings.computes_in`."""
        return self.dtype

    @property
    def tokens_a_step(self) -> int:
        """Prompt tokens that it runs at once, at most."""
        raise NotImplementedError

    def cache_block(self, gpus: float) -> int:
        """Tokens a block of its prefix cache; 0 where it has none."""
        return 0

    def gains_by_compiling(self, gpus: float) -> bool:
        """Whether a long run may gain by compiling, and does not."""
        return False

    def load(self, model: Model, *, labels: int, gpus: float, threads: int) -> Engine:
        """Load a model.

        Args:
            model: Which.
            labels: Words that are labels.
            gpus: GPUs of a replica; a fraction is a share of one, 0 is the CPU.
            threads: CPU threads that it may use.

        Raises:
            ModelError: The model can't be found or loaded.
        """
        raise NotImplementedError
