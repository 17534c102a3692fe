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
class Measured:
    """The texts that are measured on.

    Attributes:
        places: Run -> the texts that have it.
        sizes: Runs of each text.
    """

    places: defaultdict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    sizes: list[int] = field(default_factory=list)


def measured(texts: Iterable[str]) -> Measured:
    """Index texts by their runs."""
    found = Measured()
    for text in dict.fromkeys(texts):
        runs = _runs(text)
        for run in runs:
            found.places[run].append(len(found.sizes))
        found.sizes.append(len(runs))
    return found


def near(text: str, known: Measured) -> float:
    """The largest share of its runs that this text has in common with a measured one, or a measured one with it, 0 to 1."""
    own = _runs(text)
    shared = Counter(place for run in own for place in known.places.get(run, ()))
    return max((_share(n, len(own), known.sizes[place]) for place, n in shared.items()), default=0.0)


def leaks(context: Sequence[str], statement: str, known: Measured) -> bool:
    """Whether a passage of a context, or a statement, is a near-duplicate of something that is measured on."""
    return any(near(text, known) >= NEAR for text in (*context, statement))


def _share(shared: int, one: int, other: int) -> float:
    return max((shared / size if size >= LEAST else float(shared == one == other)) for size in (one, other))


@lru_cache(maxsize=4096)
def _runs(text: str) -> frozenset[int]:
    found = extract_words(text)
    return frozenset(hash(tuple(found[i : i + RUN])) for i in range(max(1, len(found) - RUN + 1))) if found else frozenset()
