"""Parsing of answers, and evidence in the context."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragassay.pipeline.reasoning.answer import read_answer
from ragassay.pipeline.reasoning.categories import CATEGORIES
from ragassay.pipeline.reasoning.evidence import find_quote
from ragassay.pipeline.reasoning.strategy import Strategy
from ragassay.schemas.explanation_columns import AnswerStatus

PASSAGES = ["The shop opens at 9 a.m., “except Sundays”.", None, "Staff wear a\n  badge – always."]
GOOD = {"evidence": "opens at 9 a.m.", "reason": "The passage states nine.", "category": "wrong_value"}


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("no JSON at all", "not JSON"),
        (json.dumps(GOOD)[:-5], "not JSON"),
        ("[]", "not a JSON object"),
        ('"reason"', "not a JSON object"),
        (json.dumps({**GOOD, "category": "not a hallucination"}), "'not a hallucination' is not in the list"),
        (json.dumps({**GOOD, "category": None}), "no text 'category'"),
        (json.dumps({**GOOD, "reason": ["a"]}), "no text 'reason'"),
        (json.dumps({"reason": "r", "category": "added"}), "no text 'evidence'"),
        (json.dumps({**GOOD, "reason": "  "}), "no reason"),
        (f"NOT A HALLUCINATION {json.dumps(GOOD)}", "not JSON"),
    ],
)
def test_an_unreadable_answer_has_no_values(text: str, error: str) -> None:
    explanation = read_answer(text, Strategy.CATEGORIZED, CATEGORIES, PASSAGES)
    assert explanation.status is AnswerStatus.UNREADABLE and error in (explanation.error or "")
    values = explanation.category, explanation.reason, explanation.evidence, explanation.consistent
    assert values == (None, None, None, None)


def test_agreement_depends_on_the_strategy() -> None:
    def read(strategy: Strategy, **changes: str) -> Any:
        return read_answer(json.dumps({**GOOD, **changes}), strategy, CATEGORIES, PASSAGES)

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
def test_a_quote_is_found_regardless_of_case_and_marks(quote: str, text: str | None) -> None:
    evidence = find_quote(quote, PASSAGES)
    assert (evidence.text if evidence else None) == text


@given(st.lists(st.text(max_size=60), min_size=1, max_size=4), st.data())
def test_evidence_is_the_text_at_its_offsets(passages: list[str], data: st.DataObject) -> None:
    passage = data.draw(st.sampled_from(passages))
    start = data.draw(st.integers(0, len(passage)))
    end = data.draw(st.integers(start, len(passage)))
    evidence = find_quote(passage[start:end], passages)
    if evidence is not None:
        assert passages[evidence.passage][evidence.start : evidence.end] == evidence.text


@given(st.lists(st.sampled_from(["red", "Shop", "opens", "9", "a.m.", "İ", "ß"]), min_size=2, max_size=8), st.integers(0, 6))
def test_whole_words_of_a_passage_are_found(words: list[str], start: int) -> None:
    passage = " ".join(words)
    quote = " ".join(words[min(start, len(words) - 2) :])
    evidence = find_quote(quote.upper() if "ß" not in quote and "İ" not in quote else quote, [passage])
    assert (evidence is not None) == (len(quote.strip(" \"'.…")) >= 3)
