"""Import spaCy without torch and without its command line."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from types import ModuleType
from typing import Any

WANT_TORCH = ("spacy_transformers", "spacy_curated_transformers", "spacy_experimental")
"""Packages whose pipelines run torch inside spaCy; where one is installed, torch is let in."""

_COMMAND_LINE = "spacy.cli.info"
"""What spaCy imports of its command line, and with it the whole of that: a third of its time, of no use here."""


def import_spacy() -> Any:
    """spaCy, as fast and small as it can be.

    Its own library thinc imports torch wherever it is installed: twice the time and three times the memory of each worker, and
    of no use unless a package of transformer pipelines is there.
    """
    if "spacy" not in sys.modules:
        without_torch = "torch" not in sys.modules and not any(map(find_spec, WANT_TORCH))
        command_line = ModuleType(_COMMAND_LINE)
        command_line.info = None  # type: ignore[attr-defined]
        # None is Python's own way to make an import fail.
        with _standing_in({_COMMAND_LINE: command_line, **({"torch": None} if without_torch else {})}):
            import spacy
    import spacy

    return spacy


@contextmanager
def _standing_in(modules: dict[str, ModuleType | None]) -> Iterator[None]:
    """Have these in the place of modules that are not imported yet; afterwards those can be, as ever."""
    sys.modules.update(modules)  # type: ignore[arg-type]
    try:
        yield
    finally:
        for name in modules:
            del sys.modules[name]
