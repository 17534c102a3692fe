"""What the reasoner is asked about a flagged sentence, as a chat."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ragassay.pipeline.engines.text import Messages
from ragassay.pipeline.reasoning.categories import Category
from ragassay.pipeline.reasoning.examples import Example, load_examples
from ragassay.pipeline.reasoning.strategy import UNKNOWN, Strategy


def make_chat(
    strategy: Strategy,
    categories: Sequence[Category],
    passages: Sequence[str],
    question: str,
    response: str,
    sentence: str,
) -> Messages:
    """The chat about one sentence. What the sentences of a response share stands in front, for caches of prefixes.

    Log text goes in as the strings of a JSON object: nothing in it can end the object and pass for an instruction's place.

    Args:
        strategy: How the model may disagree.
        categories: What it may choose from.
        passages: The context.
        question: The question.
        response: The whole response, for what the sentence refers to.
        sentence: The flagged sentence.
    """
    return [*_before(strategy, categories), {"role": "user", "content": _data(passages, question, response, sentence)}]


def hash_prompt(strategy: Strategy, categories: Sequence[Category]) -> str:
    """Hash of what every chat of a strategy begins with, and of the form that answers have."""
    return _hash([list(_before(strategy, categories)), strategy.make_answer_schema(categories)])


def hash_request(identity: Mapping[str, Any], chat: Messages) -> str:
    """Hash of all that an answer depends on."""
    return _hash([identity, list(chat)])


def _hash(data: Any) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True, ensure_ascii=False).encode()).hexdigest()[:32]


def _before(strategy: Strategy, categories: Sequence[Category]) -> Iterator[Mapping[str, str]]:
    """Instructions and worked examples."""
    yield {"role": "system", "content": strategy.make_instructions(categories)}
    for example in load_examples():
        answer = _answer(example, strategy, categories)
        if answer is not None:
            asked = _data(example.passages, example.question, example.response, example.sentence)
            yield {"role": "user", "content": asked}
            yield {"role": "assistant", "content": _json(answer)}


def _answer(example: Example, strategy: Strategy, categories: Sequence[Category]) -> dict[str, str] | None:
    """A good answer to an example; None where the strategy, or a list of other categories, has none."""
    supported = example.category == "not_a_hallucination"
    said = {"evidence": example.evidence, "reason": example.reason}
    match strategy:
        case Strategy.VANILLA:
            return None if supported else said
        case Strategy.FALLBACK:
            return {**said, "reason": UNKNOWN} if supported else said
        case Strategy.CATEGORIZED:
            known = example.category in {category.name for category in categories}
            return {**said, "category": example.category} if known else None


def _data(passages: Sequence[str], question: str, response: str, sentence: str) -> str:
    return _json({"passages": list(passages), "question": question, "response": response, "flagged_sentence": sentence})


def _json(data: Mapping[str, Any]) -> str:
    return json.dumps(data, ensure_ascii=False)
