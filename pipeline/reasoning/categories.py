"""The kinds of hallucination that an explanation names, the same for detectors' evidence and reports."""

from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import PydanticCustomError

from ragassay.pipeline.detectors.named_entities import EntityKind


class Category(BaseModel):
    """A kind of hallucination.

    Attributes:
        name: As answers and tables name it.
        meaning: What the model is told of it.
        is_hallucination: False of the one kind by which the model says that the sentence is supported after all.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(min_length=1, max_length=40, pattern=r"^[a-z0-9_]+$")
    meaning: str = Field(min_length=1)
    is_hallucination: bool = True


def _kind(name: str, meaning: str, is_hallucination: bool = True) -> Category:
    return Category(name=name, meaning=meaning, is_hallucination=is_hallucination)


CATEGORIES = (
    _kind("wrong_value", "a number, amount, date or time is not the one that the passages give"),
    _kind("wrong_entity", "a person, organisation, place, product or other thing is not the one that the passages name"),
    _kind("wrong_relation", "things that the passages name are connected otherwise: who did what, cause, order, comparison"),
    _kind("opposite", "it says the opposite of what the passages say: yes for no, allowed for forbidden"),
    _kind("condition", "a condition, exception or limit that the passages set is left out, added or changed"),
    _kind("overstated", "it is more certain, more general or stronger than what the passages say"),
    _kind("denied", "it says that something is unknown or not mentioned which the passages do tell"),
    _kind("added", "it adds something of which no passage says anything"),
    _kind("not_a_hallucination", "the passages support everything that the sentence says", is_hallucination=False),
)
"""Taken if a job names none. Each stands for a way in which answers go wrong, see docs/how-to/larger-model.md."""

DETECTOR_CATEGORIES = {
    EntityKind.NUMBER: "wrong_value",
    EntityKind.DATE: "wrong_value",
    EntityKind.NAME: "wrong_entity",
    EntityKind.SEQUENCE: "wrong_relation",
}
"""Category of what a detector finds missing from the context."""


def find_category_fault(categories: Sequence[Category]) -> PydanticCustomError | None:
    """What is wrong with a list of categories; None if nothing is."""
    names = [category.name for category in categories]
    if len(set(names)) != len(names):
        return PydanticCustomError("config.category-names", "categories share a name: {names}", {"names": ", ".join(names)})
    if sum(not category.is_hallucination for category in categories) != 1 or len(categories) < 2:
        return PydanticCustomError(
            "config.category-to-disagree",
            "categories need one with is_hallucination: false, by which the model can disagree, and others besides",
        )
    return None
