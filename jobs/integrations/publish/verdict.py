"""What is sent of a row: its verdict, its score, and what the context lacks, in words."""

import hashlib
import json
import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ragassay.schemas.columns import HALLUCINATED

LONGEST_SENTENCE = 500
MOST_SENTENCES = 20
"""Of the flagged sentences of a response, so many are quoted, and so much of each; the others are counted."""

NO_TRACE = "no trace id"
SUPPORTED_LEFT = "not flagged"
REPEATED = "same row_id as an earlier row of its partition"

READ = [
    "row_id", "score", "probability", "verdict", "threshold", "sentences", "flagged_sentences", "evidence", "status", "run_id",
]  # fmt: skip


@dataclass(frozen=True)
class Verdict:
    """A row's verdict, as every tool is told of it.

    Attributes:
        row_id: The row's id.
        trace_id: The trace it came from.
        span_id: The span in it; None for the trace as a whole.
        label: supported or hallucinated.
        score: The response's score; None where it is infinite.
        probability: P(supported) by a calibration; None without one.
        flagged: How many of its sentences are flagged.
        explanation: Why, in words.
        facts: What else is told where a tool has room: threshold, sentences, run.
    """

    row_id: str
    trace_id: str
    span_id: str | None
    label: str
    score: float | None
    probability: float | None
    flagged: int
    explanation: str
    facts: dict[str, Any]

    def id_of(self, target: str, name: str) -> str:
        """An id that is the same whenever and by whichever run this row is sent to a tool under this name: 32 hex digits."""
        key = json.dumps([target, name, self.row_id, self.trace_id, self.span_id])
        return hashlib.blake2b(key.encode(), digest_size=16).hexdigest()


@dataclass(frozen=True)
class Wanted:
    """What is sent of which rows.

    Attributes:
        trace_column: Column of the trace's id.
        span_column: Column of the span's id; None sends to traces.
        only_flagged: Leave out the responses that are supported.
        with_text: Quote the flagged sentences and what is missing, where OUTPUT holds texts.
        with_sentences: Tell of every sentence where a tool has room.
    """

    trace_column: str
    span_column: str | None = None
    only_flagged: bool = False
    with_text: bool = True
    with_sentences: bool = False

    @property
    def columns(self) -> list[str]:
        """The columns to read."""
        return list(dict.fromkeys([*READ, self.trace_column, *([self.span_column] if self.span_column else [])]))

    def in_words(self) -> str:
        """What is wanted, as it is written down: where it changes, all is sent anew."""
        parts = [f"trace: {self.trace_column}", f"span: {self.span_column or 'none'}"]
        parts += ["flagged only"] * self.only_flagged + ["no text"] * (not self.with_text)
        return ", ".join([*parts, *["sentences"] * self.with_sentences])


@dataclass
class Chunk:
    """Rows that are sent together.

    Attributes:
        end: How many rows of the partition they end at.
        verdicts: What is sent of them.
        left_out: Rows of them that are not sent, by reason.
    """

    end: int
    verdicts: list[Verdict] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)


def chunks(
    rows: Iterator[Mapping[str, Any]],
    wanted: Wanted,
    size: int,
    *,
    start: int = 0,
    repeated: Collection[str] = (),
    among: Collection[str] | None = None,
) -> Iterator[Chunk]:
    """The rows of a partition behind the first `start`, in chunks of so many verdicts.

    Args:
        rows: All rows of the partition, in the order of `scored/`.
        wanted: What of which.
        size: Verdicts a chunk.
        start: Rows to pass over.
        repeated: Ids that several rows have: the first of these is sent.
        among: If given, only rows with these ids are looked at.
    """
    met: set[str] = set()
    chunk, end = Chunk(start), 0
    for end, row in enumerate(rows, 1):
        again = row["row_id"] in met
        if row["row_id"] in repeated:
            met.add(row["row_id"])
        if end <= start or (among is not None and row["row_id"] not in among):
            continue
        why = REPEATED if again else left_out(row, wanted)
        if why:
            chunk.left_out[why] += 1
        else:
            chunk.verdicts.append(verdict_of(row, wanted))
        chunk.end = end
        if len(chunk.verdicts) == size:
            yield chunk
            chunk = Chunk(end)
    chunk.end = max(end, start)
    yield chunk


def left_out(row: Mapping[str, Any], wanted: Wanted) -> str | None:
    """Why a row is not sent; None if it is."""
    if row["verdict"] is None:
        return str(row["status"])
    if wanted.only_flagged and row["verdict"] != HALLUCINATED and not row["flagged_sentences"]:
        return SUPPORTED_LEFT
    return None if _id(row[wanted.trace_column]) else NO_TRACE


def verdict_of(row: Mapping[str, Any], wanted: Wanted) -> Verdict:
    """What is sent of a row of `scored/` that has a verdict and a trace."""
    sentences = list(row["sentences"] or [])
    with_text = wanted.with_text and all(sentence["text"] is not None for sentence in sentences)  # drop_text leaves none
    facts: dict[str, Any] = {"row_id": row["row_id"], "run_id": row["run_id"], "flagged_sentences": row["flagged_sentences"]}
    facts |= {"sentences": len(sentences), "threshold": _finite(row["threshold"])}
    if wanted.with_sentences:
        kept = ("start", "end", "score", "flagged", *(("text",) if with_text else ()))
        facts["each_sentence"] = [{name: _finite(s[name]) if name == "score" else s[name] for name in kept} for s in sentences]
    return Verdict(
        row_id=row["row_id"],
        trace_id=_id(row[wanted.trace_column]) or "",
        span_id=_id(row[wanted.span_column]) if wanted.span_column else None,
        label=row["verdict"],
        score=_finite(row["score"]),
        probability=_finite(row["probability"]),
        flagged=row["flagged_sentences"] or 0,
        explanation=explanation(sentences, row["evidence"], with_text=with_text),
        facts={name: value for name, value in facts.items() if value is not None},
    )


def explanation(
    sentences: Sequence[Mapping[str, Any]], evidence: Sequence[Mapping[str, Any] | None] | None, *, with_text: bool
) -> str:
    """Which sentences are not supported, and what of them the context lacks.

    Args:
        sentences: Of a row of `scored/`.
        evidence: What detectors found, a sentence; None where there are none.
        with_text: Quote them, and what is missing; else their places in the response.
    """
    flagged = [i for i, sentence in enumerate(sentences) if sentence["flagged"]]
    of = f"{len(sentences):,} {'sentence' if len(sentences) == 1 else 'sentences'}"
    if not flagged:
        return f"None of {of} is flagged."
    lines = [f"{len(flagged):,} of {of} not supported by the context:"]
    for i in flagged[:MOST_SENTENCES]:
        sentence, found = sentences[i], (evidence[i] if evidence and i < len(evidence) else None)
        if not with_text:
            lines.append(f"- characters {sentence['start']} to {sentence['end']}")
            continue
        text = " ".join((sentence["text"] or "").split())
        text = text if len(text) <= LONGEST_SENTENCE else text[: LONGEST_SENTENCE - 1] + "…"
        missing = [f"{one['kind']} {one['text']}" for one in (found or {}).get("missing") or []]
        lines.append(f"- {text}" + (f" (not in the context: {', '.join(missing)})" if missing else ""))
    if len(flagged) > MOST_SENTENCES:
        lines.append(f"- and {len(flagged) - MOST_SENTENCES:,} more")
    return "\n".join(lines)


def _id(value: Any) -> str | None:
    """An id as text; bytes, as OpenTelemetry has them, as hex digits."""
    text = value.hex() if isinstance(value, bytes) else "" if value is None else str(value)
    return text.strip() or None


def _finite(number: float | None) -> float | None:
    """JSON has no infinity."""
    return number if number is not None and math.isfinite(number) else None
