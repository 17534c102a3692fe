"""The reasoner's prompt: log text stays data, examples are training rows, and sentences of a response share a prefix."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragassay.jobs.data.handbook.build import make_rows, read_items
from ragassay.pipeline.reasoning.categories import CATEGORIES, Category, find_category_fault
from ragassay.pipeline.reasoning.config import Reasoner
from ragassay.pipeline.reasoning.examples import load_examples
from ragassay.pipeline.reasoning.prompt import hash_request, make_chat
from ragassay.pipeline.reasoning.strategy import Strategy

TEXT = st.text(max_size=80)


@given(st.lists(TEXT, max_size=3), TEXT, TEXT, TEXT)
def test_log_text_stays_inside_its_string(passages: list[str], question: str, response: str, sentence: str) -> None:
    for strategy in Strategy:
        chat = make_chat(strategy, CATEGORIES, passages, question, response, sentence)
        assert [message["role"] for message in chat][-1] == "user"
        assert json.loads(chat[-1]["content"]) == {
            "passages": passages, "question": question, "response": response, "flagged_sentence": sentence,
        }  # fmt: skip
        assert all(
            message == other for message, other in zip(chat[:-1], make_chat(strategy, CATEGORIES, [], "", "", ""), strict=False)
        )


def test_prompts_of_a_response_differ_only_in_the_sentence() -> None:
    first, second = (make_chat(Strategy.CATEGORIZED, CATEGORIES, ["p"], "q", "A. B.", s)[-1]["content"] for s in ("A.", "B."))
    assert first.partition('A."}')[0] == second.partition('B."}')[0] and first.partition('A."}')[2] == ""


def test_examples_are_in_the_training_part_of_the_handbook() -> None:
    training = {
        item["id"]: (item, rows)
        for i, item in enumerate(read_items("items"))
        if (rows := make_rows(i, item))[0]["split"] == "train"
    }
    for example in load_examples():
        item, answers = training[example.item]
        assert list(example.passages) == item["context"] and example.question == item["question"]
        (row,) = [row for row in answers if row["response"] == example.response]
        start = example.response.index(example.sentence)
        (is_supported,) = [label["supported"] for label in row["sentence_labels"] if label["start"] == start]
        assert is_supported == (example.category == "not_a_hallucination")
        assert any(example.evidence in passage for passage in example.passages)
        assert example.category in {category.name for category in CATEGORIES}


def test_a_strategy_names_the_allowed_answers() -> None:
    texts = {strategy: json.dumps(make_chat(strategy, CATEGORIES, [], "", "", "")) for strategy in Strategy}
    assert "UNKNOWN" not in texts[Strategy.VANILLA] and "not_a_hallucination" not in texts[Strategy.VANILLA]
    assert "UNKNOWN" in texts[Strategy.FALLBACK] and "not_a_hallucination" not in texts[Strategy.FALLBACK]
    assert all(category.name in texts[Strategy.CATEGORIZED] for category in CATEGORIES)
    own = (Category(name="odd", meaning="it is odd"), Category(name="fine", meaning="it is fine", is_hallucination=False))
    prompt = json.dumps(make_chat(Strategy.CATEGORIZED, own, [], "", "", ""))
    assert "odd: it is odd" in prompt and "wrong_value" not in prompt and '\\"fine\\"' in prompt


@pytest.mark.parametrize(
    ("categories", "fault"),
    [
        ([("a", True), ("b", False)], None),
        ([("a", True), ("a", False)], "config.category-names"),
        ([("a", True), ("b", True)], "config.category-to-disagree"),
        ([("a", False), ("b", False)], "config.category-to-disagree"),
        ([("b", False)], "config.category-to-disagree"),
    ],
)
def test_exactly_one_category_disagrees(categories: list[tuple[str, bool]], fault: str | None) -> None:
    error = find_category_fault([Category(name=name, meaning="m", is_hallucination=flag) for name, flag in categories])
    assert (error and error.type) == fault


def test_the_hash_of_a_request_depends_on_settings_that_change_answers() -> None:
    chat = make_chat(Strategy.CATEGORIZED, CATEGORIES, ["p"], "q", "r", "s")
    settings: list[dict[str, Any]] = [
        {}, {"model": "n"}, {"max_tokens": 100}, {"structured": False},
        {"engine": {"kind": "server", "base_url": "http://b/v1"}}, {"engine": {"kind": "vllm"}},
    ]  # fmt: skip
    base: dict[str, Any] = {"model": "m", "engine": {"kind": "server", "base_url": "http://a/v1"}}
    reasoners = [Reasoner.model_validate({**base, **changes}) for changes in settings]
    requests = {hash_request({"model": r.model, **r.identity(Strategy.CATEGORIZED)}, chat) for r in reasoners}
    assert len(requests) == len(settings)
    engine = {**base["engine"], "concurrency": 3, "retries": 9}
    same_answers = Reasoner.model_validate({**base, "engine": engine, "price": {"input": 1, "output": 1}})
    assert same_answers.identity(Strategy.CATEGORIZED) == reasoners[0].identity(Strategy.CATEGORIZED)
