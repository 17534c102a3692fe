"""Which column holds conversations, where question, context and response have no columns of their own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from ragassay.jobs.init.names import TALK, Role, parts_of
from ragassay.jobs.init.sample import Column
from ragassay.jobs.input.messages import Talk, talk_of, turns_of
from ragassay.jobs.sections import Columns

ENOUGH = 0.5  # share of the rows looked at that have to hold a conversation with an answer


@dataclass(frozen=True)
class Spoken:
    """The column that holds conversations.

    Attributes:
        column: Its name.
        named: Whether its name says so.
        why: Reasons, in words.
        doubts: What could be wrong with it; empty where nothing is.
        chars: Characters of what is taken from it, on average, by role.
        asked: Share of the rows looked at that have a question.
    """

    column: str
    named: bool
    why: list[str]
    doubts: list[str]
    chars: Mapping[Role, float]
    asked: float


def spoken(columns: Sequence[Column]) -> Spoken | None:
    """The column with conversations, by what stands in it; by its name where there is no row to look at."""
    found = [one for column in columns if column.talk and (one := _look(column)) is not None]
    return max(found, key=lambda one: (one.named, one.chars[Role.CONTEXT]), default=None)


def _look(column: Column) -> Spoken | None:
    named = bool(TALK & set(parts_of(column.name)[-1:]))
    talks = [_read(value) for value in column.values if value is not None]
    answered = [talk for talk in talks if talk is not None and talk.response]
    if talks and len(answered) < ENOUGH * len(talks):
        return None
    if not talks and not named:
        return None
    texts = {
        Role.QUESTION: [len(talk.question or "") for talk in answered],
        Role.CONTEXT: [sum(len(one.text or "") for one in talk.documents or ()) for talk in answered],
        Role.RESPONSE: [len(talk.response or "") for talk in answered],
    }
    told = sum(map(bool, texts[Role.CONTEXT]))
    why = ["conversations: the last user turn is the question, the last assistant turn behind it the response"]
    doubts = []
    if answered:
        why.append(f"{told / len(answered):.0%} have passages in tool or system turns")
    if told < ENOUGH * len(answered):
        roles = ", ".join(Columns.model_fields["passage_roles"].default)
        doubts.append(f"few have passages in turns of {roles}: other roles can be named in columns.passage_roles")
    chars = {role: fmean(lengths) if lengths else 0.0 for role, lengths in texts.items()}
    asked = sum(map(bool, texts[Role.QUESTION])) / len(answered) if answered else 1.0
    return Spoken(column.name, named, why, doubts, chars, asked)


def _read(value: object) -> Talk | None:
    try:
        return talk_of(turns_of(value))
    except ValueError:
        return None
