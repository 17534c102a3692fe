"""Globs over paths: `*` and `?` stay inside a folder, `**` crosses folders, `[…]` is one of some characters, `[!…]` none."""

import re
from collections.abc import Callable

from ragassay.jobs.input import errors
from ragassay.pipeline.errors import InputError

WILDCARD = re.compile(r"[*?\[]")
_SPECIAL = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
_CLASS = re.compile(r"\[(!?)(\]?[^\]/]*)\]")


def split_glob(path: str, exists: Callable[[str], bool]) -> tuple[str, str]:
    """The folder that a glob begins in, and the rest of it; a path that exists as it stands is no glob, and has no rest.

    Args:
        path: A path or URI.
        exists: Whether there is a file or folder of that name.
    """
    parts = path.split("/")
    for place, part in enumerate(parts):
        if WILDCARD.search(part) and not exists("/".join(parts[: place + 1])):
            return "/".join(parts[:place]) or ("/" if path.startswith("/") else "."), "/".join(parts[place:])
    return path, ""


def glob_pattern(root: str, rest: str) -> re.Pattern[str]:
    """Pattern of the paths below a folder that a glob means.

    Args:
        root: The folder, literally.
        rest: The glob below it.

    Raises:
        InputError: A `[…]` can't be read.
    """
    pieces = re.split(r"(\*\*/|\*\*|\*|\?|\[!?\]?[^\]/]*\])", rest)
    try:
        return re.compile(re.escape(root.rstrip("/")) + "/" + "".join(map(_piece, pieces)))
    except re.error as error:
        raise InputError(errors.GLOB_SYNTAX, glob=rest, reason=error) from error


def _piece(piece: str) -> str:
    some = _CLASS.fullmatch(piece)
    if some is None:
        return _SPECIAL.get(piece, re.escape(piece))
    inside = re.sub(r"([\\\[\]^&~|])", r"\\\1", some[2])
    return f"(?!/)[{'^' if some[1] else ''}{inside}]"
