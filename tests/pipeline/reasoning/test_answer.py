"""Answers are read as they are or not at all; evidence counts only where the context has it."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragassay.pipeline.reasoning.answer import read_answer
from ragassay.pipeline.reasoning.categories import CATEGORIES
from ragassay.pipeline.reasoning.evidence import find_quote
from ragassay.pipeline.reasoning.strategy import Strategy
from ragassay.schemas.explanations import AnswerStatus

PASSAGES = ["The shop opens at 9 a.m., “except Sundays”.", None, "Staff wear a\n  badge – always."]
GOOD = {"evidence": "opens at 9 a.m.", "reason": "The passage says nine.", "category": "wrong_value"}


@pytest.mark.parametrize(
    ("said", "error"),
    [
        ("no JSON at all", "no JSON"),
        (json.dumps(GOOD)[:-5], "no JSON"),
        ("[]", "no JSON object"),
        ('"reason"', "no JSON object"),
        (json.dumps({**GOOD, "category": "not a hallucination"}), "'not a hallucination' is not in the list"),
        (json.dumps({**GOOD, "category": None}), "no text 'category'"),
        (json.dumps({**GOOD, "reason": ["a"]}), "no text 'reason'"),
        (json.dumps({"reason": "r", "category": "added"}), "no text 'evidence'"),
        (json.dumps({**GOOD, "reason": "  "}), "no reason"),
        (f"NOT A HALLUCINATION {json.dumps(GOOD)}", "no JSON"),
    ],
)
def test_what_is_no_answer_is_no_guess(said: str, error: str) -> None:
    found = read_answer(said, Strategy.CATEGORIZED, CATEGORIES, PASSAGES)
    assert found.status is AnswerStatus.UNREADABLE and error in (found.error or "")
    assert (found.category, found.reason, found.evidence, found.consistent) == (None, None, None, None)


def test_strategies() -> None:
    def read(strategy: Strategy, **said: str) -> Any:
        return read_answer(json.dumps({**GOOD, **said}), strategy, CATEGORIES, PASSAGES)

    assert read(Strategy.VANILLA, reason="UNKNOWN").consistent is None
    assert read(Strategy.FALLBACK).consistent is True and read(Strategy.FALLBACK).category is None
    assert [read(Strategy.FALLBACK, reason=r).consistent for r in ("UNKNOWN", '"unknown."', "Unknown to whom?")] == [
        False,
        False,
        True,
    ]
    assert read(Strategy.CATEGORIZED).consistent is True
    assert read(Strategy.CATEGORIZED, category="not_a_hallucination").consistent is False
    fenced = read_answer(f"```json\n{json.dumps(GOOD)}\n```", Strategy.CATEGORIZED, CATEGORIES, PASSAGES)
    assert fenced.status is AnswerStatus.OK and fenced.evidence is not None and fenced.evidence.passage == 0


@pytest.mark.parametrize(
    ("quote", "text"),
    [
        ("opens at 9 a.m.", "opens at 9 a.m"),
        ("OPENS AT 9", "opens at 9"),
        ('"except Sundays".', "except Sundays"),
        ("wear a badge - always", "wear a\n  badge – always"),
        ("opens at 90 a.m.", None),
        ("pens at 9", None),
        ("..", None),
        ("a", None),
        ("", None),
        ("badge always", None),
    ],
)
def test_a_quote_is_found_but_for_case_and_marks(quote: str, text: str | None) -> None:
    found = find_quote(quote, PASSAGES)
    assert (found.text if found else None) == text


@given(st.lists(st.text(max_size=60), min_size=1, max_size=4), st.data())
def test_evidence_is_what_stands_at_its_place(passages: list[str], data: st.DataObject) -> None:
    passage = data.draw(st.sampled_from(passages))
    start = data.draw(st.integers(0, len(passage)))
    end = data.draw(st.integers(start, len(passage)))
    found = find_quote(passage[start:end], passages)
    if found is not None:
        assert passages[found.passage][found.start : found.end] == found.text


@given(st.lists(st.sampled_from(["red", "Shop", "opens", "9", "a.m.", "İ", "ß"]), min_size=2, max_size=8), st.integers(0, 6))
def test_whole_words_of_a_passage_are_found(words: list[str], start: int) -> None:
    passage = " ".join(words)
    quote = " ".join(words[min(start, len(words) - 2) :])
    found = find_quote(quote.upper() if "ß" not in quote and "İ" not in quote else quote, [passage])
    assert (found is not None) == (len(quote.strip(" \"'.…")) >= 3)
