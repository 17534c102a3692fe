from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import ConfigError
from pipeline.split import MAX_SENTENCE_CHARS, load_splitter, split


@pytest.fixture(scope="module")
def nlp() -> Any:
    return load_splitter("sentencizer", "en")


CASES = {
    "The shop opens at 9 a.m. The fee is $1,200.50, see Dr. Lee in Room No. 4.": [
        "The shop opens at 9 a.m.",
        "The fee is $1,200.50, see Dr. Lee in Room No. 4.",
    ],
    "It takes 3.5 hours, e.g. on Mon. or Tue. in the U.S. market. Why? No. You can't!": [
        "It takes 3.5 hours, e.g. on Mon. or Tue. in the U.S. market.",
        "Why?",
        "No.",
        "You can't!",
    ],
    "Rules:\n- Wear a hat\n- Bring 2 pens; no ink\n1. First. Then second.\n\nDone": [
        "Rules:",
        "- Wear a hat",
        "- Bring 2 pens; no ink",
        "1. First.",
        "Then second.",
        "Done",
    ],
    "Run this:\n```python\nx = 1\nprint(x)\n```\nThat is all.": ["Run this:", "x = 1", "print(x)", "That is all."],
    "A paragraph that a terminal has wrapped at some column goes on in\nthe next line. And ends.": [
        "A paragraph that a terminal has wrapped at some column goes on in\nthe next line.",
        "And ends.",
    ],
    "今天天气好。我们去公园！": ["今天天气好。", "我们去公园！"],
    "```The limit is 5 days.```": ["```The limit is 5 days."],
    " \n\t ": [],
    "...": [],
}


@pytest.mark.parametrize("text", CASES)
def test_cases(nlp: Any, text: str) -> None:
    assert [text[a:b] for a, b in split(nlp, [text])[0]] == CASES[text]


texts = st.lists(
    st.sampled_from(
        [
            "The fee is $5.",
            "9 a.m.",
            "- item",
            "1.",
            "\n",
            "\n\n",
            " ",
            "Dr. Lee",
            "no",
            "é😀",
            "| a | b |",
            "?!",
            "x" * 90,
        ]
    ),
    max_size=14,
).map(" ".join) | st.text(max_size=80)


@given(st.lists(texts, max_size=5))
def test_sentences_cover_every_letter_once_in_order(nlp: Any, responses: list[str]) -> None:
    for text, spans in zip(responses, split(nlp, responses), strict=True):
        last = 0
        for start, end in spans:
            assert last <= start < end <= len(text)
            assert text[start:end] == text[start:end].strip()
            assert not any(c.isalnum() for c in text[last:start])
            last = end
        assert not any(c.isalnum() for c in text[last:])


def test_a_megabyte_without_punctuation_is_cut(nlp: Any) -> None:
    text = "word " * 200_000 + "x" * 100_000
    spans = split(nlp, [text])[0]
    assert max(b - a for a, b in spans) <= MAX_SENTENCE_CHARS
    assert sum(text[a:b].count("word") for a, b in spans) == 200_000
    assert sum(text[a:b].count("x") for a, b in spans) == 100_000


def test_batching_changes_nothing(nlp: Any) -> None:
    together = split(nlp, list(CASES))
    assert together == [split(nlp, [text])[0] for text in CASES]


def test_unknown_pipeline_and_language_are_named() -> None:
    with pytest.raises(ConfigError, match="'xx_not_there'"):
        load_splitter("xx_not_there", "en")
    with pytest.raises(ConfigError, match="'klingon'"):
        load_splitter("sentencizer", "klingon")
