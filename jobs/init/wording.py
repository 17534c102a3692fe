"""Comments, and names of a user's columns and files in them, in messages and in YAML."""

import textwrap
from collections.abc import Iterable

import yaml

WIDTH = 100


def said(name: str) -> str:
    """A name in a comment or a message: in one line, whatever it holds."""
    plain = name.isprintable() and name.strip() == name and "`" not in name
    return f"`{name}`" if plain else ascii(name)


def listed(names: Iterable[str]) -> str:
    """Names in a comment or a message."""
    return ", ".join(map(said, names))


def as_yaml(name: str | None) -> str:
    """A name as a YAML value in one line, quoted where it has to be."""
    style = None if name is None or name.isprintable() else '"'
    text: str = yaml.safe_dump(name, allow_unicode=True, width=float("inf"), default_style=style)
    return text.removesuffix("...\n").strip()


def comment(text: str, indent: str = "") -> list[str]:
    """Lines of a comment in YAML."""
    start = f"{indent}# "
    return textwrap.wrap(text, WIDTH, initial_indent=start, subsequent_indent=start, break_long_words=False)
