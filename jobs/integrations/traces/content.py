"""Extract the question from a span's input and the response from its output.

Tools log the arguments and results of functions as they are, so the text can be nested in lists, objects and JSON.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ragassay.jobs.input.documents import (
    TEXT_PART_TYPES,
    extract_text,
    normalize_name,
    parse_json_if_possible,
    replace_surrogates,
)
from ragassay.jobs.input.messages import ASSISTANT, USER, parse_turns
from ragassay.jobs.integrations.traces.fields import EMPTY

QUESTION_FIELDS = (
    "question", "userquestion", "query", "userquery", "querystr", "searchquery", "userinput", "usermessage", "chatinput",
    "input", "inputs", "prompt", "prompts", "message", "messages", "text", "content", "contents", "request", "kwargs", "args",
    "value", "q",
)  # fmt: skip
"""Fields of an input that can contain the question, the most likely first."""

RESPONSE_FIELDS = (
    "answer", "finalanswer", "response", "outputtext", "output", "outputs", "result", "completion", "reply", "generations",
    "choices", "candidates", "message", "messages", "content", "parts", "text", "generation", "returnvalue", "value",
    "kwargs",
)  # fmt: skip
"""Fields of an output that can contain the response, the most likely first."""

_MAX_DEPTH = 8
_MESSAGE_TYPES = ("human", "ai", "system", "tool", "aimessagechunk", "humanmessage", "aimessage")


def extract_question(value: Any) -> str | None:
    """Return the question in an input.

    Returns:
        The question. The whole input as JSON if no field has a known name. None if the input is empty.
    """
    return _extract_text(value, QUESTION_FIELDS, USER)


def extract_response(value: Any) -> str | None:
    """Return the response in an output, by the same rules as `extract_question`.

    Returns:
        The response. None also for a message that only calls a tool.
    """
    return _extract_text(value, RESPONSE_FIELDS, ASSISTANT)


def _extract_text(value: Any, names: Sequence[str], role: str) -> str | None:
    value = parse_json_if_possible(value)
    if value in (*EMPTY, "null"):  # "null": the JSON of a function that returned nothing
        return None
    is_recognized, text = _search(value, names, role, _MAX_DEPTH)
    if not is_recognized:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return replace_surrogates(text) if text and text.strip() else None


def _search(value: Any, names: Sequence[str], role: str, depth_left: int) -> tuple[bool, str | None]:
    """Return whether the content of a value is recognized, and its text."""
    value = parse_json_if_possible(value)
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        return True, str(value)
    if depth_left and isinstance(value, Mapping):
        return _search_object(value, names, role, depth_left)
    if depth_left and isinstance(value, Sequence) and not isinstance(value, bytes):
        return _search_list(value, names, role, depth_left)
    return False, None


def _search_object(value: Mapping[Any, Any], names: Sequence[str], role: str, depth_left: int) -> tuple[bool, str | None]:
    if _is_message(value):
        return True, _last_turn_text([value], role, any_role=True)
    fields = _normalize_names(value)
    for name in names:
        if fields.get(name) not in EMPTY:
            is_recognized, text = _search(fields[name], names, role, depth_left - 1)
            if is_recognized:
                return True, text
    if any(name in fields for name in names if name not in ("kwargs", "args")):
        return True, None  # a known field exists but is empty
    return _search(next(iter(fields.values())), names, role, depth_left - 1) if len(fields) == 1 else (False, None)


def _search_list(value: Sequence[Any], names: Sequence[str], role: str, depth_left: int) -> tuple[bool, str | None]:
    items = [item for item in map(parse_json_if_possible, value) if item is not None]
    if not items:
        return False, None
    if all(isinstance(item, Mapping) for item in items):
        if all(map(_is_message, items)):
            return True, _last_turn_text(items, role)
        if all(str(item.get("type")) in TEXT_PART_TYPES for item in items):
            return True, extract_text(items)
    if len(items) == 1 or isinstance(items[0], Mapping | list):  # the user saw the first of several choices
        return _search(items[0], names, role, depth_left - 1)
    return False, None


def _normalize_names(value: Mapping[Any, Any]) -> dict[str, Any]:
    return {normalize_name(str(name)): inner for name, inner in value.items()}


def _is_message(value: Mapping[Any, Any]) -> bool:
    """Return whether an object is a message: it has a role and content."""
    fields = _normalize_names(value)
    if fields.keys().isdisjoint(("content", "parts", "toolcalls", "kwargs")):
        return False
    type_name, inner = fields.get("type"), fields.get("kwargs")
    if type_name == "constructor":
        return (isinstance(inner, Mapping) and "content" in inner) or isinstance(fields.get("role"), str)
    return isinstance(fields.get("role"), str) or (isinstance(type_name, str) and type_name.lower() in _MESSAGE_TYPES)


def _last_turn_text(messages: Sequence[Any], role: str, *, any_role: bool = False) -> str | None:
    try:
        turns = [turn for turn in parse_turns(messages) if turn.text]
    except ValueError:
        return None
    texts = [turn.text for turn in turns if turn.role == role or any_role]
    if not texts and role == USER:  # a prompt may be one system turn
        texts = [turn.text for turn in turns]
    return texts[-1] if texts else None
