"""From a model's answer to an explanation; what can't be read is a status, never a guess."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ragassay.pipeline.engines.text import encode_safely
from ragassay.pipeline.reasoning.categories import Category
from ragassay.pipeline.reasoning.evidence import Evidence, find_quote
from ragassay.pipeline.reasoning.strategy import UNKNOWN, Strategy
from ragassay.schemas.explanations import AnswerStatus

_FENCE = re.compile(r"^```(?:json)?\s*\n(.*)\n```$", re.DOTALL)
_GIVES_UP = re.compile(rf"\W*({UNKNOWN}\b|(?i:{UNKNOWN})\W*$)")  # as we wrote it; or in other letters, alone
NOT_IN_CONTEXT = "the evidence that it quotes is in no passage"


@dataclass(frozen=True)
class Explanation:
    """What a model says of a flagged sentence.

    Attributes:
        outcome: Whether it can be read.
        error: Why not; or what is wrong with its evidence.
        category: The kind that it chose; None under the other strategies.
        reason: Why the sentence is a hallucination, in words.
        evidence: What it quotes, as the context has it; None where it quotes nothing, or what is not there.
        consistent: Whether it agrees that the sentence is a hallucination; None under `vanilla`, which can't say.
    """

    status: AnswerStatus
    error: str | None = None
    category: str | None = None
    reason: str | None = None
    evidence: Evidence | None = None
    consistent: bool | None = None


def read_answer(text: str, strategy: Strategy, categories: Sequence[Category], passages: Sequence[str | None]) -> Explanation:
    """Read an answer.

    Args:
        text: What the model said, whole.
        strategy: How it was asked.
        categories: What it could choose from.
        passages: The context, in which its evidence has to stand.
    """
    try:
        said = json.loads(match[1] if (match := _FENCE.match(text.strip())) else text)
    except (ValueError, RecursionError):
        return _unreadable("the answer is no JSON")
    if fault := _fault(said, strategy.make_answer_schema(categories)):
        return _unreadable(fault)
    reason, quote = (encode_safely(said[name]).strip() for name in ("reason", "evidence"))
    category, consistent = None, None
    if strategy is Strategy.CATEGORIZED:
        category = said["category"]
        consistent = next(kind.is_hallucination for kind in categories if kind.name == category)
    elif strategy is Strategy.FALLBACK:
        consistent = not _GIVES_UP.match(reason)
    if not reason:
        return _unreadable("the answer gives no reason")
    evidence = find_quote(quote, passages) if quote else None
    note = NOT_IN_CONTEXT if quote and evidence is None else None
    return Explanation(AnswerStatus.OK, note, category, reason, evidence, consistent)


def _fault(said: Any, schema: dict[str, Any]) -> str | None:
    """What keeps an answer from being one; a category outside the list above all."""
    if not isinstance(said, dict):
        return "the answer is no JSON object"
    for name, wanted in schema["properties"].items():
        if not isinstance(said.get(name), str):
            return f"the answer has no text {name!r}"
        if "enum" in wanted and said[name] not in wanted["enum"]:
            return f"the category {said[name][:40]!r} is not in the list"
    return None


def _unreadable(error: str) -> Explanation:
    return Explanation(AnswerStatus.UNREADABLE, error)
