"""What the input of a span asks, and what its output says: tools log the arguments and results of functions as they were."""

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

QUESTION_NAMES = (
    "question", "userquestion", "query", "userquery", "querystr", "searchquery", "userinput", "usermessage", "chatinput",
    "input", "inputs", "prompt", "prompts", "message", "messages", "text", "content", "contents", "request", "kwargs", "args",
    "value", "q",
)  # fmt: skip
"""Fields of an input that hold the question, the likeliest first."""

RESPONSE_NAMES = (
    "answer", "finalanswer", "response", "outputtext", "output", "outputs", "result", "completion", "reply", "generations",
    "choices", "candidates", "message", "messages", "content", "parts", "text", "generation", "returnvalue", "value",
    "kwargs",
)  # fmt: skip
"""Fields of an output that hold the response."""

_DEPTH = 8
_SPEAKERS = ("human", "ai", "system", "tool", "aimessagechunk", "humanmessage", "aimessage")


def question_of(value: Any) -> str | None:
    """The question in an input; all of it as JSON where no field bears the name of one, None where there is nothing."""
    return _found(value, QUESTION_NAMES, USER)


def response_of(value: Any) -> str | None:
    """The response in an output; see `question_of`. None for a call of a tool without a word."""
    return _found(value, RESPONSE_NAMES, ASSISTANT)


def _found(value: Any, names: Sequence[str], role: str) -> str | None:
    value = parse_json_if_possible(value)
    if value in (*EMPTY, "null"):  # a function that returned nothing, as JSON
        return None
    known, text = _look(value, names, role, _DEPTH)
    if not known:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return replace_surrogates(text) if text and text.strip() else None


def _look(value: Any, names: Sequence[str], role: str, depth: int) -> tuple[bool, str | None]:
    """Whether it is known what a value holds, and its text."""
    value = parse_json_if_possible(value)
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        return True, str(value)
    if depth and isinstance(value, Mapping):
        return _in_object(value, names, role, depth)
    if depth and isinstance(value, Sequence) and not isinstance(value, bytes):
        return _in_list(value, names, role, depth)
    return False, None


def _in_object(value: Mapping[Any, Any], names: Sequence[str], role: str, depth: int) -> tuple[bool, str | None]:
    if _is_message(value):
        return True, _last_said([value], role, any_role=True)
    fields = _by_plain_name(value)
    for name in names:
        if fields.get(name) not in EMPTY:
            known, text = _look(fields[name], names, role, depth - 1)
            if known:
                return True, text
    if any(name in fields for name in names if name not in ("kwargs", "args")):
        return True, None  # it is there, and empty
    return _look(next(iter(fields.values())), names, role, depth - 1) if len(fields) == 1 else (False, None)


def _in_list(value: Sequence[Any], names: Sequence[str], role: str, depth: int) -> tuple[bool, str | None]:
    items = [item for item in map(parse_json_if_possible, value) if item is not None]
    if not items:
        return False, None
    if all(isinstance(item, Mapping) for item in items):
        if all(map(_is_message, items)):
            return True, _last_said(items, role)
        if all(str(item.get("type")) in TEXT_PART_TYPES for item in items):
            return True, extract_text(items)
    if len(items) == 1 or isinstance(items[0], Mapping | list):  # of several choices the first was shown
        return _look(items[0], names, role, depth - 1)
    return False, None


def _by_plain_name(value: Mapping[Any, Any]) -> dict[str, Any]:
    return {normalize_name(str(name)): inner for name, inner in value.items()}


def _is_message(value: Mapping[Any, Any]) -> bool:
    """Whether an object is a message: it says who speaks."""
    fields = _by_plain_name(value)
    if fields.keys().isdisjoint(("content", "parts", "toolcalls", "kwargs")):
        return False
    kind, inner = fields.get("type"), fields.get("kwargs")
    if kind == "constructor":
        return (isinstance(inner, Mapping) and "content" in inner) or isinstance(fields.get("role"), str)
    return isinstance(fields.get("role"), str) or (isinstance(kind, str) and kind.lower() in _SPEAKERS)


def _last_said(messages: Sequence[Any], role: str, *, any_role: bool = False) -> str | None:
    try:
        turns = [turn for turn in parse_turns(messages) if turn.text]
    except ValueError:
        return None
    said = [turn.text for turn in turns if turn.role == role or any_role]
    if not said and role == USER:  # a prompt may be one system turn
        said = [turn.text for turn in turns]
    return said[-1] if said else None
