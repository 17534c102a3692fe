"""One judged answer, as it is looked at."""

from dataclasses import dataclass
from math import isnan
from typing import Any

from ragassay.pipeline.detectors.terms import collect_known_terms, find_new_words, stem_content_words

WORD = "word"
"""Kind of what is missing that is but a content word."""


@dataclass(frozen=True)
class Sentence:
    """A sentence of an answer.

    Attributes:
        text: It.
        start: Offset of its first character in the response.
        end: Offset behind its last.
        score: The ensemble's; unbounded, higher = better supported; None where no member has a value.
        flagged: Whether it is not supported; None where it has no score.
        passage: Number of the passage that it was held against, from 0; None where none was found, or looked for.
        piece: The part of that passage that is nearest to it.
        missing: (kind, text) of what it names and neither context nor question has: name, number, …, and then words.
        notes: Why a detector has no value for it.
    """

    text: str
    start: int
    end: int
    score: float | None
    flagged: bool | None
    passage: int | None
    piece: str | None
    missing: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, repr=False)
class Checked:
    """A judged answer. A notebook shows its sentences in colour; `print` does so in a terminal.

    Attributes:
        row: It, with the columns of `scored/`.
        judged_by: Where moments and threshold come from.
        language: ISO 639-1 code by which words are told.
    """

    row: dict[str, Any]
    judged_by: str = ""
    language: str = "en"

    @property
    def verdict(self) -> str | None:
        """`supported` or `hallucinated`; None where it has no score: `status` and `error` say why."""
        found: str | None = self.row["verdict"]
        return found

    @property
    def score(self) -> float | None:
        """Of the response, higher = better supported."""
        found: float | None = self.row["score"]
        return found

    @property
    def probability(self) -> float | None:
        """P(supported); None without a calibration."""
        found: float | None = self.row["probability"]
        return found

    @property
    def threshold(self) -> float | None:
        """tau: the response is supported where its score lies above."""
        found: float | None = self.row["threshold"]
        return found

    @property
    def status(self) -> str:
        """`ok`, or why it has no score (`schemas.columns.Status`)."""
        return str(self.row["status"])

    @property
    def error(self) -> str | None:
        """The same in words."""
        found: str | None = self.row["error"]
        return found

    @property
    def sentences(self) -> list[Sentence]:
        """Its sentences, in order."""
        row = self.row
        spans, evidence = row["sentences"] or [], row["evidence"]
        known = collect_known_terms(row["response"] or "", [row["question"], *(row["context"] or [])], self.language)
        return [
            _sentence(span, evidence[i] if evidence else None, row["context"] or [], known, self.language)
            for i, span in enumerate(spans)
        ]

    def to_dict(self) -> dict[str, Any]:
        """Plain data: the columns of `scored/`, and `judged_by`."""
        return {**self.row, "judged_by": self.judged_by}

    def _repr_html_(self) -> str:
        from ragassay.jobs.api.show import html_of

        return html_of([self])

    def __repr__(self) -> str:
        """The sentences as plain text."""
        from ragassay.jobs.api.show import text_of

        return text_of([self])


def _whole(number: float | None) -> int | None:
    """A whole number; pandas makes floats of those in a column with nulls, and NaN of the nulls."""
    return None if number is None or isnan(number) else int(number)


def _sentence(
    span: dict[str, Any], evidence: dict[str, Any] | None, context: list[str | None], known: set[str] | None, language: str
) -> Sentence:
    missing = [(m["kind"], m["text"]) for m in evidence["missing"] or []] if evidence else []
    named = set(stem_content_words(" ".join(text for _, text in missing), language))
    new = [] if known is None else find_new_words(span["text"], known | named, language)
    at, start, end = (_whole(evidence[name]) if evidence else None for name in ("passage", "start", "end"))
    piece = None if at is None else (context[at] or "")[start:end]
    return Sentence(
        span["text"], span["start"], span["end"], span["score"], span["flagged"], at, piece,
        (*missing, *((WORD, word) for word in new)), tuple(evidence["notes"] or ()) if evidence else (),
    )  # fmt: skip
