"""Traces of a RAG system, independent of a tool, and the row that each of them must become."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

DAY = 86_400
START = 1_795_392_000  # 2026-11-23, UTC
CUT = START + DAY
CITIES = ["Ulm", "Köln", "Łódź", "東京", "Bath", "Graz", "Évry", "Zürich"]


@dataclass(frozen=True)
class Doc:
    id: str
    text: str | None
    score: float


@dataclass(frozen=True)
class S:
    """A span. Times are seconds since 1970; `end` is None while it is open; `documents` are those of a retrieval."""

    id: str
    parent: str | None
    kind: str
    name: str
    start: float
    end: float | None
    input: Any = None
    output: Any = None
    documents: tuple[Doc, ...] | None = None
    before: tuple[Doc, ...] | None = None
    failed: bool = False
    model: str | None = None


@dataclass(frozen=True)
class Story:
    """A trace, and the row that it must become."""

    id: str
    kind: str
    spans: tuple[S, ...]
    question: str
    passages: list[Doc]
    response: str | None
    root: str
    generation: str | None
    session: str | None
    user: str | None
    notes: tuple[str, ...] = field(default=())


KINDS = (
    "plain", "plain", "plain", "several", "reranked", "ensemble", "retry", "tool", "rewritten", "failed", "no retrieval", 
    "nothing", "root without response",
)  # fmt: skip


def stories(count: int, seed: int = 7) -> list[Story]:
    """Return `count` traces over two days, some of which start on the first and end on the second."""
    rng = Random(seed)
    result = []
    for i in range(count):
        straddles = i % 25 == 3
        start = CUT - rng.uniform(1, 20) if straddles else START + rng.uniform(60, 2 * DAY - 120)
        if not straddles and CUT - 90 < start < CUT:
            start -= 120
        result.append(_story(i, KINDS[i % len(KINDS)], start, rng, 40.0 if straddles else 1.0))
    return result


def _story(i: int, kind: str, start: float, rng: Random, slow: float) -> Story:
    trace = f"{rng.getrandbits(128):032x}"
    city, hour = CITIES[i % len(CITIES)], 7 + i % 4
    question = f"When does shop {i} in {city} open?"
    answer = f"Shop {i} in {city} opens at {hour} a.m."
    docs = tuple(
        Doc(f"d{i}-{k}", f"Passage {k}: shop {i} in {city} opens at {hour + k % 2} a.m. “Quoted” {k}", round(0.9 - k / 10, 2))
        for k in range(4)
    )
    ids = iter(f"{rng.getrandbits(63) | 1:016x}" for _ in range(20))
    at = _clock(start, slow)
    root = S(next(ids), None, "chain", "rag", start, None, {"question": question}, {"answer": answer})
    spans, passages, generation = _build_spans(kind, root.id, ids, at, question, answer, docs)
    failed = kind == "failed"
    root = replace(root, end=at(1), failed=failed, output=None if failed or kind == "root without response" else root.output)
    notes = {
        "failed": ("no response", "it failed"),
        "no retrieval": ("no retrieval",),
        "nothing": ("its retrieval found nothing",),
    }.get(kind, ())
    has_session = i % 3 != 1  # some applications log neither session nor user
    return Story(
        trace, kind, (root, *spans), question, passages, None if failed else answer, root.id, generation,
        f"s-{i // 5}" if has_session else None, f"u-{i % 17}" if has_session else None, notes,
    )  # fmt: skip


def _clock(start: float, slow: float) -> Any:
    now = start

    def at(step: float) -> float:
        nonlocal now
        now = round(now + step * 0.2 * slow, 3)
        return now

    return at


def _generation(parent: str, ids: Iterator[str], at: Any, question: str, content: str | None, **more: Any) -> S:
    messages = [{"role": "system", "content": "Answer by the passages."}, {"role": "user", "content": question}]
    output = None if content is None else {"role": "assistant", "content": content}
    return S(next(ids), parent, "llm", "ChatOpenAI", at(1), at(2), messages, output, model="gpt-5-mini", **more)


def _build_spans(
    kind: str, root: str, ids: Iterator[str], at: Any, question: str, answer: str, docs: Sequence[Doc]
) -> tuple[list[S], list[Doc], str | None]:
    """Return the spans below the root, the passages that the model received, and the id of the generation that answered."""

    def retriever(returned: Sequence[Doc], parent: str = root, **more: Any) -> S:
        return S(next(ids), parent, "retriever", "VectorStoreRetriever", at(1), at(1), question, None, tuple(returned), **more)

    spans: list[S] = [S(next(ids), root, "embedding", "embed_query", at(1), at(0.1), question, [0.1, 0.2])]
    passages: list[Doc] = list(docs)
    match kind:
        case "no retrieval" | "failed":
            passages = [] if kind == "no retrieval" else passages
            spans += [] if kind == "no retrieval" else [retriever(docs)]
        case "nothing":
            passages = []
            spans.append(retriever([]))
        case "several":
            spans += [retriever(docs[:2]), retriever(docs[1:])]
        case "reranked":
            kept = (docs[2], docs[0])
            spans += [
                retriever(docs),
                S(next(ids), root, "reranker", "Rerank", at(1), at(1), question, None, kept, tuple(docs)),
            ]
            passages = list(kept)
        case "ensemble":
            outer = retriever(docs[:3])
            outer = replace(outer, name="EnsembleRetriever", end=outer.end and outer.end + 1)
            spans += [outer, retriever(docs, outer.id), retriever(docs[2:], outer.id)]
            passages = list(docs[:3])
        case "rewritten":
            retrieval = retriever(docs)
            spans += [retrieval, _generation(retrieval.id, ids, at, question, f"Rewritten: {question}")]
        case _:
            spans.append(retriever(docs))
    if kind == "tool":
        call = _generation(root, ids, at, question, None)
        spans += [call, S(next(ids), root, "tool", "calculator", at(1), at(1), {"x": "1+1"}, "2")]
    if kind in ("retry", "failed"):
        spans.append(_generation(root, ids, at, question, None, failed=True))
    if kind == "failed":
        return spans, passages, None
    last = _generation(root, ids, at, question, answer)
    return [*spans, last], passages, last.id


def split_days(story: Story, *, at_end: bool) -> tuple[list[S], list[S]]:
    """Return the spans of a trace in the exports of two days.

    Args:
        story: The trace.
        at_end: Whether spans are exported only when they have ended; otherwise also when they start.
    """
    second = [span for span in story.spans if (span.end or 0) > CUT]
    if at_end:
        return [span for span in story.spans if span not in second], second
    started = [span if span not in second else replace(span, end=None, output=None, documents=None) for span in story.spans]
    return [span for span in started if span.start <= CUT], second
