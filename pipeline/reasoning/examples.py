"""Worked examples that stand before every question, from the part of the bundled handbook that nothing is measured on."""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import yaml

EXAMPLES = Path(__file__).with_name("examples.yaml")


@dataclass(frozen=True)
class Example:
    """A flagged sentence and a good answer.

    Attributes:
        item: Id of the handbook's item that it is from.
        passages: Its context.
        question: Its question.
        response: The whole response.
        sentence: The flagged sentence.
        evidence: What a good answer quotes.
        reason: What a good answer says.
        category: What a good answer takes; the kind that is no hallucination of a sentence that was flagged wrongly.
    """

    item: str
    passages: tuple[str, ...]
    question: str
    response: str
    sentence: str
    evidence: str
    reason: str
    category: str


@lru_cache(maxsize=1)
def load_examples() -> tuple[Example, ...]:
    """The bundled examples."""
    found = yaml.safe_load(EXAMPLES.read_text(encoding="utf-8"))
    return tuple(Example(**{**one, "passages": tuple(one["passages"])}) for one in found)
