"""HTML pages as text: what a reader sees, a line a block, and the data that scripts read."""

import json
from html.parser import HTMLParser

from tests.golden.values import Mask, cut, plain, pretty

INLINE = {"a", "abbr", "b", "code", "em", "i", "mark", "s", "small", "span", "strong", "sub", "sup", "u", "wbr"}
HIDDEN = {"script", "style", "svg"}


class _Text(HTMLParser):
    """Collects the visible text by block, and JSON data of scripts."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.data: list[str] = []
        self._parts: list[str] = []
        self._hidden = 0
        self._is_data = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in HIDDEN:
            self._hidden += 1
        self._is_data = tag == "script" and dict(attrs).get("type") == "application/json"
        if tag not in INLINE:
            self.flush()

    def handle_endtag(self, tag: str) -> None:
        if tag in HIDDEN:
            self._hidden -= 1
        self._is_data = False
        if tag not in INLINE:
            self.flush()

    def handle_data(self, data: str) -> None:
        if self._is_data:
            self.data.append(data)
        elif not self._hidden:
            self._parts.append(data)

    def flush(self) -> None:
        text = " ".join("".join(self._parts).split())
        if text:
            self.lines.append(text)
        self._parts = []


def page_text(html: str, mask: Mask, text_mask: Mask) -> str:
    """Write a page as text.

    Args:
        html: The page.
        mask: Replaces machine-dependent parts of data.
        text_mask: The same for visible text, in which moments and durations are replaced too.

    Returns:
        The visible text, then embedded JSON data.
    """
    reader = _Text()
    reader.feed(html)
    reader.flush()
    lines = [cut(text_mask(line).strip()) for line in reader.lines]
    data = [pretty(plain(json.loads(text), mask)) for text in reader.data]
    return "\n".join([*lines, *data]) + "\n"
