"""Judged answers in colour: on a terminal by rich, in a notebook as HTML."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

import pyarrow as pa
from rich.console import Console, Group, RenderableType
from rich.text import Text

from ragassay.jobs.api import errors
from ragassay.jobs.api.checked import Checked, Sentence
from ragassay.jobs.display.visible import clip_line, make_visible
from ragassay.pipeline.errors import InputError
from ragassay.schemas.columns import SUPPORTED

SHOWN = ("question", "context", "response", "score", "verdict", "threshold", "sentences", "status")
"""Columns without which nothing can be shown."""

LONGEST = 220
"""Characters of a passage that are shown."""

INDENT = " " * 10

_STYLE = {None: "dim", True: "red", False: "green"}
_COLOUR = {None: "128,128,128", True: "214,39,40", False: "44,160,44"}
_SIGN = {None: "?", True: "✗", False: "✓"}


def rich_of(checked: Checked) -> RenderableType:
    """An answer for a rich console: its verdict, then its sentences."""
    head = Text(_verdict(checked), style=f"bold {_STYLE[_bad(checked)]}")
    head.append("  " + _numbers(checked), style="not bold default")
    parts: list[RenderableType] = [head]
    for sentence in checked.sentences:
        line = Text(f"{_SIGN[sentence.flagged]} {_number(sentence.score):>6}  ", style=_STYLE[sentence.flagged])
        parts.append(line.append(sentence.text))
        parts += [Text(INDENT + text, style="dim") for text in _details(sentence)]
    parts += [Text(text, style="dim") for text in _by(checked)]
    return Group(*parts)


def text_of(answers: Iterable[Checked]) -> str:
    """Answers as plain text."""
    console = Console(width=200, no_color=True, color_system=None, soft_wrap=True)
    with console.capture() as said:
        for checked in answers:
            console.print(rich_of(checked))
    return make_visible(said.get()).rstrip("\n")


def html_of(answers: Sequence[Checked]) -> str:
    """Answers as HTML without scripts; whatever they hold is text."""
    return "".join(map(_html, answers))


@dataclass(frozen=True, repr=False)
class Shown:
    """Rows of `scored/` to look at.

    Attributes:
        answers: Those that are shown.
        rows: How many there are.
    """

    answers: tuple[Checked, ...]
    rows: int

    def _repr_html_(self) -> str:
        return html_of(self.answers) + (_small(self._more) if self._more else "")

    def __repr__(self) -> str:
        """The same as plain text."""
        texts = [text_of([answer]) for answer in self.answers]
        return "\n\n".join([*texts, *([self._more] if self._more else [])])

    @property
    def _more(self) -> str:
        left = self.rows - len(self.answers)
        return f"and {left:,} more rows" if left else ""


def shown_rows(table: pa.Table, most: int) -> Shown:
    """The first rows of a table.

    Args:
        table: Rows with the columns of `scored/`.
        most: How many, at most.

    Raises:
        InputError: It lacks one.
    """
    missing = [name for name in SHOWN if name not in table.column_names]
    if missing:
        raise InputError(errors.MISSING_COLUMNS, columns=", ".join(missing))
    answers = tuple(
        Checked({**dict.fromkeys(("evidence", "error", "probability")), **row}) for row in table.slice(0, most).to_pylist()
    )
    return Shown(answers, table.num_rows)


def _html(checked: Checked) -> str:
    sentences = "".join(_html_sentence(sentence) for sentence in checked.sentences)
    by = "".join(map(_small, _by(checked)))
    colour = _COLOUR[_bad(checked)]
    head = f'<b style="color:rgb({colour})">{_safe(_verdict(checked))}</b> {_safe(_numbers(checked))}'
    return f'<div style="margin:0 0 1em;max-width:60em">{head}{sentences}{by}</div>'


def _html_sentence(sentence: Sentence) -> str:
    colour = _COLOUR[sentence.flagged]
    style = f"margin:.3em 0;padding:.2em .6em;border-left:4px solid rgb({colour});background:rgba({colour},.12)"
    details = "".join(map(_small, _details(sentence)))
    score = f'<span style="opacity:.7">{_number(sentence.score)}</span>'
    return f'<div style="{style}">{_SIGN[sentence.flagged]} {score} {_safe(sentence.text)}{details}</div>'


def _small(text: str) -> str:
    return f'<div style="font-size:85%;opacity:.75">{_safe(text)}</div>'


def _safe(text: str) -> str:
    return escape(make_visible(text))


def _bad(checked: Checked) -> bool | None:
    return None if checked.verdict is None else checked.verdict != SUPPORTED


def _verdict(checked: Checked) -> str:
    return checked.verdict or f"not judged ({checked.status})"


def _by(checked: Checked) -> list[str]:
    return [f"judged by {checked.judged_by}"] if checked.judged_by and checked.verdict else []


def _numbers(checked: Checked) -> str:
    if checked.score is None:
        return checked.error or ""
    probability = "" if checked.probability is None else f", probability of being supported {checked.probability:.2f}"
    return f"score {_number(checked.score)}, threshold {_number(checked.threshold)}{probability}"


def _details(sentence: Sentence) -> list[str]:
    """What is missing, and the passage that the sentence was held against."""
    found = []
    if sentence.missing:
        found.append("not in the context: " + ", ".join(f"{text} ({kind})" for kind, text in sentence.missing))
    if sentence.passage is not None:
        found.append(f"passage {sentence.passage + 1}: {clip_line(sentence.piece or '', LONGEST)}")
    return found + [f"no value from {note}" for note in sentence.notes if sentence.score is None]


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"
