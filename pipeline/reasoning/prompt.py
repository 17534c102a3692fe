"""Build the reasoner's prompt about a deciding sentence, as a chat."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ragassay.pipeline.engines.text_protocol import Messages
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
    """Make the chat about one sentence. The part that all sentences of a response share comes first, for prefix caches.

    Log text is inserted as strings of a JSON object, so that it can't end the object and act as an instruction.

    Args:
        strategy: How the model may disagree.
        categories: Categories that the model may choose from.
        passages: The context.
        question: The question.
        response: The whole response.
        sentence: The deciding sentence.
    """
    content = _make_content(passages, question, response, sentence)
    return [*_make_prefix(strategy, categories), {"role": "user", "content": content}]


def hash_prompt(strategy: Strategy, categories: Sequence[Category]) -> str:
    """Hash the prefix of a strategy's chats, and the schema of its answers."""
    return _hash([list(_make_prefix(strategy, categories)), strategy.make_answer_schema(categories)])


def hash_request(identity: Mapping[str, Any], chat: Messages) -> str:
    """Hash everything that an answer depends on."""
    return _hash([identity, list(chat)])


def _hash(data: Any) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True, ensure_ascii=False).encode()).hexdigest()[:32]


def _make_prefix(strategy: Strategy, categories: Sequence[Category]) -> Iterator[Mapping[str, str]]:
    """Yield the messages with instructions and worked examples."""
    yield {"role": "system", "content": strategy.make_instructions(categories)}
    for example in load_examples():
        answer = _make_answer(example, strategy, categories)
        if answer is not None:
            content = _make_content(example.passages, example.question, example.response, example.sentence)
            yield {"role": "user", "content": content}
            yield {"role": "assistant", "content": _dump_json(answer)}


def _make_answer(example: Example, strategy: Strategy, categories: Sequence[Category]) -> dict[str, str] | None:
    """Make the good answer to an example; None if the strategy or the categories allow none."""
    is_supported = example.category == "not_a_hallucination"
    answer = {"evidence": example.evidence, "reason": example.reason}
    match strategy:
        case Strategy.VANILLA:
            return None if is_supported else answer
        case Strategy.FALLBACK:
            return {**answer, "reason": UNKNOWN} if is_supported else answer
        case Strategy.CATEGORIZED:
            is_offered = example.category in {category.name for category in categories}
            return {**answer, "category": example.category} if is_offered else None


def _make_content(passages: Sequence[str], question: str, response: str, sentence: str) -> str:
    return _dump_json({"passages": list(passages), "question": question, "response": response, "flagged_sentence": sentence})


def _dump_json(data: Mapping[str, Any]) -> str:
    return json.dumps(data, ensure_ascii=False)
