"""Check that the packages of an engine are installed, without importing them."""

import sys
from collections.abc import Iterable
from importlib.util import find_spec

from ragassay.pipeline.engines import errors
from ragassay.pipeline.errors import ModelError

_NAMES = {"vllm": "vLLM", "torch": "PyTorch"}
"""Module -> name of its project, if they differ."""


def is_installed(module: str) -> bool:
    """Return whether a module of the top level can be imported. A folder of the same name without code does not count."""
    if module in sys.modules:
        return True
    spec = find_spec(module)
    return spec is not None and spec.origin is not None


def require_packages(modules: Iterable[str], owner: str) -> None:
    """Refuse an engine whose packages are not installed in this environment.

    Args:
        modules: Modules of the top level that the engine imports.
        owner: What needs them, such as `Model 'facts'`.

    Raises:
        ModelError: A module is missing.
    """
    missing = [module for module in modules if not is_installed(module)]
    if missing:
        packages = " and ".join(_NAMES.get(module, module) for module in missing)
        raise ModelError(errors.PACKAGE_MISSING, packages=packages, verb="are" if missing[1:] else "is", owner=owner)
