"""What the input of a span asks, and what its output says: tools log the arguments and results of functions as they were."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ragassay.jobs.input.documents import lenient, plain_name, text_of, whole
from ragassay.jobs.input.messages import ASSISTANT, USER, Turn, turns_of

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
_MESSAGE_FIELDS = ("content", "parts", "toolcalls", "kwargs")


def question_of(value: Any) -> str | None:
    """The question in an input; all of it as JSON where no field bears the name of one, None where there is nothing."""
    return _found(value, QUESTION_NAMES, USER)


def response_of(value: Any) -> str | None:
    """The response in an output; see `question_of`. None for a call of a tool without a word."""
    return _found(value, RESPONSE_NAMES, ASSISTANT)


def _found(value: Any, names: Sequence[str], role: str) -> str | None:
    value = lenient(value)
    if value is None or value in ("", "null", {}, []):  # a function that returned nothing, as JSON
        return None
    known, text = _look(value, names, role, _DEPTH)
    if not known:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return whole(text) if text and text.strip() else None


def _look(value: Any, names: Sequence[str], role: str, depth: int) -> tuple[bool, str | None]:
    """Whether it is known what a value holds, and its text."""
    value = lenient(value)
    if value is None:
        return False, None
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        return True, str(value)
    if depth == 0 or isinstance(value, bool | bytes):
        return False, None
    if isinstance(value, Mapping):
        return _in_object(value, names, role, depth)
    if not isinstance(value, Sequence):
        return False, None
    return _in_list(value, names, role, depth)


def _in_object(value: Mapping[Any, Any], names: Sequence[str], role: str, depth: int) -> tuple[bool, str | None]:
    fields = {plain_name(str(name)): inner for name, inner in value.items()}
    if _is_message(fields):
        return True, _last_said([value], role, any_role=True)
    for name in names:
        if fields.get(name) not in (None, "", [], {}):
            known, text = _look(fields[name], names, role, depth - 1)
            if known:
                return True, text
    if any(name in fields for name in names if name not in ("kwargs", "args")):
        return True, None  # it is there, and empty
    if len(fields) == 1:
        return _look(next(iter(fields.values())), names, role, depth - 1)
    return False, None


def _in_list(value: Sequence[Any], names: Sequence[str], role: str, depth: int) -> tuple[bool, str | None]:
    items = [item for item in map(lenient, value) if item is not None]
    if not items:
        return False, None
    if all(isinstance(item, Mapping) and _is_message({plain_name(str(n)): v for n, v in item.items()}) for item in items):
        return True, _last_said(items, role)
    if all(isinstance(item, Mapping) and item.get("type") in ("text", "output_text", "input_text") for item in items):
        return True, text_of(items)
    if len(items) == 1 or isinstance(items[0], Mapping | list):  # of several choices the first was shown
        return _look(items[0], names, role, depth - 1)
    return False, None


def _is_message(fields: Mapping[str, Any]) -> bool:
    """Whether an object is a message: it says who speaks."""
    speaks = isinstance(fields.get("role"), str) or (isinstance(fields.get("type"), str) and _is_speaker(fields))
    return speaks and any(name in fields for name in _MESSAGE_FIELDS)


def _is_speaker(fields: Mapping[str, Any]) -> bool:
    kinds = ("human", "ai", "system", "tool", "aimessagechunk", "constructor", "humanmessage", "aimessage")
    return str(fields["type"]).lower() in kinds and (fields["type"] != "constructor" or _holds_content(fields))


def _holds_content(fields: Mapping[str, Any]) -> bool:
    inner = fields.get("kwargs")
    return isinstance(inner, Mapping) and "content" in inner


def _last_said(messages: Sequence[Any], role: str, *, any_role: bool = False) -> str | None:
    try:
        turns: list[Turn] = [turn for message in messages for turn in turns_of([message])]
    except ValueError:
        return None
    said = [turn.text for turn in turns if turn.text and (turn.role == role or any_role)]
    if not said and role == USER:  # a prompt may be one system turn
        said = [turn.text for turn in turns if turn.text]
    return said[-1] if said else None
