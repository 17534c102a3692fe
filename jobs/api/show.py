"""Render checked answers in color: with rich in a terminal, as HTML in a notebook."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

import pyarrow as pa
from rich.console import Console, Group, RenderableType
from rich.text import Text

from ragassay.jobs.api import errors
from ragassay.jobs.api.checked_answer import CheckedAnswer, Sentence
from ragassay.jobs.display.scores import format_both
from ragassay.jobs.display.visible import clip_line, make_visible
from ragassay.pipeline.errors import InputError
from ragassay.schemas.columns import HALLUCINATED, SentenceState

REQUIRED_COLUMNS = ("question", "context", "response", "score", "verdict", "threshold", "sentences", "status")

MAX_PASSAGE_CHARS = 220

INDENT = " " * 10

_STYLE = {None: "dim", "flagged": "red", "doubtful": "yellow", "supported": "green"}
_RGB = {None: "128,128,128", "flagged": "214,39,40", "doubtful": "188,128,0", "supported": "44,160,44"}
_SIGN = {None: " ", "flagged": "✗", "doubtful": "?", "supported": "✓"}
"""By the state of a sentence."""


def render_rich(answer: CheckedAnswer) -> RenderableType:
    """Render an answer for a rich console: its verdict, then its sentences."""
    head = Text(_format_verdict(answer), style=f"bold {_STYLE[_state(answer)]}")
    head.append("  " + _format_scores(answer), style="not bold default")
    parts: list[RenderableType] = [head]
    for sentence in answer.sentences:
        line = Text(f"{_SIGN[sentence.state]} {_format_probability(sentence):>6}  ", style=_STYLE[sentence.state])
        parts.append(line.append(sentence.text))
        parts += [Text(INDENT + text, style="dim") for text in _format_evidence(sentence)]
    parts += [Text(text, style="dim") for text in _format_source(answer)]
    return Group(*parts)


def render_text(answers: Iterable[CheckedAnswer]) -> str:
    """Render answers as plain text."""
    console = Console(width=200, no_color=True, color_system=None, soft_wrap=True)
    with console.capture() as captured:
        for answer in answers:
            console.print(render_rich(answer))
    return make_visible(captured.get()).rstrip("\n")


def render_html(answers: Sequence[CheckedAnswer]) -> str:
    """Render answers as HTML without scripts; markup in their texts is escaped."""
    return "".join(map(_render_answer_html, answers))


@dataclass(frozen=True, repr=False)
class Preview:
    """The first rows of a table with the columns of `scored/`.

    Attributes:
        answers: The rows that are shown.
        total_rows: Number of rows of the table.
    """

    answers: tuple[CheckedAnswer, ...]
    total_rows: int

    def _repr_html_(self) -> str:
        return render_html(self.answers) + (_render_small_html(self._remainder) if self._remainder else "")

    def __repr__(self) -> str:
        """Return the rows as plain text."""
        texts = [render_text([answer]) for answer in self.answers]
        return "\n\n".join([*texts, *([self._remainder] if self._remainder else [])])

    @property
    def _remainder(self) -> str:
        hidden_rows = self.total_rows - len(self.answers)
        return f"and {hidden_rows:,} more rows" if hidden_rows else ""


def preview_rows(table: pa.Table, limit: int) -> Preview:
    """Preview the first rows of a table.

    Args:
        table: Rows with the columns of `scored/`.
        limit: Maximum number of rows to show.

    Raises:
        InputError: A column is missing.
    """
    missing = [name for name in REQUIRED_COLUMNS if name not in table.column_names]
    if missing:
        raise InputError(errors.MISSING_COLUMNS, columns=", ".join(missing))
    defaults = dict.fromkeys(("evidence", "error", "probability"))
    return Preview(tuple(CheckedAnswer({**defaults, **row}) for row in table.slice(0, limit).to_pylist()), table.num_rows)


def _render_answer_html(answer: CheckedAnswer) -> str:
    sentences = "".join(map(_render_sentence_html, answer.sentences))
    source = "".join(map(_render_small_html, _format_source(answer)))
    rgb = _RGB[_state(answer)]
    head = f'<b style="color:rgb({rgb})">{_escape(_format_verdict(answer))}</b> {_escape(_format_scores(answer))}'
    return f'<div style="margin:0 0 1em;max-width:60em">{head}{sentences}{source}</div>'


def _render_sentence_html(sentence: Sentence) -> str:
    rgb = _RGB[sentence.state]
    style = f"margin:.3em 0;padding:.2em .6em;border-left:4px solid rgb({rgb});background:rgba({rgb},.12)"
    evidence = "".join(map(_render_small_html, _format_evidence(sentence)))
    score = f'<span style="opacity:.7">{_format_probability(sentence)}</span>'
    return f'<div style="{style}">{_SIGN[sentence.state]} {score} {_escape(sentence.text)}{evidence}</div>'


def _render_small_html(text: str) -> str:
    return f'<div style="font-size:85%;opacity:.75">{_escape(text)}</div>'


def _escape(text: str) -> str:
    return escape(make_visible(text))


def _state(answer: CheckedAnswer) -> str | None:
    """Return the state of a sentence that has the same color as the verdict."""
    return SentenceState.FLAGGED if answer.verdict == HALLUCINATED else answer.verdict


def _format_verdict(answer: CheckedAnswer) -> str:
    return answer.verdict or f"not judged ({answer.status})"


def _format_source(answer: CheckedAnswer) -> list[str]:
    return [f"judged by {answer.judged_by}"] if answer.judged_by and answer.verdict else []


def _format_scores(answer: CheckedAnswer) -> str:
    if answer.score is None:
        return answer.error or ""
    probability = "" if answer.probability is None else f", probability of being supported {answer.probability:.2f}"
    if answer.threshold is None:
        return f"score {_format_number(answer.score)}{probability}"
    score, threshold = format_both(answer.score, answer.threshold)
    return f"score {score}, threshold {threshold}{probability}"


def _format_evidence(sentence: Sentence) -> list[str]:
    """Format the member that decided, what the context lacks, the best passage, and the notes of detectors."""
    lines = [f"mainly by {sentence.cause}"] if sentence.cause else []
    if sentence.missing:
        lines.append("not in the context: " + ", ".join(f"{text} ({kind})" for kind, text in sentence.missing))
    if sentence.passage is not None:
        lines.append(f"passage {sentence.passage + 1}: {clip_line(sentence.excerpt or '', MAX_PASSAGE_CHARS)}")
    return lines + [f"no value from {note}" for note in sentence.notes if sentence.score is None]


def _format_probability(sentence: Sentence) -> str:
    """Format P(supported); without a calibration, the score."""
    return _format_number(sentence.score if sentence.probability is None else sentence.probability)


def _format_number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"
