"""Make log text safe to show: control characters and marks of the writing direction become visible code points."""

import unicodedata
from collections.abc import Iterator

from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderHook
from rich.segment import Segment
from rich.text import Text

from ragassay.jobs.display.address import hide_secrets

DIRECTION_MARKS = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""Characters that change the direction of writing. They can make a text read as something else."""


def make_visible(text: str) -> str:
    """Replace control characters and direction marks with visible code points.

    Line breaks and tabs stay. The result is not safe as HTML: a template must escape it.
    """
    return text if text.isascii() and text.isprintable() else "".join(_code_point(c) if _is_unsafe(c) else c for c in text)


class CleanText(RenderHook):
    """Hook that removes the secrets of URIs from every line that a console prints, before wrapping.

    It does not change tables.
    """

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        """Clean the texts."""
        return [_clean(item) if isinstance(item, Text) else item for item in renderables]


class VisibleText(RenderHook):
    """Hook that makes control characters visible in all output: a terminal must not execute escape sequences of a log."""

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        """Wrap the renderables."""
        return [_Visible(renderable) for renderable in renderables]


class _Visible:
    def __init__(self, renderable: ConsoleRenderable) -> None:
        self._renderable = renderable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        for segment in console.render(self._renderable, options):
            # Control segments come from the console itself, such as cursor moves of a progress bar.
            yield segment if segment.control else Segment(make_visible(segment.text), segment.style)


def _clean(text: Text) -> Text:
    plain = hide_secrets(text.plain)
    if plain == text.plain:
        return text
    clean = text.copy()
    clean.plain = plain
    return clean


def _is_unsafe(character: str) -> bool:
    return character in DIRECTION_MARKS or (unicodedata.category(character) in {"Cc", "Cs"} and character not in "\n\t")


def _code_point(character: str) -> str:
    return "\n" if character == "\r" else f"[U+{ord(character):04X}]"


def clip_line(text: str, size: int) -> str:
    """Return a text in one line of at most `size` characters; … marks what is cut off."""
    line = " ".join(text.split())
    return line if len(line) <= size else line[: size - 1] + "…"
