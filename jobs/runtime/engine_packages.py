"""Check before Ray starts that the engines of models are installed."""

from collections.abc import Iterable
from typing import Protocol

from ragassay.jobs.config.runtime import RuntimeConfig
from ragassay.pipeline.engines.settings import EngineSettings
from ragassay.pipeline.install import require_packages


class _ModelWithEngine(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def engine(self) -> EngineSettings: ...


def require_engines(runtime: RuntimeConfig, models: Iterable[_ModelWithEngine]) -> None:
    """Refuse models whose engines are not installed on this machine.

    On a cluster (`runtime.ray_address`) only the workers need engines; they make the same check when they load a model.

    Raises:
        InstallError: A package is missing.
    """
    if runtime.ray_address is None:
        for model in models:
            require_packages(model.engine.PACKAGES, f"Model {model.name!r}")
