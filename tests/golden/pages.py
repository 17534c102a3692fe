"""Render HTML pages as text: visible text with one line per block or table row, and the data that scripts read."""

import json
import re
from html.parser import HTMLParser

from tests.golden.values import Mask, to_plain, to_pretty

INLINE = {"a", "abbr", "b", "code", "em", "i", "mark", "s", "small", "span", "strong", "sub", "sup", "u", "wbr"}
HIDDEN = {"script", "style", "svg"}
CELLS = {"td", "th"}
SPACY = re.compile(r'(?<="spacy": ")[^"]+')


class _Text(HTMLParser):
    """Collector of the visible text by block, and of the JSON data of scripts."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.data: list[str] = []
        self._parts: list[str] = []
        self._cells: list[str] | None = None
        self._header: list[str] = []
        self._hidden = 0
        self._is_data = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in HIDDEN:
            self._hidden += 1
        self._is_data = tag == "script" and dict(attrs).get("type") == "application/json"
        if tag not in INLINE:
            self.flush()
        if tag == "tr":
            self._cells = []
        elif tag in CELLS and self._cells is not None:
            self._cells.append("")

    def handle_endtag(self, tag: str) -> None:
        if tag in HIDDEN:
            self._hidden -= 1
        self._is_data = False
        if tag not in INLINE:
            self.flush()
        if tag == "tr" and self._cells is not None:
            self._end_row(self._cells)

    def handle_data(self, data: str) -> None:
        if self._is_data:
            self.data.append(data)
        elif not self._hidden:
            self._parts.append(data)

    def flush(self) -> None:
        text = " ".join("".join(self._parts).split())
        self._parts = []
        if text and self._cells:
            self._cells[-1] = f"{self._cells[-1]} {text}".strip()
        elif text:
            self.lines.append(text)

    def _end_row(self, cells: list[str]) -> None:
        """Add a table row as a line, with durations masked by the heading of their column."""
        self._cells = None
        if not any(char.isdigit() for char in "".join(cells)):
            self._header = cells
        heads = [*self._header, *[""] * len(cells)]
        for n, cell in enumerate(cells):
            if "seconds" in heads[n] and cell[:1].isdigit():
                cells[n] = "<n>"
        self.lines.append(" | ".join(cells))


def render_page(html: str, mask: Mask, text_mask: Mask) -> str:
    """Render a page as text.

    Args:
        html: The page.
        mask: Replaces machine-dependent parts of data.
        text_mask: The same for visible text; also replaces times and durations.

    Returns:
        The visible text, then the embedded JSON data.
    """
    reader = _Text()
    reader.feed(html)
    reader.flush()
    lines = [SPACY.sub("<spacy>", text_mask(line).strip()) for line in reader.lines]
    data = [to_pretty(to_plain(json.loads(text), mask)) for text in reader.data]
    return "\n".join([*lines, *data]) + "\n"
