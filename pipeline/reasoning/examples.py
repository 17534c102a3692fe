"""Worked examples for the prompt, from the training part of the bundled handbook."""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import yaml

EXAMPLES = Path(__file__).with_name("examples.yaml")


@dataclass(frozen=True)
class Example:
    """A flagged sentence and a good answer.

    Attributes:
        item: Id of the handbook item.
        passages: The context.
        question: The question.
        response: The whole response.
        sentence: The flagged sentence.
        evidence: Evidence of the good answer.
        reason: Reason of the good answer.
        category: Category of the good answer; `not_a_hallucination` if the sentence was flagged wrongly.
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
    """Load the bundled examples."""
    records = yaml.safe_load(EXAMPLES.read_text(encoding="utf-8"))
    return tuple(Example(**{**record, "passages": tuple(record["passages"])}) for record in records)
