"""What the reasoner is asked: log text stays data, examples are nobody's test rows, what is shared stands in front."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragassay.jobs.data.handbook.build import items, rows
from ragassay.pipeline.reasoning.categories import CATEGORIES, Category, find_category_fault
from ragassay.pipeline.reasoning.config import Reasoner
from ragassay.pipeline.reasoning.examples import load_examples
from ragassay.pipeline.reasoning.prompt import hash_request, make_chat
from ragassay.pipeline.reasoning.strategy import Strategy

ANY = st.text(max_size=80)


@given(st.lists(ANY, max_size=3), ANY, ANY, ANY)
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


def test_sentences_of_a_response_share_all_but_themselves() -> None:
    one, other = (make_chat(Strategy.CATEGORIZED, CATEGORIES, ["p"], "q", "A. B.", s)[-1]["content"] for s in ("A.", "B."))
    assert one.partition('A."}')[0] == other.partition('B."}')[0] and one.partition('A."}')[2] == ""


def test_examples_are_of_the_handbooks_training_part() -> None:
    training = {
        item["id"]: (item, rows(i, item)) for i, item in enumerate(items("items")) if rows(i, item)[0]["split"] == "train"
    }
    for example in load_examples():
        item, answers = training[example.item]
        assert list(example.passages) == item["context"] and example.question == item["question"]
        (row,) = [row for row in answers if row["response"] == example.response]
        start = example.response.index(example.sentence)
        (truth,) = [s["supported"] for s in row["sentence_labels"] if s["start"] == start]
        assert truth == (example.category == "not_a_hallucination")
        assert any(example.evidence in passage for passage in example.passages)
        assert example.category in {category.name for category in CATEGORIES}


def test_strategies_say_what_may_be_said() -> None:
    texts = {strategy: json.dumps(make_chat(strategy, CATEGORIES, [], "", "", "")) for strategy in Strategy}
    assert "UNKNOWN" not in texts[Strategy.VANILLA] and "not_a_hallucination" not in texts[Strategy.VANILLA]
    assert "UNKNOWN" in texts[Strategy.FALLBACK] and "not_a_hallucination" not in texts[Strategy.FALLBACK]
    assert all(category.name in texts[Strategy.CATEGORIZED] for category in CATEGORIES)
    own = (Category(name="odd", meaning="it is odd"), Category(name="fine", meaning="it is fine", is_hallucination=False))
    told = json.dumps(make_chat(Strategy.CATEGORIZED, own, [], "", "", ""))
    assert "odd: it is odd" in told and "wrong_value" not in told and '\\"fine\\"' in told


@pytest.mark.parametrize(
    ("kinds", "fault"),
    [
        ([("a", True), ("b", False)], None),
        ([("a", True), ("a", False)], "config.category-names"),
        ([("a", True), ("b", True)], "config.category-to-disagree"),
        ([("a", False), ("b", False)], "config.category-to-disagree"),
        ([("b", False)], "config.category-to-disagree"),
    ],
)
def test_categories_need_one_that_disagrees(kinds: list[tuple[str, bool]], fault: str | None) -> None:
    found = find_category_fault([Category(name=n, meaning="m", is_hallucination=h) for n, h in kinds])
    assert (found and found.type) == fault


def test_a_request_is_known_by_all_it_depends_on() -> None:
    chat = make_chat(Strategy.CATEGORIZED, CATEGORIES, ["p"], "q", "r", "s")
    settings: list[dict[str, Any]] = [
        {}, {"model": "n"}, {"max_tokens": 100}, {"structured": False},
        {"engine": {"kind": "server", "base_url": "http://b/v1"}}, {"engine": {"kind": "vllm"}},
    ]  # fmt: skip
    base: dict[str, Any] = {"model": "m", "engine": {"kind": "server", "base_url": "http://a/v1"}}
    made = [Reasoner.model_validate({**base, **more}) for more in settings]
    requests = {hash_request({"model": r.model, **r.identity(Strategy.CATEGORIZED)}, chat) for r in made}
    assert len(requests) == len(settings)
    engine = {**base["engine"], "concurrency": 3, "retries": 9}
    free = Reasoner.model_validate({**base, "engine": engine, "price": {"input": 1, "output": 1}})
    assert free.identity(Strategy.CATEGORIZED) == made[0].identity(Strategy.CATEGORIZED)
