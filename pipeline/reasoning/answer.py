"""Parse the reasoner's answers. An answer that can't be parsed becomes a status."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ragassay.pipeline.engines.text_protocol import replace_lone_surrogates
from ragassay.pipeline.reasoning.categories import Category
from ragassay.pipeline.reasoning.evidence import Evidence, find_quote
from ragassay.pipeline.reasoning.strategy import UNKNOWN, Strategy
from ragassay.schemas.explanation_columns import AnswerStatus

_FENCE = re.compile(r"^```(?:json)?\s*\n(.*)\n```$", re.DOTALL)
_UNKNOWN_REASON = re.compile(rf"\W*({UNKNOWN}\b|(?i:{UNKNOWN})\W*$)")
"""A reason that begins with UNKNOWN, or is this word alone in any case."""

NOT_IN_CONTEXT = "the quoted evidence occurs in no passage"


@dataclass(frozen=True)
class Explanation:
    """The reasoner's explanation of a deciding sentence.

    Attributes:
        status: Whether the answer is readable.
        error: Why the answer is not readable, or what is wrong with its evidence.
        category: Chosen category; None unless the strategy is `categorized`.
        reason: Why the sentence is a hallucination.
        evidence: Quoted piece of the context; None if the answer quotes nothing, or text that no passage contains.
        consistent: Whether the reasoner agrees with the flag; None under `vanilla`, which does not ask.
    """

    status: AnswerStatus
    error: str | None = None
    category: str | None = None
    reason: str | None = None
    evidence: Evidence | None = None
    consistent: bool | None = None


def read_answer(text: str, strategy: Strategy, categories: Sequence[Category], passages: Sequence[str | None]) -> Explanation:
    """Parse an answer.

    Args:
        text: The whole answer.
        strategy: Strategy of the question.
        categories: Categories that the question offered.
        passages: The context, which must contain the evidence.
    """
    try:
        answer = json.loads(match[1] if (match := _FENCE.match(text.strip())) else text)
    except (ValueError, RecursionError):
        return _make_unreadable("the answer is not JSON")
    if fault := _find_fault(answer, strategy.make_answer_schema(categories)):
        return _make_unreadable(fault)
    reason, quote = (replace_lone_surrogates(answer[name]).strip() for name in ("reason", "evidence"))
    category, consistent = None, None
    if strategy is Strategy.CATEGORIZED:
        category = answer["category"]
        consistent = next(offered.is_hallucination for offered in categories if offered.name == category)
    elif strategy is Strategy.FALLBACK:
        consistent = not _UNKNOWN_REASON.match(reason)
    if not reason:
        return _make_unreadable("the answer has no reason")
    evidence = find_quote(quote, passages) if quote else None
    error = NOT_IN_CONTEXT if quote and evidence is None else None
    return Explanation(AnswerStatus.OK, error, category, reason, evidence, consistent)


def _find_fault(answer: Any, schema: dict[str, Any]) -> str | None:
    if not isinstance(answer, dict):
        return "the answer is not a JSON object"
    for name, field in schema["properties"].items():
        if not isinstance(answer.get(name), str):
            return f"the answer has no text {name!r}"
        if "enum" in field and answer[name] not in field["enum"]:
            return f"the category {answer[name][:40]!r} is not in the list"
    return None


def _make_unreadable(error: str) -> Explanation:
    return Explanation(AnswerStatus.UNREADABLE, error)
