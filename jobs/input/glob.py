"""Match paths with globs.

`*` and `?` stay within a folder, `**` crosses folders, `[…]` matches one of some characters, and `[!…]` one other character.
"""

import re
from collections.abc import Callable

from ragassay.jobs.input import errors
from ragassay.pipeline.errors import InputError

WILDCARD = re.compile(r"[*?\[]")
_SPECIAL = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
_CHARACTER_CLASS = re.compile(r"\[(!?)(\]?[^\]/]*)\]")


def split_glob(path: str, exists: Callable[[str], bool]) -> tuple[str, str]:
    """Split a path into the folder in which a glob begins and the glob below it.

    An existing path is not a glob, even with wildcard characters; its second part is empty.

    Args:
        path: A path or URI.
        exists: Returns whether a file or folder exists.
    """
    parts = path.split("/")
    for position, part in enumerate(parts):
        if WILDCARD.search(part) and not exists("/".join(parts[: position + 1])):
            return "/".join(parts[:position]) or ("/" if path.startswith("/") else "."), "/".join(parts[position:])
    return path, ""


def compile_glob(root: str, rest: str) -> re.Pattern[str]:
    """Compile a glob below a folder into a pattern of full paths.

    Args:
        root: The folder, taken literally.
        rest: The glob below it.

    Raises:
        InputError: The glob contains an invalid `[…]`.
    """
    pieces = re.split(r"(\*\*/|\*\*|\*|\?|\[!?\]?[^\]/]*\])", rest)
    try:
        return re.compile(re.escape(root.rstrip("/")) + "/" + "".join(map(_translate_piece, pieces)))
    except re.error as error:
        raise InputError(errors.GLOB_SYNTAX, glob=rest, reason=error) from error


def _translate_piece(piece: str) -> str:
    character_class = _CHARACTER_CLASS.fullmatch(piece)
    if character_class is None:
        return _SPECIAL.get(piece, re.escape(piece))
    inside = re.sub(r"([\\\[\]^&~|])", r"\\\1", character_class[2])
    return f"(?!/)[{'^' if character_class[1] else ''}{inside}]"
