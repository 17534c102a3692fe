"""Detect near-duplicates of evaluation data in training data by shared runs of words."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from ragassay.pipeline.text.words import extract_words

RUN = 3
"""Words per run. Two texts that differ in one word share all runs except RUN."""

NEAR = 0.5
"""Two texts are near-duplicates if one of them shares this fraction of its runs with the other."""

LEAST = 4
"""A text with fewer runs is a near-duplicate only of a text with exactly the same runs."""


@dataclass
class MeasuredTexts:
    """Index of evaluation texts.

    Attributes:
        places: Run -> numbers of the texts that have it.
        sizes: Number of runs of each text.
    """

    places: defaultdict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    sizes: list[int] = field(default_factory=list)


def index_texts(texts: Iterable[str]) -> MeasuredTexts:
    """Index texts by their runs."""
    index = MeasuredTexts()
    for text in dict.fromkeys(texts):
        runs = _hash_runs(text)
        for run in runs:
            index.places[run].append(len(index.sizes))
        index.sizes.append(len(runs))
    return index


def compute_overlap(text: str, index: MeasuredTexts) -> float:
    """Compute the largest share of runs, 0 to 1, that this text shares with an indexed text, or an indexed text with it."""
    runs = _hash_runs(text)
    shared = Counter(text_number for run in runs for text_number in index.places.get(run, ()))
    return max((_compute_share(n, len(runs), index.sizes[text_number]) for text_number, n in shared.items()), default=0.0)


def is_leak(context: Sequence[str], statement: str, index: MeasuredTexts) -> bool:
    """Return whether a passage or a statement is a near-duplicate of an indexed text."""
    return any(compute_overlap(text, index) >= NEAR for text in (*context, statement))


def _compute_share(shared: int, size_a: int, size_b: int) -> float:
    return max((shared / size if size >= LEAST else float(shared == size_a == size_b)) for size in (size_a, size_b))


@lru_cache(maxsize=4096)
def _hash_runs(text: str) -> frozenset[int]:
    words = extract_words(text)
    return frozenset(hash(tuple(words[i : i + RUN])) for i in range(max(1, len(words) - RUN + 1))) if words else frozenset()
