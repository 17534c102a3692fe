"""Parse retrieved documents: the names that logs give their fields, and how logs write them as JSON."""

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
"""Fields that contain the text of a document, most likely first, as `normalize_name` returns them."""

ID_NAMES = (
    "id", "docid", "documentid", "passageid", "chunkid", "nodeid", "document.id", "document.docid", "document.documentid",
    "node.id", "kwargs.id", "metadata.id", "metadata.docid", "metadata.documentid", "metadata.chunkid", "metadata.docuri",
)  # fmt: skip
RANK_NAMES = ("rank", "document.rank", "metadata.rank")
SCORE_NAMES = ("score", "document.score", "distance", "relevance", "similarity", "relevancescore", "similarityscore")
_METADATA_NAMES = frozenset(
    {
        *(name.rpartition(".")[2] for name in (*ID_NAMES, *RANK_NAMES, *SCORE_NAMES)), "metadata", "title", "type", "object",
        "source", "sources", "url", "uri", "link", "file", "filename", "filepath", "path", "page", "pagenumber", "index",
        "embedding", "lc",
    }
)  # fmt: skip
"""Fields of a document, other than its text, that a response can't rely on."""

_SEARCH_NAMES = frozenset({"query", "question", "status", "success", "ok", "count", "total", "took", "responsetime", "error"})
LIST_NAMES = frozenset(
    {
        "documents", "docs", "passages", "chunks", "contexts", "results", "matches", "nodes", "hits", "sourcedocuments",
        "retrieveddocuments", "sourcenodes", "output", "outputs", "result", "data", "items", "value",
    }
)  # fmt: skip
"""Fields of an object that contain a list of documents."""

_WRAPPER_NAMES = frozenset(name.partition(".")[0] for name in (*TEXT_NAMES, *ID_NAMES, *RANK_NAMES) if "." in name)
TEXT_PART_TYPES = frozenset({"text", "input_text", "output_text"})
"""Types of the parts of a message that are text."""

_JSON_START = re.compile(
    r"""\s*(?: \[\s*(?: \{\s*(?:"(?:[^"\\]|\\.)*(?:"\s*:|\Z)|\Z) | "(?:[^"\\]|\\.)*(?:"\s*[,\]]|\Z) )
             | \{\s*"(?:[^"\\]|\\.)*(?:"\s*:|\Z) )""",
    re.VERBOSE | re.DOTALL,
)
_BLANK = " \t\r\n"  # white space of JSON; any other is text
_TRUNCATED_VALUE = re.compile(r"(?:t(?:ru?)?|f(?:a(?:ls?)?)?|n(?:ul?)?|-|\.|[eE][+-]?)?\s*")  # a truncated value
_SURROGATE = re.compile("[\ud800-\udfff]")
_DECODER = json.JSONDecoder()


@dataclass(frozen=True)
class Document:
    """A retrieved document.

    Attributes:
        text: Text of the document; None if the log has none, for example if a retrieval returns only ids and scores.
        id: Id of the document; None without one.
        rank: Position in the order of retrieval, lowest first; None if the log has none.
    """

    text: str | None
    id: str | None = None
    rank: float | None = None


def normalize_name(name: str) -> str:
    """Normalize a field name for comparison: `pageContent`, `page_content` and `Page Content` are the same."""
    return re.sub(r"[^a-z0-9.]", "", name.lower())


def parse_json(text: str) -> Any:
    """Parse a text as a JSON list or object; None for any other text.

    Raises:
        ValueError: The text begins as JSON (a list of objects or strings, or an object with a key) and is cut off.
    """
    start = len(text) - len(text.lstrip(_BLANK))
    if text[start : start + 1] not in ("[", "{"):
        return None
    try:
        value, end = _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError) as error:
        if _JSON_START.match(text, start) and _is_cut_off(text, error):
            raise ValueError("it begins as JSON and is cut off") from error
        return None
    return None if text[end:].strip(_BLANK) else value  # with more text after it, it is text that begins with a bracket


def _is_cut_off(text: str, error: Exception) -> bool:
    """Return whether a text that can't be parsed could be the beginning of valid JSON."""
    if isinstance(error, json.JSONDecodeError):
        in_escape = error.msg.startswith("Invalid \\u") and text[error.pos :].isalnum() and len(text) - error.pos < 5
        return error.msg.startswith("Unterminated") or in_escape or bool(_TRUNCATED_VALUE.fullmatch(text, error.pos))
    return isinstance(error, RecursionError) and not text.rstrip(_BLANK).endswith(("]", "}"))


def parse_json_if_possible(value: Any) -> Any:
    """Parse a string as JSON. A string that can't be parsed, and any other value, is returned unchanged."""
    if not isinstance(value, str):
        return value
    try:
        parsed = parse_json(value)
    except ValueError:
        return value
    return value if parsed is None else parsed


def replace_surrogates(text: str) -> str:
    """Replace each lone surrogate by U+FFFD. JSON can contain them, UTF-8 can't."""
    return _SURROGATE.sub("\ufffd", text)


def extract_text(content: Any) -> str | None:
    """Extract the text of a message's content: a string, or the text parts of a list. None without text."""
    if isinstance(content, str):
        return replace_surrogates(content)
    if isinstance(content, bytes):
        return content.decode("utf-8", "backslashreplace")
    if isinstance(content, Mapping):
        is_text_part = content.get("type") in (None, *TEXT_PART_TYPES)
        return next((extract_text(content[key]) for key in ("text", "content") if is_text_part and content.get(key)), None)
    if isinstance(content, Sequence):
        parts = [part for part in map(extract_text, content) if part is not None]
        return "\n".join(parts) if parts else None
    return None


def parse_document(value: Any) -> Document | None:
    """Parse a string, an object with a text, or an object with an id and no other content. None for other values."""
    if isinstance(value, str):
        return Document(replace_surrogates(value))
    if not isinstance(value, Mapping):
        return None
    fields = _flatten_fields(value)
    texts = [text for name in TEXT_NAMES if (text := _text_field(name, fields.get(name))) is not None]
    ids = [
        replace_surrogates(str(fields[name]))
        for name in ID_NAMES
        if isinstance(fields.get(name), str | int) and fields[name] != ""
    ]
    id_names = frozenset((*ID_NAMES, *RANK_NAMES, *SCORE_NAMES))
    if not texts and not (ids and id_names.issuperset(_names_with_values(fields))):
        return None
    rank = next((number for name in RANK_NAMES if (number := parse_number(fields.get(name))) is not None), None)
    return Document(next(filter(None, texts), texts[0] if texts else None), ids[0] if ids else None, rank)


def _parse_lone_document(value: Mapping[Any, Any]) -> Document | None:
    """Parse an object as a document; None if it has other content than its text, because it may then be any object."""
    document = parse_document(value)
    return document if document is not None and _has_only_fields(value, _METADATA_NAMES, document.text) else None


def has_other_content(value: Any) -> bool:
    """Return whether the object of a tool has relevant content apart from its text or its lists of documents."""
    if not isinstance(value, Mapping):
        return False
    other_fields = {
        k: v for k, v in value.items() if normalize_name(str(k)) not in LIST_NAMES or isinstance(v, str | int | float)
    }
    document = parse_document(value) if len(other_fields) == len(value) else None
    return not _has_only_fields(other_fields, _METADATA_NAMES | _SEARCH_NAMES, document.text if document else None)


def _has_only_fields(value: Mapping[Any, Any], names: frozenset[str], text: str | None = None) -> bool:
    """Return whether every field of an object is empty, has one of these names, or contains this text."""
    for key, field_value in value.items():
        name = normalize_name(str(key))
        if (
            name in names
            or field_value is None
            or field_value == ""
            or (isinstance(field_value, list | Mapping) and not field_value)
        ):
            continue
        if name in _WRAPPER_NAMES and isinstance(field_value, Mapping):
            if not _has_only_fields(field_value, names, text):
                return False
        elif text is None or extract_text(field_value) != text:
            return False
    return True


def parse_documents(value: Any) -> list[Document | None] | None:
    """Parse the documents of a JSON list, or of an object that is a document and has no other content. None for other values.

    An object of a list that is not a document becomes a document whose text is its JSON, so that nothing is lost.
    """
    if isinstance(value, Mapping):
        document = _parse_lone_document(value)
        return None if document is None else [document]
    if not isinstance(value, list) or not all(item is None or isinstance(item, str | Mapping) for item in value):
        return None
    return sort_by_rank([None if item is None else parse_document(item) or Document(_to_json(item)) for item in value])


def find_documents(value: Any, depth: int = 4) -> list[Document] | None:
    """Find the documents in the output of a tool or a retrieval.

    They may be in JSON, in an object that contains a list of them, or in nested lists.

    Args:
        value: Output of the tool or the retrieval.
        depth: Maximum number of nested levels.

    Returns:
        The documents; None if there are none.
    """
    value = parse_json_if_possible(value)
    if depth == 0 or value is None or isinstance(value, str):
        return None
    if isinstance(value, Mapping):
        for name, inner in value.items():
            if normalize_name(str(name)) in LIST_NAMES and not isinstance(inner, str | bytes | int | float | bool):
                documents = find_documents(inner, depth - 1)
                if documents is not None:
                    return documents
        document = parse_document(value)
        return None if document is None else [document]
    if not isinstance(value, Sequence):
        return None
    items = [item for item in (_parse_item(item) for item in value) if item is not None]
    if items and all(isinstance(item, list | tuple) for item in items):
        inner_lists = [find_documents(item, depth - 1) for item in items]
        return None if None in inner_lists else [document for group in inner_lists for document in group or []]
    parsed_documents = [parse_document(item) for item in items]
    return (
        None if None in parsed_documents else [document for document in sort_by_rank(parsed_documents) if document is not None]
    )


def sort_by_rank(documents: Iterable[Document | None]) -> list[Document | None]:
    """Sort documents by rank. Documents without a rank come last, in the order of the log."""
    return sorted(documents, key=lambda document: inf if document is None or document.rank is None else document.rank)


def _parse_item(item: Any) -> Any:
    """Parse an item of a list of documents if it is an object written as JSON."""
    parsed = parse_json_if_possible(item)
    return parsed if isinstance(parsed, Mapping | list) else item


def _flatten_fields(value: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the fields by normalized name. Fields of wrappers such as `document` get a prefix: `document.id`."""
    fields: dict[str, Any] = {}
    for key, field_value in value.items():
        name = normalize_name(str(key))
        fields.setdefault(name, field_value)
        nested = parse_json_if_possible(field_value) if name == "metadata" else field_value
        if name in _WRAPPER_NAMES and isinstance(nested, Mapping):
            for below, inner in nested.items():
                fields.setdefault(f"{name}.{normalize_name(str(below))}", inner)
    return fields


def _names_with_values(fields: Mapping[str, Any]) -> list[str]:
    """Return the names of the fields that have a value, without metadata."""
    return [name for name, value in fields.items() if value is not None and not name.startswith(("metadata", "document."))]


def _text_field(name: str, value: Any) -> str | None:
    return None if name == "document" and isinstance(value, Mapping) else extract_text(value)


def parse_number(value: Any) -> float | None:
    """Parse a rank, which may be a string, as a number; None for other values."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return None if isnan(number) else number


def _to_json(value: Any) -> str:
    return replace_surrogates(json.dumps(value, ensure_ascii=False))
