"""No text takes longer than its length says: what a log may hold is not chosen by us."""

import time
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

import pytest

from ragassay.pipeline.calibration.baselines import words
from ragassay.pipeline.detectors.batch import _pieces
from ragassay.pipeline.detectors.named import find_entities, known_keys
from ragassay.pipeline.detectors.terms import content_terms, has_word_spaces
from ragassay.pipeline.slm.template import fill
from ragassay.pipeline.text.sentence_ends import line_ends
from ragassay.pipeline.text.split import load_splitter, split
from ragassay.pipeline.training.corrupt import corrupt, rephrase

SIZE = 10_000
TIMES = 4
GROWTH = 2 * TIMES
"""A text that is four times as long may take eight times as long, for the noise; a square would take sixteen."""

FLOOR = 0.1
"""Seconds of processor time under which the longer text tells nothing."""

# Before, again and again, behind.
SHAPES = {
    "code fence": ("```", " ", "x"),
    "spaces": ("", " ", "x"),
    "line breaks": ("", "\n", "x"),
    "digits": ("passage ", "1", "x"),
    "thousands": ("1", ",111", "x"),
    "references": ("passage 1", ", 1", "x"),
    "numbers": ("", "1 ", ""),
    "ordinals": ("", "1th ", ""),
    "words of numbers": ("", "one ", "x"),
    "words of order": ("", "first ", ""),
    "scales": ("one", " trillion", ""),
    "months": ("", "may ", "x"),
    "dots": ("", ".", "x"),
    "dots and spaces": ("", ". ", "x"),
    "full stops": ("", "。", "x"),
    "full stops after words": ("", "天气好。", "x"),
    "capitals": ("", "A", "."),
    "names": ("", "Aa ", "x"),
    "names and numbers": ("", "Aa 1 ", "x"),
    "initials": ("", "A. ", "x"),
    "codes": ("", "w1 ", "x"),
    "small sentences": ("", "it is so. and ", "x"),
    "joined sentences": ("", "No. 1 ", "x"),
    "times": ("", "9 a.m. The ", "x"),
    "quotes": ("", '"', "x"),
    "opening brackets": ("", "(", "x"),
    "closing brackets": ("x.", ")", "x"),
    "brackets": ("", "a(b) (", "x"),
    "hashes": ("", "#", "x"),
    "smileys": ("", ":-", "x"),
    "endings": ("a", "'s", "x"),
    "slashes": ("http://", "a/b.", "x"),
    "stars": ("", "**a** ", "x"),
    "emoji": ("", "👩\u200d👩", "x"),
    "accents": ("a", "\u0301", "x"),
    "citations": ("It is. ", "[1] ", "x"),
    "citations on lines": ("It is.", "\n[1]", ""),
    "sentences with citations": ("", "It is so.[1] ", "x"),
    "numbers cited": ("It is.[1", ", 1", "x"),
    "unclosed sources": ("", "It is. (source: ", "x"),
    "one word": ("", "a", ""),
    "private use": ("", "\ue000a", "x"),
}
DOINGS: dict[str, Callable[[str], object]] = {
    "entities": partial(find_entities, stop_words=frozenset({"the"})),
    "keys": lambda text: known_keys([text]),
    "terms": lambda text: content_terms(text, "en"),
    "scripts": has_word_spaces,
    "pieces": lambda text: list(_pieces(text)),
    "words": words,
    "line": line_ends,
    "template": lambda text: fill(text, dict.fromkeys(["a"], "")),
    "rephrase": lambda text: rephrase(text, Random(0)),
    "corrupt": lambda text: corrupt(text[:2000], text, Random(0)),
}


@pytest.fixture(scope="module")
def nlp() -> Any:
    return load_splitter("sentencizer", "en")


@pytest.mark.parametrize("shape", SHAPES)
def test_time_grows_with_length_and_not_with_its_square(nlp: Any, shape: str) -> None:
    before, again, behind = SHAPES[shape]
    short, long = (before + again * (size // len(again)) + behind for size in (SIZE, TIMES * SIZE))
    for name, doing in {"split": lambda text: split(nlp, [text]), **DOINGS}.items():
        assert grows_evenly(doing, short, long), name


def test_a_square_is_seen() -> None:
    def square(text: str) -> int:
        return sum(text[at:].count("x") for at in range(len(text)))

    assert not grows_evenly(square, "x" * SIZE, "x" * (TIMES * SIZE))


def grows_evenly(doing: Callable[[str], object], short: str, long: str) -> bool:
    """Whether the long text takes about as many times longer as it is long, in one of five tries: other work on the machine
    slows either."""
    return any(seconds(doing, long) < max(FLOOR, GROWTH * seconds(doing, short)) for _ in range(5))


def seconds(doing: Callable[[str], object], text: str) -> float:
    start = time.process_time()
    doing(text)
    return time.process_time() - start
