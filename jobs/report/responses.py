"""The responses that the page shows: their texts, cut at their sentences, and why each sentence was flagged."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from ragassay.jobs.output.partitions import hive_path
from ragassay.jobs.output.scored_dataset import Position, open_scored
from ragassay.jobs.report.explained import Explanation, Explanations, explanations_of
from ragassay.jobs.report.marks import Piece, marked, sentence_pieces
from ragassay.jobs.report.scales import MemberScore, Scales, member_scores
from ragassay.jobs.storage.folder import Folder
from ragassay.pipeline.calibration.baselines import nearest, words
from ragassay.pipeline.detectors.terms import known_terms
from ragassay.pipeline.reasoning.categories import OF_DETECTORS
from ragassay.schemas.columns import HALLUCINATED

COLUMNS = (
    "row_key", "row_id", "question", "context", "response", "score", "probability", "verdict", "decided_by", "judge_score",
    "sentences", "members", "evidence", "run_id",
)  # fmt: skip
MOST_SENTENCES = 100
"""Sentences shown of a response: those with the lowest scores."""


@dataclass(frozen=True)
class Sentence:
    """A sentence of a response that is shown.

    Attributes:
        text: Its text.
        score: Ensemble score; null where the row has none.
        flagged: Whether it is flagged.
        passage: Number of its best passage, from 0, by a detector, or else the one that holds most of its words; null where
            there is none.
        missing: What it names and the context does not, by a detector: (category of an explanation, kind and text); the
            category is empty where none is of that kind.
        explanation: Why it is flagged, by a model; null where it is not, or nothing is to be shown.
        number: Its place in the response, from 0.
        told: Whether the page tells why: it is flagged, or the worst of a hallucinated response without a flagged one.
        pieces: Its text, and what is marked in it.
        members: What each member says of it.
        best: [start, end) of the passage's best piece, by a detector; null where there is none.
    """

    text: str
    score: float | None
    flagged: bool
    passage: int | None
    missing: tuple[tuple[str, str], ...] = ()
    explanation: Explanation | None = None
    number: int = 0
    told: bool = False
    pieces: tuple[Piece, ...] = ()
    members: tuple[MemberScore, ...] = ()
    best: tuple[int, int] | None = None


@dataclass(frozen=True)
class Passage:
    """A passage of a context that is shown.

    Attributes:
        number: Its place, from 0.
        pieces: Its text, and what is marked in it; none of an empty passage.
        best: Whether it is the best of a sentence of which the page tells why.
    """

    number: int
    pieces: list[Piece]
    best: bool


@dataclass(frozen=True)
class Response:
    """A response that is shown.

    Attributes:
        row_id: The user's id.
        partition: Its hive path.
        score: Response score.
        probability: P(supported) by a calibration; null without one.
        verdict: supported or hallucinated.
        decided_by: Whose verdict it is.
        judge_score: The judge's number, where it decided; else null.
        label: What a label column says of it, as text; empty where nothing.
        question: The question; null where the logs have none.
        context: Its passages.
        parts: The response from its start to its end: text between sentences (plain strings), and sentences.
    """

    row_id: str
    partition: str
    score: float
    probability: float | None
    verdict: str
    decided_by: str | None
    judge_score: float | None
    label: str
    question: str | None
    context: list[Passage]
    parts: list[str | Sentence]

    @property
    def sentences(self) -> list[Sentence]:
        """The sentences that are shown."""
        return [part for part in self.parts if isinstance(part, Sentence)]

    @property
    def explained(self) -> bool:
        """Whether an explanation is shown of a sentence of it."""
        return any(sentence.explanation is not None for sentence in self.sentences)


def responses(
    output: Folder, positions: Sequence[Position], label: str | None, explained: Explanations | None, scales: Scales
) -> list[Response]:
    """Read the rows that are shown.

    Args:
        output: The output folder.
        positions: Where each stands.
        label: Column to show beside them.
        explained: What there is of explanations; None for none.
        scales: By which the members' values are read.
    """
    read = dict(open_scored(output).rows_at(positions, [*COLUMNS, *([label] if label else [])]))
    rows = [(position.file.partition, read[number]) for number, position in enumerate(positions)]
    explanations: dict[int, dict[int, Explanation]] = {}
    if explained:
        explanations = explanations_of(output, explained, [(partition, row["row_key"]) for partition, row in rows])
    return [
        _response(row, hive_path(partition), label, explanations.get(row["row_key"], {}), scales) for partition, row in rows
    ]


def _response(
    row: Mapping[str, Any], partition: str, label: str | None, explanations: Mapping[int, Explanation], scales: Scales
) -> Response:
    context = [passage or "" for passage in row["context"]]
    said = row[label] if label else None
    parts = _parts(row, context, explanations, scales)
    told = [part for part in parts if isinstance(part, Sentence) and part.told]
    quotes = [sentence.explanation for sentence in told if sentence.explanation]
    best = [(sentence.passage, *sentence.best) for sentence in told if sentence.best and sentence.passage is not None]
    near = {sentence.passage for sentence in told}
    return Response(
        row_id=row["row_id"],
        partition=partition,
        score=row["score"],
        probability=row["probability"],
        verdict=row["verdict"],
        decided_by=row["decided_by"],
        judge_score=row["judge_score"],
        label="" if said is None else str(said),
        question=row["question"],
        context=[Passage(i, pieces, i in near) for i, pieces in enumerate(marked(context, quotes, best))],
        parts=parts,
    )


def _parts(
    row: Mapping[str, Any], context: Sequence[str], explanations: Mapping[int, Explanation], scales: Scales
) -> list[str | Sentence]:
    """The response, cut at its sentences, nothing left out; but of a very long one its worst sentences."""
    response, sentences = row["response"], row["sentences"]
    worst = sorted(range(len(sentences)), key=lambda i: (_badness(sentences[i]), i))
    shown = set(worst[:MOST_SENTENCES])
    told = {i for i in shown if sentences[i]["flagged"]}
    if not told and row["verdict"] == HALLUCINATED:
        told = set(worst[:1])  # a judge may have decided so, or a whole that is worse than its parts
    known = known_terms(response, [*context, row["question"]], scales.language) if told else None
    passages = [set(words(passage)) for passage in context]
    parts: list[str | Sentence] = []
    end = 0
    for i, sentence in enumerate(sentences):
        if i not in shown:
            continue
        if sentence["start"] > end:
            parts.append(_between(response[end : sentence["start"]], whole=len(shown) == len(sentences)))
        # A sentence that was explained under another threshold may not be flagged now.
        explanation = explanations.get(i) if sentence["flagged"] else None
        stems = known if i in told else None
        parts.append(_sentence(row, i, i in told, explanation, passages, stems, scales))
        end = sentence["end"]
    if end < len(response):
        parts.append(_between(response[end:], whole=len(shown) == len(sentences)))
    return parts


def _sentence(
    row: Mapping[str, Any],
    number: int,
    told: bool,
    explanation: Explanation | None,
    passages: Sequence[Set[str]],
    known: Set[str] | None,
    scales: Scales,
) -> Sentence:
    sentence = row["sentences"][number]
    at = row["evidence"][number] if row["evidence"] else {"passage": None, "start": None, "end": None, "missing": []}
    named = [m["text"] for m in at["missing"]] if told else []
    return Sentence(
        text=sentence["text"],
        score=sentence["score"],
        flagged=bool(sentence["flagged"]),
        passage=at["passage"] if at["passage"] is not None else nearest(sentence["text"], passages),
        missing=tuple((OF_DETECTORS.get(m["kind"], ""), f"{m['kind']} {m['text']}") for m in at["missing"]),
        explanation=explanation,
        number=number,
        told=told,
        pieces=tuple(sentence_pieces(sentence["text"], named, known, scales.language)),
        members=member_scores(row, number, scales),
        best=None if at["start"] is None or at["end"] is None else (at["start"], at["end"]),
    )


def _badness(sentence: Mapping[str, Any]) -> float:
    """Lowest first; those without a score last."""
    return float("inf") if sentence["score"] is None else sentence["score"]


def _between(text: str, *, whole: bool) -> str:
    """Text between two shown sentences; of a response that is too long its length."""
    return text if whole or not text.strip() else f" [… {len(text):,} characters whose sentences score higher] "
