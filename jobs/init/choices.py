"""Which column is the question, the context, the response, or the conversation: by names first, by what stands in them where
names say nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

from ragassay.jobs.config.input import Columns
from ragassay.jobs.init.columns import Column, mean
from ragassay.jobs.init.names import Role, is_about, names_talk, rate_name, show_all
from ragassay.jobs.input.documents import parse_documents
from ragassay.jobs.input.messages import Conversation, parse_conversation, parse_turns
from ragassay.pipeline.calibration.baselines import share_in_context, words_of

CANDIDATES = 8  # columns of each role that are compared; a log may have hundreds of texts
COMPARED = 100  # rows in which words of a response are looked for in a context
BY_CONTENT = 0.35
"""Share of a response's words that its context has, from which on the two are taken for what they are without fitting names."""
ASKS = 0.2  # share of texts that end with a question mark, from which on they are questions whatever their name
WORDS = 2.0  # words a text, on average, below which a column is a category rather than a text
NEAR = 3.0
"""Difference of names' fits below which another column could as well be meant; a name of another list's is as far as 10."""
ANSWERED = 0.5  # share of the rows that have to hold a conversation with an answer


@dataclass(frozen=True)
class Choice:
    """The column that was chosen for a key of `columns`.

    Attributes:
        key: The key.
        column: Its name; None where no column fits.
        why: Reasons, in words.
        doubts: What could be wrong with it, in words; empty where nothing is.
        is_named: Whether its name says that it is.
        texts: What is taken from it, by role, a text a row that was looked at; empty where there is none.
    """

    key: str
    column: str | None
    why: list[str]
    doubts: Sequence[str] = ()
    is_named: bool = False
    texts: Mapping[Role, list[str]] = field(default_factory=dict)


def choose_columns(columns: Sequence[Column]) -> dict[Role, Choice]:
    """Choose a column for each role.

    Args:
        columns: All columns of the logs.

    Returns:
        Role -> its column, no column twice. There is no context or no response where none fits, and no question where there
        seems to be none.
    """
    texts = [column for column in columns if column.passages and not column.holds_talk]
    usable = {role: [column for column in texts if column.text or role is Role.CONTEXT] for role in Role}
    rates = {(column, role): _rate(column, role) for role, found in usable.items() for column in found}
    best = {role: sorted(found, key=lambda c: -rates[c, role])[:CANDIDATES] for role, found in usable.items()}
    pairs = [(c, r) for c, r in product(best[Role.CONTEXT], best[Role.RESPONSE]) if c is not r]
    shares = {(c, r): _share_of_words(r, c) for c, r in pairs}
    questions = [*filter(_may_ask, best[Role.QUESTION]), None]
    triples = [(q, c, r) for (c, r), q in product(pairs, questions) if q is not c and q is not r]

    def rate_triple(triple: tuple[Column | None, Column, Column]) -> float:
        q, c, r = triple
        rate = rates[c, Role.CONTEXT] + rates[r, Role.RESPONSE] + 3 * (shares[c, r] or 0) + (c.chars > r.chars)
        return rate if q is None else rate + rates[q, Role.QUESTION] + 0.5 + (c.chars > q.chars)

    chosen = {role: best[role][0] for role in (Role.CONTEXT, Role.RESPONSE) if best[role]}
    share = None
    if triples:  # else there are not even two columns of texts
        question, context, response = max(triples, key=rate_triple)
        share = shares[context, response]
        asked = {} if question is None else {Role.QUESTION: question}
        chosen = {**asked, Role.CONTEXT: context, Role.RESPONSE: response}
    chosen = {role: c for role, c in chosen.items() if role is Role.QUESTION or _fits(c, role, share)}
    if not {Role.CONTEXT, Role.RESPONSE} <= chosen.keys():
        share = None
    names = {column.name for column in chosen.values()}
    return {r: _explain(c, r, share, [o.name for o in usable[r] if o.name not in names]) for r, c in chosen.items()}


def _share_of_words(response: Column, context: Column) -> float | None:
    """Share of a response's words that its context has, on average; None where no row has both."""
    both = [(r, c) for r, c in zip(response.texts, context.texts, strict=True) if r and c][:COMPARED]
    return mean([share_in_context(r, words_of([c])) for r, c in both]) if both else None


def _may_ask(column: Column) -> bool:
    """Whether a column may be the question: by its name, or as texts that ask, whose name says nothing else."""
    if rate_name(column.name, Role.QUESTION):
        return True
    is_other = any(rate_name(column.name, role) for role in Role) or is_about(column.name)
    return not is_other and column.asks >= ASKS and _differ(column)


def _rate(column: Column, role: Role) -> float:
    """How well a column fits a role by itself; what a name says is worth more than all else together."""
    own, words = rate_name(column.name, role), mean([len(text.split()) for text in column.filled])
    rate = 2 * own - max(rate_name(column.name, other) for other in Role if other is not role)
    if not own:
        rate -= 2 * ((words < WORDS) + (not _differ(column)) + is_about(column.name))
    rate += len(column.filled) / max(1, len(column.texts))
    if role is Role.QUESTION:
        return rate + 2 * column.asks
    if role is Role.CONTEXT:
        return rate + 3 * column.lists + min(1.0, column.chars / 1000)
    return rate + min(1.0, words / 10)


def _differ(column: Column) -> bool:
    """Whether values are as many as texts are, and not those of a category; a handful of rows tells nothing."""
    return len(column.filled) < 20 or len(set(column.filled)) > 0.1 * len(column.filled)


def _fits(column: Column, role: Role, share: float | None) -> bool:
    """Whether a column is what it was taken for: by its name, or since the response's words stand in the context."""
    return rate_name(column.name, role) > 0 or ((share or 0.0) >= BY_CONTENT and not is_about(column.name))


def _explain(column: Column, role: Role, share: float | None, others: Sequence[str]) -> Choice:
    rate, decoded = rate_name(column.name, role), column.decoded
    also = [name for name in others if rate_name(name, role) > max(0.0, rate - NEAR)]
    lists = [len(value) for value in column.values if isinstance(value, list)]
    missing = 1 - len(column.filled) / max(1, len(column.texts))
    json = sum(value is not None for value in decoded) > len(decoded) / 2
    passages = role is Role.CONTEXT and sum(parse_documents(value) is not None for value in decoded) > len(decoded) / 2
    why = {
        "by its name" if rate else "by what stands in it": True,
        f"lists of {mean(lists):.1f} texts": bool(lists),
        f"{column.chars:,.0f} characters on average": column.chars > 0,
        f"{column.asks:.0%} end with a question mark": role is Role.QUESTION and column.asks > 0,
        f"the context has {share or 0:.0%} of the response's words": role is not Role.QUESTION and share is not None,
        "passages as JSON": passages,
    }
    doubts = {
        f"its name does not say that it is the {role}": not rate,
        f"could be {show_all(also)} too": bool(also),
        f"{missing:.0%} of the rows looked at have none": bool(column.values) and missing > 0.5,
        "it holds JSON, which is read as plain text, brackets and all: of a context, lists of texts are passages": (
            json and not passages
        ),
        "hardly a word of it stands in the context": role is Role.RESPONSE and share is not None and share < 0.2,
    }
    return Choice(role, column.name, _true(why), _true(doubts), rate > 0, {role: column.texts})


def _true(texts: Mapping[str, bool]) -> list[str]:
    return [text for text, holds in texts.items() if holds]


def choose_talk(columns: Sequence[Column]) -> Choice | None:
    """Choose the column with conversations, by what stands in it; by its name where there is no row to look at."""
    found = [choice for column in columns if column.talk and (choice := _talk_in(column)) is not None]
    return max(found, key=lambda c: (c.is_named, mean(list(map(len, c.texts[Role.CONTEXT])))), default=None)


def _talk_in(column: Column) -> Choice | None:
    is_named, values = names_talk(column.name), [value for value in column.values if value is not None]
    talks = [talk for talk in map(_read_talk, values) if talk is not None and talk.response]
    if len(talks) < ANSWERED * len(values) or not (values or is_named):
        return None
    contexts = ["".join(document.text or "" for document in talk.documents or ()) for talk in talks]
    share = len(list(filter(None, contexts))) / max(1, len(talks))
    why = ["conversations: the last user turn is the question, the last assistant turn behind it the response"]
    doubts = []
    if talks:
        why.append(f"{share:.0%} have passages in tool or system turns")
    if talks and share < ANSWERED:
        roles = ", ".join(Columns.model_fields["passage_roles"].default)
        doubts.append(f"few have passages in turns of {roles}: other roles can be named in input.columns.passage_roles")
    texts = {
        Role.QUESTION: [talk.question or "" for talk in talks],
        Role.CONTEXT: contexts,
        Role.RESPONSE: [talk.response or "" for talk in talks],
    }
    return Choice("messages", column.name, why, doubts, is_named, texts)


def _read_talk(value: object) -> Conversation | None:
    try:
        return parse_conversation(parse_turns(value))
    except ValueError:
        return None
