"""Which column is the question, which the context, which the response: by names first, by what stands in them where names
say nothing."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from ragassay.jobs.init.names import SYNONYMS, TALK, Role, fit_of_name, is_about, parts_of
from ragassay.jobs.init.sample import Column
from ragassay.jobs.init.wording import listed
from ragassay.jobs.input.documents import lenient, listed_documents
from ragassay.pipeline.overlap import share_in_context, words_of

CANDIDATES = 8  # columns of each role that are compared; a log may have hundreds of texts
COMPARED = 100  # rows in which words of a response are looked for in a context
BY_CONTENT = 0.35
"""Share of a response's words that its context has, from which on the two are taken for what they are without fitting names."""
ASKS = 0.2  # share of values that end with a question mark, from which on they are questions whatever their name
WORDS = 2.0  # words a value, on average, below which a column is a category rather than a text
NEAR = 3.0
"""Difference of names' fits below which another column could as well be meant; a name of another list's is as far as 10."""


@dataclass(frozen=True)
class Taken:
    """The column that was taken for a role.

    Attributes:
        column: Its name.
        named: Whether its name says that it is.
        why: Reasons, in words.
        doubts: What could be wrong with it; empty where nothing is.
    """

    column: str
    named: bool
    why: list[str]
    doubts: list[str]


@dataclass(frozen=True)
class Measured:
    """A column with what its values tell.

    Attributes:
        column: The column.
        texts: Its values as texts, None for a null or blank one.
        chars: Characters of a value, on average.
        words: Words of a value, on average.
        filled: Share of the rows that have one.
        asks: Share of the values that end with a question mark.
        encoded: Share of the values that are lists or objects written as JSON.
        passages: Share of the values that are passages written as JSON: a list of texts or of documents, or a document.
        talk: Whether it holds conversations: messages with roles.
    """

    column: Column
    texts: list[str | None]
    chars: float
    words: float
    filled: float
    asks: float
    encoded: float
    passages: float
    talk: bool


def guess(columns: Sequence[Column]) -> dict[Role, Taken]:
    """Take a column for each role.

    Args:
        columns: All columns of the logs.

    Returns:
        Role -> its column, no column twice. There is no context or no response where none fits, and no question where there
        seems to be none.
    """
    measured = [measure(column) for column in columns if column.passages]
    usable = {
        Role.QUESTION: [m for m in measured if m.column.text and not m.talk],
        Role.CONTEXT: [m for m in measured if not m.talk],
        Role.RESPONSE: [m for m in measured if m.column.text and not m.talk],
    }
    best = {role: sorted(mine, key=lambda m: -_alone(m, role))[:CANDIDATES] for role, mine in usable.items()}
    shares = {
        (c.column.name, r.column.name): share_of_words(r, c)
        for c in best[Role.CONTEXT]
        for r in best[Role.RESPONSE]
        if c is not r
    }
    triple = max(_triples(best), key=lambda three: _together(three, shares), default=None)
    if triple is None:  # there are not even two columns of texts
        alone = {role: best[role][0] for role in (Role.CONTEXT, Role.RESPONSE) if best[role]}
        return {role: _taken(m, role, None, []) for role, m in alone.items() if fit_of_name(m.column.name, role)}
    question, context, response = triple
    share = shares[context.column.name, response.column.name]
    found = dict(zip((Role.CONTEXT, Role.RESPONSE), (context, response), strict=True))
    found = {role: m for role, m in found.items() if _fits(m, role, share)}
    if question is not None:
        found = {Role.QUESTION: question, **found}
    of_words = share if len(found.keys() - {Role.QUESTION}) == len((context, response)) else None
    taken = {m.column.name for m in found.values()}
    return {
        role: _taken(m, role, of_words, [u for u in usable[role] if u.column.name not in taken]) for role, m in found.items()
    }


def measure(column: Column) -> Measured:
    """What the values of a column of texts tell."""
    texts = ["\n".join(filter(None, v)) if isinstance(v, list) else v for v in column.values]
    there = [text for text in texts if text and text.strip()]
    decoded = [] if column.lists else [_decoded(text) for text in there[:COMPARED]]
    mean = fmean if there else lambda _: 0.0
    return Measured(
        column=column,
        texts=[text if text and text.strip() else None for text in texts],
        chars=mean([len(text) for text in there]),
        words=mean([len(text.split()) for text in there]),
        filled=len(there) / len(texts) if texts else 0.0,
        asks=mean([text.rstrip().endswith(("?", "？", "؟")) for text in there]),
        encoded=sum(value is not None for value in decoded) / len(decoded) if decoded else 0.0,
        passages=sum(listed_documents(value) is not None for value in decoded) / len(decoded) if decoded else 0.0,
        talk=any(map(_is_talk, decoded)) or bool(TALK & set(parts_of(column.name)[-1:])),
    )


def share_of_words(response: Measured, context: Measured) -> float | None:
    """Share of a response's words that its context has, on average; None where no row has both."""
    both = [(r, c) for r, c in zip(response.texts, context.texts, strict=True) if r and c][:COMPARED]
    return fmean([share_in_context(r, words_of([c])) for r, c in both]) if both else None


def _decoded(text: str) -> Any:
    """A list or an object that is written as JSON; None for any other text."""
    found = lenient(text)
    return None if isinstance(found, str) else found


def _is_talk(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(part, dict) and "role" in part for part in value)


_Triple = tuple[Measured | None, Measured, Measured]
_Shares = Mapping[tuple[str, str], float | None]


def _triples(best: Mapping[Role, Sequence[Measured]]) -> Iterator[_Triple]:
    for context in best[Role.CONTEXT]:
        for response in best[Role.RESPONSE]:
            if context is not response:
                questions = [q for q in best[Role.QUESTION] if q is not context and q is not response and _may_ask(q)]
                yield from ((question, context, response) for question in (*questions, None))


def _may_ask(m: Measured) -> bool:
    """Whether a column may be the question: by its name, or as texts that ask, whose name says nothing else."""
    if fit_of_name(m.column.name, Role.QUESTION):
        return True
    elsewhere = max(fit_of_name(m.column.name, role) for role in (Role.CONTEXT, Role.RESPONSE))
    return not elsewhere and not is_about(m.column.name) and m.asks >= ASKS and _differ(m)


def _alone(m: Measured, role: Role) -> float:
    """How well a column fits a role by itself; what a name says is worth more than all else together."""
    own = fit_of_name(m.column.name, role)
    others = max(fit_of_name(m.column.name, other) for other in SYNONYMS if other is not role)
    found = 2 * own - others
    if not own:
        found -= 2 * ((m.words < WORDS) + (not _differ(m)) + is_about(m.column.name))
    found += min(1.0, m.filled)
    if role is Role.QUESTION:
        return found + 2 * m.asks
    if role is Role.CONTEXT:
        return found + 3 * m.column.lists + min(1.0, m.chars / 1000)
    return found + min(1.0, m.words / 10)


def _differ(m: Measured) -> bool:
    """Whether values are as many as texts are, and not those of a category; a handful of rows tells nothing."""
    there = [text for text in m.texts if text]
    return len(there) < 20 or len(set(there)) > 0.1 * len(there)


def _together(three: _Triple, shares: _Shares) -> float:
    question, context, response = three
    share = shares[context.column.name, response.column.name] or 0.0
    found = _alone(context, Role.CONTEXT) + _alone(response, Role.RESPONSE) + 3 * share + (context.chars > response.chars)
    return found if question is None else found + _alone(question, Role.QUESTION) + 0.5 + (context.chars > question.chars)


def _fits(m: Measured, role: Role, share: float | None) -> bool:
    """Whether a column is what it was taken for: by its name, or since the response's words stand in the context."""
    return fit_of_name(m.column.name, role) > 0 or ((share or 0.0) >= BY_CONTENT and not is_about(m.column.name))


def _taken(m: Measured, role: Role, share: float | None, others: Sequence[Measured]) -> Taken:
    fit = fit_of_name(m.column.name, role)
    why = ["by its name" if fit else "by what stands in it"]
    lists = [len(value) for value in m.column.values if isinstance(value, list)]
    if lists:
        why.append(f"lists of {fmean(lists):.1f} texts")
    if m.chars:
        why.append(f"{m.chars:,.0f} characters on average")
    if role is Role.QUESTION and m.asks:
        why.append(f"{m.asks:.0%} end with a question mark")
    if role is not Role.QUESTION and share is not None:
        why.append(f"the context has {share:.0%} of the response's words")
    doubts = []
    if not fit:
        doubts.append(f"its name does not say that it is the {role}")
    also = [o.column.name for o in others if fit_of_name(o.column.name, role) > max(0.0, fit - NEAR)]
    if also:
        doubts.append(f"could be {listed(also)} too")
    if m.column.values and m.filled < 0.5:
        doubts.append(f"{1 - m.filled:.0%} of the rows looked at have none")
    if m.passages > 0.5 and role is Role.CONTEXT:
        why.append("passages as JSON")
    elif m.encoded > 0.5:
        doubts.append("it holds JSON, which is read as plain text, brackets and all: of a context, lists of texts are passages")
    if role is Role.RESPONSE and share is not None and share < 0.2:
        doubts.append("hardly a word of it stands in the context")
    return Taken(m.column.name, fit > 0, why, doubts)
