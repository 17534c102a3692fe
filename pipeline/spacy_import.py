"""Import spaCy without torch."""

import sys
from importlib.util import find_spec
from typing import Any

WANT_TORCH = ("spacy_transformers", "spacy_curated_transformers", "spacy_experimental")
"""Packages whose pipelines run torch inside spaCy; where one is installed, torch is let in."""


def import_spacy() -> Any:
    """spaCy, as fast and small as it can be.

    Its own library thinc imports torch wherever it is installed: twice the time and three times the memory of each worker, and
    of no use unless a package of transformer pipelines is there.
    """
    if not {"spacy", "torch"} & sys.modules.keys() and not any(map(find_spec, WANT_TORCH)):
        sys.modules["torch"] = None  # type: ignore[assignment]  # Python's own way to make an import fail
        try:
            import spacy
        finally:
            del sys.modules["torch"]
    import spacy

    return spacy
