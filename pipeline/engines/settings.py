"""Settings of every engine."""

from typing import Any, ClassVar

from pydantic import BaseModel, Field
from pydantic_core import PydanticCustomError

from ragassay.pipeline.engines.dtype import Dtype, resolve_dtype
from ragassay.pipeline.engines.model import MODEL_CONFIG, Model
from ragassay.pipeline.engines.prepare import identify_model
from ragassay.pipeline.engines.protocol import Engine
from ragassay.pipeline.engines.text_protocol import TextEngine


class EngineSettings(BaseModel):
    """Settings of every engine; each engine has one file in this folder and one line in the union in `config`.

    Attributes:
        EXCLUDED_FROM_IDENTITY: Settings that no score depends on.
        PACKAGES: Modules that it imports where a model is loaded.
        IS_SERVED: Whether it receives text through a server, not token ids in this process.
    """

    model_config = MODEL_CONFIG
    EXCLUDED_FROM_IDENTITY: ClassVar[frozenset[str]] = frozenset({"kind"})
    PACKAGES: ClassVar[tuple[str, ...]] = ()
    IS_SERVED: ClassVar[bool] = False

    kind: str

    def identity(self) -> dict[str, Any]:
        """Return the settings that scores depend on."""
        return {"engine": self.kind, **self.model_dump(mode="json", exclude=set(self.EXCLUDED_FROM_IDENTITY))}

    def find_fault(self, gpus: float) -> PydanticCustomError | None:
        """Return why a member or a local reasoner can't use these settings with `gpus` GPUs per replica; None if it can."""
        return None

    def resolve(self, model: Model, gpus: float) -> "EngineSettings":
        """Return the settings with machine-dependent values resolved for this machine, so that all replicas compute alike.

        Args:
            model: The model.
            gpus: GPUs of a replica.
        """
        return self

    def identify_weights(self, model: Model) -> dict[str, Any]:
        """Return what identifies a model's weights."""
        raise NotImplementedError

    @property
    def compute_dtype(self) -> str:
        """Type that it computes in, in words."""
        raise NotImplementedError

    def load_text_engine(self, model: Model, *, gpus: float, threads: int) -> TextEngine:
        """Load a model that answers with text, if this engine supports it.

        Args:
            model: The model.
            gpus: GPUs of a replica; a fraction is a share of one, 0 is the CPU.
            threads: CPU threads that it may use.

        Raises:
            ModelError: The model can't be found or loaded.
        """
        raise NotImplementedError


class LocalSettings(EngineSettings):
    """Settings of every engine in a process of RAGAssay.

    Attributes:
        USES_INTEL_OPENMP: Whether Intel's OpenMP is preloaded where it runs: a little faster, but its threads spin while they
            wait, and take ten times as long where other processes use the cores.
        dtype: Type of weights and activations; auto selects the fastest sound type, see `pipeline.engines.dtype`.
        max_model_len: Context window in tokens; None uses the model's own, at most 8192.
        threads: CPU threads of one replica; None shares the machine's cores among the replicas.
    """

    EXCLUDED_FROM_IDENTITY: ClassVar[frozenset[str]] = EngineSettings.EXCLUDED_FROM_IDENTITY | {"threads"}
    USES_INTEL_OPENMP: ClassVar[bool] = True

    dtype: Dtype = "auto"
    max_model_len: int | None = Field(None, ge=64)
    threads: int | None = Field(None, ge=1)

    def identity(self) -> dict[str, Any]:
        """See `EngineSettings.identity`."""
        return {"quantization": None, **super().identity()}  # also in the identity of engines without quantization

    def resolve(self, model: Model, gpus: float) -> "LocalSettings":
        """See `EngineSettings.resolve`."""
        return self.model_copy(update={"dtype": resolve_dtype(self.dtype, gpus)})

    def identify_weights(self, model: Model) -> dict[str, Any]:
        """See `EngineSettings.identify_weights`."""
        return {"weights": identify_model(model)}

    @property
    def compute_dtype(self) -> str:
        """See `EngineSettings.compute_dtype`."""
        return self.dtype

    @property
    def tokens_per_step(self) -> int:
        """Maximum number of prompt tokens per engine step."""
        raise NotImplementedError

    def cache_block_size(self, gpus: float) -> int:
        """Return the block size of its prefix cache in tokens; 0 without one; 1 if it shares all equal prefixes of a call."""
        return 0

    def can_gain_from_compiling(self, gpus: float) -> bool:
        """Return whether compilation is off but could make a long run faster."""
        return False

    def load_engine(self, model: Model, *, labels: int, gpus: float, threads: int) -> Engine:
        """Load a model.

        Args:
            model: The model.
            labels: Number of label words.
            gpus: GPUs of a replica; a fraction is a share of one, 0 is the CPU.
            threads: CPU threads that it may use.

        Raises:
            ModelError: The model can't be found or loaded.
        """
        raise NotImplementedError
