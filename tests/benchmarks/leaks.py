"""Keep training clear of what is measured on: near-duplicates by shared runs of words, not by equality."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from ragassay.pipeline.calibration.baselines import extract_words

RUN = 3
"""Words of a run: a text that differs in a word from another shares all of its runs but these few."""

NEAR = 0.5
"""Two texts are near-duplicates if one of them shares so many of its runs with the other."""

LEAST = 4
"""A text of fewer runs is too short to be called the same by a phrase: only one with all of its runs and no others is."""


@dataclass
class MeasuredTexts:
    """The texts that are measured on.

    Attributes:
        places: Run -> the texts that have it.
        sizes: Runs of each text.
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
    """The largest share of its runs that this text has in common with a measured one, or a measured one with it, 0 to 1."""
    runs = _hash_runs(text)
    shared = Counter(text_number for run in runs for text_number in index.places.get(run, ()))
    return max((_compute_share(n, len(runs), index.sizes[text_number]) for text_number, n in shared.items()), default=0.0)


def is_leak(context: Sequence[str], statement: str, index: MeasuredTexts) -> bool:
    """Whether a passage of a context, or a statement, is a near-duplicate of something that is measured on."""
    return any(compute_overlap(text, index) >= NEAR for text in (*context, statement))


def _compute_share(shared: int, size_a: int, size_b: int) -> float:
    return max((shared / size if size >= LEAST else float(shared == size_a == size_b)) for size in (size_a, size_b))


@lru_cache(maxsize=4096)
def _hash_runs(text: str) -> frozenset[int]:
    words = extract_words(text)
    return frozenset(hash(tuple(words[i : i + RUN])) for i in range(max(1, len(words) - RUN + 1))) if words else frozenset()
