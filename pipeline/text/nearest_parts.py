"""Compare a sentence with the parts of a text, in any language: TF-IDF over character trigrams."""

from collections import Counter
from collections.abc import Sequence, Set
from math import log, sqrt

GRAM_CHARS = 3
"""Characters of a gram: grams need no language, no stems and no spaces between words."""


class NearestParts:
    """Parts of a text, compared by the cosine of binary TF-IDF vectors of trigrams; the parts are the documents."""

    def __init__(self, parts: Sequence[str]) -> None:
        """Count the trigrams of the parts."""
        self._grams = [_extract_grams(part) for part in parts]
        counts = Counter(gram for grams in self._grams for gram in grams)
        self._weights = {gram: log(len(parts) / count) ** 2 for gram, count in counts.items()}
        self._lengths = [self._measure(grams) for grams in self._grams]

    def compare(self, text: str) -> list[float]:
        """Return the similarity of each part to a text, 0 to 1."""
        grams = _extract_grams(text) & self._weights.keys()
        length = self._measure(grams)
        return [
            self._measure(grams & part) ** 2 / (length * part_length) if length and part_length else 0.0
            for part, part_length in zip(self._grams, self._lengths, strict=True)
        ]

    def _measure(self, grams: Set[str]) -> float:
        return sqrt(sum(self._weights[gram] for gram in sorted(grams)))


def _extract_grams(text: str) -> set[str]:
    folded = " ".join(text.casefold().split())
    return {folded[k : k + GRAM_CHARS] for k in range(max(1, len(folded) - GRAM_CHARS + 1))}
