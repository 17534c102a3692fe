"""Every text is processed in linear time, because a log may contain any text."""

import time
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

import pytest

from ragassay.pipeline.detectors.find_entities import collect_known_keys, find_entities
from ragassay.pipeline.detectors.terms import has_word_spaces, stem_content_words
from ragassay.pipeline.slm.template import fill_placeholders
from ragassay.pipeline.text.pieces import split_passage
from ragassay.pipeline.text.sentence_ends import can_end_sentence
from ragassay.pipeline.text.split import load_splitter, split_sentences
from ragassay.pipeline.text.words import extract_words
from ragassay.pipeline.training.statements import corrupt_sentence, rephrase_sentence

SIZE = 10_000
TIMES = 4
GROWTH = 2 * TIMES
"""A text that is four times as long may take eight times as long, to allow for noise; a quadratic time would take sixteen
times."""

FLOOR = 0.1
"""Minimum processor time in seconds; a shorter measurement is too noisy."""

# Prefix, repeated part, suffix.
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
FUNCTIONS: dict[str, Callable[[str], object]] = {
    "entities": partial(find_entities, stop_words=frozenset({"the"})),
    "keys": lambda text: collect_known_keys([text]),
    "terms": lambda text: stem_content_words(text, "en"),
    "scripts": has_word_spaces,
    "pieces": lambda text: list(split_passage(text)),
    "words": extract_words,
    "line": can_end_sentence,
    "template": lambda text: fill_placeholders(text, dict.fromkeys(["a"], "")),
    "rephrase": lambda text: rephrase_sentence(text, Random(0)),
    "corrupt": lambda text: corrupt_sentence(text[:2000], text, Random(0)),
}


@pytest.fixture(scope="module")
def nlp() -> Any:
    return load_splitter("sentencizer", "en")


@pytest.mark.parametrize("shape", SHAPES)
def test_time_is_linear_in_the_length(nlp: Any, shape: str) -> None:
    prefix, repeated, suffix = SHAPES[shape]
    short, long = (prefix + repeated * (size // len(repeated)) + suffix for size in (SIZE, TIMES * SIZE))
    for name, function in {"split": lambda text: split_sentences(nlp, [text]), **FUNCTIONS}.items():
        assert is_linear(function, short, long), name


def test_quadratic_time_is_detected() -> None:
    def count_quadratically(text: str) -> int:
        return sum(text[position:].count("x") for position in range(len(text)))

    assert not is_linear(count_quadratically, "x" * SIZE, "x" * (TIMES * SIZE))


def is_linear(function: Callable[[str], object], short: str, long: str) -> bool:
    """Return whether the time grows about as much as the length, in one of five tries: other work on the machine disturbs
    measurements."""
    return any(measure_seconds(function, long) < max(FLOOR, GROWTH * measure_seconds(function, short)) for _ in range(5))


def measure_seconds(function: Callable[[str], object], text: str) -> float:
    start = time.process_time()
    function(text)
    return time.process_time() - start
