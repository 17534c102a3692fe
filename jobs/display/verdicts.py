"""Render verdicts in color: with rich in a terminal, as HTML in a notebook."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import overload

from rich.console import Console, Group, RenderableType
from rich.text import Text

from ragassay.jobs.display.scores import format_both
from ragassay.jobs.display.verdict import Sentence, Verdict
from ragassay.jobs.display.visible import clip_line, make_visible
from ragassay.schemas.columns import HALLUCINATED, SentenceState

MAX_PASSAGE_CHARS = 220

INDENT = " " * 10

_STYLE = {None: "dim", "flagged": "red", "doubtful": "yellow", "supported": "green"}
_RGB = {None: "128,128,128", "flagged": "214,39,40", "doubtful": "188,128,0", "supported": "44,160,44"}
_SIGN = {None: " ", "flagged": "✗", "doubtful": "?", "supported": "✓"}
"""By the state of a sentence."""


def render_rich(answer: Verdict) -> RenderableType:
    """Render an answer for a rich console: its verdict, then its sentences."""
    head = Text(_format_verdict(answer), style=f"bold {_STYLE[_state(answer)]}")
    head.append("  " + _format_scores(answer), style="not bold default")
    parts: list[RenderableType] = [head]
    for sentence in answer.sentences:
        line = Text(f"{_SIGN[sentence.state]} {_format_probability(sentence):>6}  ", style=_STYLE[sentence.state])
        parts.append(line.append(_format_text(sentence)))
        parts += [Text(INDENT + text, style="dim") for text in _format_evidence(sentence)]
    parts += [Text(text, style="dim") for text in _format_source(answer)]
    return Group(*parts)


def render_text(answers: Iterable[Verdict]) -> str:
    """Render answers as plain text."""
    console = Console(width=200, force_jupyter=False, no_color=True, color_system=None, soft_wrap=True)
    with console.capture() as captured:
        for answer in answers:
            console.print(render_rich(answer))
    return make_visible(captured.get()).rstrip("\n")


def render_html(answer: Verdict) -> str:
    """Render an answer as HTML without scripts; markup in its texts is escaped."""
    sentences = "".join(map(_render_sentence_html, answer.sentences))
    source = "".join(map(_render_small_html, _format_source(answer)))
    rgb = _RGB[_state(answer)]
    head = f'<b style="color:rgb({rgb})">{_escape(_format_verdict(answer))}</b> {_escape(_format_scores(answer))}'
    return f'<div style="margin:0 0 1em;max-width:60em">{head}{sentences}{source}</div>'


@dataclass(frozen=True, repr=False)
class Verdicts(Sequence[Verdict]):
    """Verdicts of some rows. Notebooks show their sentences in color; `print` shows them as plain text.

    Attributes:
        shown: The verdicts.
        total_rows: Number of rows that they were selected from.
        unit: What these rows are, in the plural.
    """

    shown: tuple[Verdict, ...]
    total_rows: int
    unit: str = "rows"

    def __len__(self) -> int:
        """Return the number of verdicts."""
        return len(self.shown)

    @overload
    def __getitem__(self, index: int) -> Verdict: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Verdict, ...]: ...
    def __getitem__(self, index: int | slice) -> Verdict | tuple[Verdict, ...]:
        """Return a verdict by its position, or several."""
        return self.shown[index]

    def _repr_html_(self) -> str:
        parts = [_render_small_html(_format_title(verdict)) + render_html(verdict) for verdict in self.shown]
        return "".join(parts) + (_render_small_html(self._remainder) if self._remainder else "")

    def __repr__(self) -> str:
        """Return the rows as plain text."""
        texts = [f"{make_visible(_format_title(verdict))}\n{render_text([verdict])}" for verdict in self.shown]
        return "\n\n".join([*texts, *([self._remainder] if self._remainder else [])])

    @property
    def _remainder(self) -> str:
        hidden_rows = self.total_rows - len(self.shown)
        return f"and {hidden_rows:,} more {self.unit}" if hidden_rows else ("" if self.shown else f"no {self.unit}")


def _render_sentence_html(sentence: Sentence) -> str:
    rgb = _RGB[sentence.state]
    style = f"margin:.3em 0;padding:.2em .6em;border-left:4px solid rgb({rgb});background:rgba({rgb},.12)"
    evidence = "".join(map(_render_small_html, _format_evidence(sentence)))
    score = f'<span style="opacity:.7">{_format_probability(sentence)}</span>'
    return f'<div style="{style}">{_SIGN[sentence.state]} {score} {_escape(_format_text(sentence))}{evidence}</div>'


def _render_small_html(text: str) -> str:
    return f'<div style="font-size:85%;opacity:.75">{_escape(text)}</div>'


def _escape(text: str) -> str:
    return escape(make_visible(text))


def _state(answer: Verdict) -> str | None:
    """Return the state of a sentence that has the same color as the verdict."""
    return SentenceState.FLAGGED if answer.verdict == HALLUCINATED else answer.verdict


def _format_verdict(answer: Verdict) -> str:
    return answer.verdict or f"not judged ({answer.status})"


def _format_title(verdict: Verdict) -> str:
    """Format the id and the question of a row."""
    return clip_line(": ".join(filter(None, (verdict.row.get("row_id"), verdict.row["question"]))), MAX_PASSAGE_CHARS)


def _format_text(sentence: Sentence) -> str:
    return sentence.text or f"(characters {sentence.start} to {sentence.end})"


def _format_source(answer: Verdict) -> list[str]:
    return [f"judged by {answer.judged_by}"] if answer.judged_by and answer.verdict else []


def _format_scores(answer: Verdict) -> str:
    if answer.score is None:
        return answer.error or ""
    probability = "" if answer.probability is None else f"P(supported) {answer.probability:.2f}, "
    if answer.threshold is None:
        return f"{probability}score {_format_number(answer.score)}"
    score, threshold = format_both(answer.score, answer.threshold)
    return f"{probability}score {score}, threshold {threshold}"


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
