"""Import spaCy without torch and without its command line."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from types import ModuleType
from typing import Any

TORCH_PACKAGES = ("spacy_transformers", "spacy_curated_transformers", "spacy_experimental")
"""Packages whose pipelines run torch inside spaCy. If one is installed, spaCy may import torch."""

_COMMAND_LINE = "spacy.cli.info"
"""The module through which spaCy imports its whole command line, which takes a third of the import time and is not needed."""


def import_spacy() -> Any:
    """Import spaCy, and skip the parts that this project does not use.

    spaCy's library thinc imports torch if it is installed. That doubles the import time and triples the memory of each worker,
    and only transformer pipelines need it.
    """
    if "spacy" not in sys.modules:
        without_torch = "torch" not in sys.modules and not any(map(find_spec, TORCH_PACKAGES))
        command_line = ModuleType(_COMMAND_LINE)
        command_line.info = None  # type: ignore[attr-defined]
        # A module that is None in sys.modules fails to import.
        with _replace_modules({_COMMAND_LINE: command_line, **({"torch": None} if without_torch else {})}):
            import spacy
    import spacy

    return spacy


@contextmanager
def _replace_modules(modules: dict[str, ModuleType | None]) -> Iterator[None]:
    """Replace modules that are not imported yet. Afterwards they can be imported normally."""
    sys.modules.update(modules)  # type: ignore[arg-type]
    try:
        yield
    finally:
        for name in modules:
            del sys.modules[name]
