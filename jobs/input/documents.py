"""Retrieved documents as logs write them: what their fields are called, and how they are told in JSON."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, isnan
from typing import Any

TEXT_NAMES = (
    "text", "pagecontent", "content", "document.content", "document.pagecontent", "document.text", "node.text", "payload.text",
    "kwargs.pagecontent", "passage", "chunk", "snippet", "body", "document",
)  # fmt: skip
"""Fields that hold a document's text, the likeliest first; `plain_name` of what a log calls them."""

ID_NAMES = (
    "id", "docid", "documentid", "passageid", "chunkid", "nodeid", "document.id", "document.docid", "document.documentid",
    "node.id", "kwargs.id", "metadata.id", "metadata.docid", "metadata.documentid", "metadata.chunkid", "metadata.docuri",
)  # fmt: skip
RANK_NAMES = ("rank", "document.rank", "metadata.rank")
SCORE_NAMES = ("score", "document.score", "distance", "relevance", "similarity", "relevancescore", "similarityscore")
_ASIDE = frozenset(
    {
        *(name.rpartition(".")[2] for name in (*ID_NAMES, *RANK_NAMES, *SCORE_NAMES)), "metadata", "title", "type", "object",
        "source", "sources", "url", "uri", "link", "file", "filename", "filepath", "path", "page", "pagenumber", "index",
        "embedding", "lc",
    }
)  # fmt: skip
"""Fields beside a document's text that hold nothing a response could rest on."""

_OF_SEARCH = frozenset({"query", "question", "status", "success", "ok", "count", "total", "took", "responsetime", "error"})
LIST_NAMES = frozenset(
    {
        "documents", "docs", "passages", "chunks", "contexts", "results", "matches", "nodes", "hits", "sourcedocuments",
        "retrieveddocuments", "sourcenodes", "output", "outputs", "result", "data", "items", "value",
    }
)  # fmt: skip
"""Fields of an object that hold a list of documents."""

_HOLDERS = frozenset(name.partition(".")[0] for name in (*TEXT_NAMES, *ID_NAMES, *RANK_NAMES) if "." in name)
PARTS_OF_TEXT = frozenset({"text", "input_text", "output_text"})
"""Types of the parts of a message that are its text."""

_SEEN_AS_JSON = re.compile(
    r"""\s*(?: \[\s*(?: \{\s*(?:"(?:[^"\\]|\\.)*(?:"\s*:|\Z)|\Z) | "(?:[^"\\]|\\.)*(?:"\s*[,\]]|\Z) )
             | \{\s*"(?:[^"\\]|\\.)*(?:"\s*:|\Z) )""",
    re.VERBOSE | re.DOTALL,
)
_BLANK = " \t\r\n"  # of JSON; other blanks are text
_CUT = re.compile(r"(?:t(?:ru?)?|f(?:a(?:ls?)?)?|n(?:ul?)?|-|\.|[eE][+-]?)?\s*")  # what a cut leaves of a value
_HALF = re.compile("[\ud800-\udfff]")
_DECODER = json.JSONDecoder()


@dataclass(frozen=True)
class Document:
    """A retrieved document.

    Attributes:
        text: Its text; None where the log has none, as where a retrieval tells ids and scores alone.
        id: Its id; None where it has none.
        rank: Its place in the order of retrieval, lowest first; None where the log doesn't say.
    """

    text: str | None
    id: str | None = None
    rank: float | None = None


def plain_name(name: str) -> str:
    """A field's name as our lists have it: `pageContent`, `page_content` and `Page Content` are one."""
    return re.sub(r"[^a-z0-9.]", "", name.lower())


def decoded(text: str) -> Any:
    """The list or object that a text is, as JSON; None where it is a text like any other.

    Raises:
        ValueError: It begins as JSON does, with a list of objects or strings or an object with a key, and was cut off.
    """
    start = len(text) - len(text.lstrip(_BLANK))
    if text[start : start + 1] not in ("[", "{"):
        return None
    try:
        value, end = _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError) as error:
        if _SEEN_AS_JSON.match(text, start) and _cut_off(text, error):
            raise ValueError("it begins as JSON and is cut off") from error
        return None
    return None if text[end:].strip(_BLANK) else value  # words behind it: a text that begins with a bracket


def _cut_off(text: str, error: Exception) -> bool:
    """Whether a text that can't be read as JSON would be it, if it went on; others are no JSON."""
    if isinstance(error, json.JSONDecodeError):
        in_escape = error.msg.startswith("Invalid \\u") and text[error.pos :].isalnum() and len(text) - error.pos < 5
        return error.msg.startswith("Unterminated") or in_escape or bool(_CUT.fullmatch(text, error.pos))
    return isinstance(error, RecursionError) and not text.rstrip(_BLANK).endswith(("]", "}"))


def lenient(value: Any) -> Any:
    """What a text is as JSON; the text itself where it is none, or can't be read. Other values stay as they are."""
    if not isinstance(value, str):
        return value
    try:
        found = decoded(value)
    except ValueError:
        return value
    return value if found is None else found


def whole(text: str) -> str:
    """A text without halves of characters, which JSON can write and UTF-8 can't: each becomes U+FFFD."""
    return _HALF.sub("\ufffd", text)


def text_of(content: Any) -> str | None:
    """The text of a message's content: a string, or a list of parts of which those that are text count; None where none is."""
    if isinstance(content, str):
        return whole(content)
    if isinstance(content, bytes):
        return content.decode("utf-8", "backslashreplace")
    if isinstance(content, Mapping):
        named = content.get("type") in (None, *PARTS_OF_TEXT)
        return next((text_of(content[key]) for key in ("text", "content") if named and content.get(key)), None)
    if isinstance(content, Sequence):
        parts = [part for part in map(text_of, content) if part is not None]
        return "\n".join(parts) if parts else None
    return None


def document_of(value: Any) -> Document | None:
    """The document that a value is: a text, or an object with a text, or with an id and nothing of a text; None for others."""
    if isinstance(value, str):
        return Document(whole(value))
    if not isinstance(value, Mapping):
        return None
    fields = _fields(value)
    texts = [text for name in TEXT_NAMES if (text := _text_field(name, fields.get(name))) is not None]
    ids = [whole(str(fields[name])) for name in ID_NAMES if isinstance(fields.get(name), str | int) and fields[name] != ""]
    known = frozenset((*ID_NAMES, *RANK_NAMES, *SCORE_NAMES))
    if not texts and not (ids and known.issuperset(_told(fields))):
        return None
    rank = next((number for name in RANK_NAMES if (number := number_of(fields.get(name))) is not None), None)
    return Document(next(filter(None, texts), texts[0] if texts else None), ids[0] if ids else None, rank)


def _lone(value: Mapping[Any, Any]) -> Document | None:
    """The document that an object by itself is; None where it tells something beside its text: it may be any object."""
    found = document_of(value)
    return found if found is not None and _aside(value, _ASIDE, found.text) else None


def tells_more(value: Any) -> bool:
    """Whether a tool's object holds something of weight beside its text or its lists of documents."""
    if not isinstance(value, Mapping):
        return False
    beside = {k: v for k, v in value.items() if plain_name(str(k)) not in LIST_NAMES or isinstance(v, str | int | float)}
    one = document_of(value) if len(beside) == len(value) else None
    return not _aside(beside, _ASIDE | _OF_SEARCH, one.text if one else None)


def _aside(value: Mapping[Any, Any], names: frozenset[str], text: str | None = None) -> bool:
    """Whether all fields of an object that are not empty have one of these names, or hold this text."""
    for key, held in value.items():
        name = plain_name(str(key))
        if name in names or held is None or held == "" or (isinstance(held, list | Mapping) and not held):
            continue
        if name in _HOLDERS and isinstance(held, Mapping):
            if not _aside(held, names, text):
                return False
        elif text is None or text_of(held) != text:
            return False
    return True


def listed_documents(value: Any) -> list[Document | None] | None:
    """The documents of a list that was written as JSON, or of one object that tells nothing beside; None for anything else.

    An object that is no document is one whose text is its JSON, so that nothing of it is lost.
    """
    if isinstance(value, Mapping):
        found = _lone(value)
        return None if found is None else [found]
    if not isinstance(value, list) or not all(item is None or isinstance(item, str | Mapping) for item in value):
        return None
    return in_rank([None if item is None else document_of(item) or Document(_json(item)) for item in value])


def documents_in(value: Any, depth: int = 4) -> list[Document] | None:
    """The documents that a tool or a retrieval has put out, however wrapped: in JSON, in an object that holds a list of them,
    in a list of such lists; None where there are none.

    Args:
        value: What it put out.
        depth: Wrappings that are opened, at most.
    """
    value = lenient(value)
    if depth == 0 or value is None or isinstance(value, str):
        return None
    if isinstance(value, Mapping):
        for name, inner in value.items():
            if plain_name(str(name)) in LIST_NAMES and not isinstance(inner, str | bytes | int | float | bool):
                found = documents_in(inner, depth - 1)
                if found is not None:
                    return found
        one = document_of(value)
        return None if one is None else [one]
    if not isinstance(value, Sequence):
        return None
    items = [item for item in (_as_item(item) for item in value) if item is not None]
    if items and all(isinstance(item, list | tuple) for item in items):
        inner_lists = [documents_in(item, depth - 1) for item in items]
        return None if None in inner_lists else [one for some in inner_lists for one in some or []]
    found_ones = [document_of(item) for item in items]
    return None if None in found_ones else [one for one in in_rank(found_ones) if one is not None]


def in_rank(documents: Iterable[Document | None]) -> list[Document | None]:
    """Documents in the order of their ranks, those without one behind them; others stay in the order of the log."""
    return sorted(documents, key=lambda one: inf if one is None or one.rank is None else one.rank)


def _as_item(item: Any) -> Any:
    """An item of a list of documents; one that is an object written as JSON is read."""
    read = lenient(item)
    return read if isinstance(read, Mapping | list) else item


def _fields(value: Mapping[Any, Any]) -> dict[str, Any]:
    """Fields by their plain names, those of holders such as `document` and `metadata` with a dot between."""
    found: dict[str, Any] = {}
    for key, held in value.items():
        name = plain_name(str(key))
        found.setdefault(name, held)
        inside = lenient(held) if name == "metadata" else held
        if name in _HOLDERS and isinstance(inside, Mapping):
            for below, inner in inside.items():
                found.setdefault(f"{name}.{plain_name(str(below))}", inner)
    return found


def _told(fields: Mapping[str, Any]) -> list[str]:
    """Names of the fields that tell something, metadata aside."""
    return [name for name, value in fields.items() if value is not None and not name.startswith(("metadata", "document."))]


def _text_field(name: str, value: Any) -> str | None:
    return None if name == "document" and isinstance(value, Mapping) else text_of(value)


def number_of(value: Any) -> float | None:
    """The number that a rank is, a text of one too; None for others."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return None if isnan(number) else number


def _json(value: Any) -> str:
    return whole(json.dumps(value, ensure_ascii=False))
