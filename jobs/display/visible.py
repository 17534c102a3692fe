"""Log text made fit to show: control characters, and what turns the direction of writing, as visible code points."""

import unicodedata
from collections.abc import Iterator

from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderHook
from rich.segment import Segment
from rich.text import Text

from ragassay.jobs.display.address import without_secrets

TURNS = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""Characters that turn the direction of writing: with them a text can be made to read as what it is not."""


def visible(text: str) -> str:
    """Text with control characters, and those that turn the direction of writing, as visible code points.

    Line breaks and tabs stay. What is left is still hostile as HTML: a template has to escape it.
    """
    return text if text.isascii() and text.isprintable() else "".join(_shown(c) if _odd(c) else c for c in text)


class CleanText(RenderHook):
    """Takes the secrets of URIs from every line that a console prints, before it is folded; what is in tables stays."""

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        """Clean the texts among them."""
        return [_clean(one) if isinstance(one, Text) else one for one in renderables]


class VisibleText(RenderHook):
    """Makes everything that a console prints visible: an escape sequence of a log must not reach a terminal as one."""

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        """Wrap what is to be printed."""
        return [_Visible(renderable) for renderable in renderables]


class _Visible:
    def __init__(self, renderable: ConsoleRenderable) -> None:
        self._renderable = renderable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        for segment in console.render(self._renderable, options):
            # What moves the cursor of a progress bar is the console's own, and marked as such.
            yield segment if segment.control else Segment(visible(segment.text), segment.style)


def _clean(text: Text) -> Text:
    shown = without_secrets(text.plain)
    if shown == text.plain:
        return text
    clean = text.copy()
    clean.plain = shown
    return clean


def _odd(character: str) -> bool:
    return character in TURNS or (unicodedata.category(character) in {"Cc", "Cs"} and character not in "\n\t")


def _shown(character: str) -> str:
    return "\n" if character == "\r" else f"[U+{ord(character):04X}]"
