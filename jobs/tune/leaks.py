"""Keep training clear of what is measured on: near-duplicates by shared runs of words, not by equality."""

from collections.abc import Iterable, Sequence

from pipeline.overlap import words

RUN = 5
"""Words of a run. A text that differs in a word has RUN runs of its own; the rest are known."""

KNOWN = 0.5
"""A text is a near-duplicate if so many of its runs stand in what is measured on."""

Runs = frozenset[int]


def runs_of(texts: Iterable[str]) -> Runs:
    """Hashes of all runs of RUN words of texts; of all words where a text has fewer."""
    return frozenset(run for text in texts for run in _runs(text))


def share_known(text: str, known: Runs) -> float:
    """Share of a text's runs that are among the known ones, 0 to 1; 0 for a text without a word."""
    own = _runs(text)
    return sum(run in known for run in own) / len(own) if own else 0.0


def leaks(context: Sequence[str], statement: str, known: Runs) -> bool:
    """Whether a passage of a context, or a statement, is a near-duplicate of something that is measured on."""
    return any(share_known(text, known) >= KNOWN for text in (*context, statement))


def _runs(text: str) -> set[int]:
    found = words(text)
    return {hash(tuple(found[i : i + RUN])) for i in range(max(1, len(found) - RUN + 1))} if found else set()
