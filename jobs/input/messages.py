"""Conversations as rows: the last question, the passages that the model was given, and its answer."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ragassay.jobs.input.documents import (
    PARTS_OF_TEXT,
    Document,
    decoded,
    documents_in,
    lenient,
    plain_name,
    tells_more,
    text_of,
)
from ragassay.jobs.input.passages import TEXTS, to_columns
from ragassay.jobs.input.text import mended, texts
from ragassay.jobs.input.types import is_list, is_text, plain, plain_type

USER, ASSISTANT, TOOL, SYSTEM = "user", "assistant", "tool", "system"
_ROLES = {
    USER: ("user", "human", "customer"),
    ASSISTANT: ("assistant", "ai", "model", "bot", "gpt", "aimessagechunk"),
    TOOL: ("tool", "function", "ipython", "observation"),
    SYSTEM: ("system", "developer"),
}
ROLE_OF = {synonym: role for role, synonyms in _ROLES.items() for synonym in synonyms}
"""What a log calls a role -> what it is; any other role is itself."""

_OF_ROLE = ("role", "from", "type", "author", "sender")
_OF_CONTENT = ("content", "value", "text", "parts", "message")
_TOOL_PARTS = ("tool_result", "function_call_output", "tool_call_response")
_NOT_SPOKEN = ("tool_use", "function_call", "reasoning", "tool_call", "thinking")
_MEDIA = ("image", "image_url", "input_image", "audio", "input_audio", "file", "input_file", "video", "video_url")
_PARTS = frozenset((*PARTS_OF_TEXT, *_TOOL_PARTS, *_NOT_SPOKEN, *_MEDIA))


@dataclass(frozen=True)
class Turn:
    """A message.

    Attributes:
        role: Who speaks.
        text: What is said; None where nothing is, as beside a call of a tool.
        content: As the log has it.
    """

    role: str
    text: str | None
    content: Any


@dataclass(frozen=True)
class Talk:
    """What a conversation is as a row.

    Attributes:
        question: The last user turn.
        documents: What the turns that hold passages hold; None where there is none.
        response: The last assistant turn behind it that says something.
    """

    question: str | None = None
    documents: Sequence[Document] | None = None
    response: str | None = None


@dataclass(frozen=True)
class Talks:
    """A column of conversations.

    Attributes:
        question: string.
        context: list<string>.
        ids: list<string>; see `passages.Passages`.
        response: string.
        no_utf8: Rows that hold bytes which are no UTF-8.
        no_talk: Rows that hold something else than messages, or JSON which can't be read; their context is what stands there.
    """

    question: pa.Array
    context: pa.Array
    ids: pa.Array
    response: pa.Array
    no_utf8: list[int]
    no_talk: list[int]


def can_be_messages(kind: pa.DataType) -> bool:
    """Whether a column of this type can be read as conversations: JSON, or lists of structs, maps or JSON."""
    kind = plain_type(kind)
    if not is_list(kind):
        return is_text(kind)
    inner = kind.value_type
    if pa.types.is_struct(inner):
        names = {plain_name(one.name) for one in inner}
        return bool(names & set(_OF_ROLE)) and bool(names & set(_OF_CONTENT))
    return pa.types.is_map(inner) or is_text(inner)


def talks(array: pa.Array, roles: Sequence[str]) -> Talks:
    """Conversations as rows.

    Args:
        array: Of a type that `can_be_messages`.
        roles: Which turns hold passages: those of the first of these roles that has any.
    """
    array = plain(array)
    flat = is_text(array.type) or (is_list(array.type) and is_text(array.type.value_type))
    array, no_utf8 = texts(array) if flat else mended(array)
    found: list[Talk] = []
    no_talk = []
    for number, value in enumerate(array.to_pylist()):
        try:
            found.append(talk_of(turns_of(value), roles) if value is not None else Talk())
        except ValueError:
            no_talk.append(number)
            shown = value if isinstance(value, list) and flat else [str(value)]
            found.append(Talk(documents=[Document(text) for text in shown]))
        if not flat and number not in no_utf8 and _has_bad_bytes(value):
            no_utf8.append(number)
    context, ids = to_columns([talk.documents for talk in found])
    return Talks(
        pa.array([talk.question for talk in found], pa.string()),
        context.cast(TEXTS),
        ids,
        pa.array([talk.response for talk in found], pa.string()),
        no_utf8,
        no_talk,
    )


def turns_of(value: Any) -> list[Turn]:
    """The messages of a conversation.

    Args:
        value: A list of messages, an object that holds one, or either as JSON.

    Raises:
        ValueError: It is something else.
    """
    if isinstance(value, str):
        value = decoded(value) if value.strip() else []
    if isinstance(value, Mapping):
        value = next((value[key] for key in ("messages", "conversation") if key in value), [value])
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        raise ValueError("no list of messages")
    return [turn for message in value if message is not None for turn in _turns(message)]


def talk_of(turns: Sequence[Turn], roles: Sequence[str] = (TOOL, SYSTEM)) -> Talk:
    """What a conversation is as a row; see `talks`."""
    asked = [i for i, turn in enumerate(turns) if turn.role == USER and turn.text]
    begin = asked[-1] if asked else -1
    said = [i for i, turn in enumerate(turns) if turn.role == ASSISTANT and turn.text and turn.text.strip() and i > begin]
    end = said[-1] if said else len(turns)
    holders = [[turn for turn in turns[:end] if turn.role == role and turn.text] for role in roles]
    documents = [one for turn in next(filter(None, holders), []) for one in _documents(turn)]
    return Talk(turns[begin].text if asked else None, documents or None, turns[end].text if said else None)


def _documents(turn: Turn) -> list[Document]:
    """The documents of a turn; the whole of its text where it holds no list of them."""
    found = documents_in(turn.text) if turn.role == TOOL and not tells_more(lenient(turn.text)) else None
    return found if found and all(one.text for one in found) else [Document(turn.text)]


def _turns(message: Any) -> list[Turn]:
    """A message, parted where it holds what tools answered."""
    if isinstance(message, str):
        message = decoded(message)
    if isinstance(message, Sequence) and not isinstance(message, str | bytes):
        pairs = [pair for pair in message if isinstance(pair, tuple) and len(pair) == 2]
        message = dict(pairs) if len(pairs) == len(message) else None
    if not isinstance(message, Mapping):
        raise ValueError("no message")
    message = _inner(message)
    fields = {plain_name(str(name)): value for name, value in message.items()}
    if fields.get("type") in _NOT_SPOKEN:
        return []
    if fields.get("type") in _TOOL_PARTS:
        return [_tool_turn(fields)]
    role = next((fields[name] for name in _OF_ROLE if isinstance(fields.get(name), str)), None)
    if role is None:
        raise ValueError("a message without a role")
    content = next((fields[name] for name in _OF_CONTENT if fields.get(name) is not None), None)
    content = _parts_of(content) or content
    parts = content if isinstance(content, list) else [content]
    tools = [part for part in parts if isinstance(part, Mapping) and part.get("type") in _TOOL_PARTS]
    rest = [part for part in parts if not any(part is one for one in tools)]
    turns = [_tool_turn({plain_name(str(name)): value for name, value in part.items()}) for part in tools]
    if rest or not tools:
        turns.append(Turn(_role(role), text_of(rest if isinstance(content, list) else content), content))
    return turns


def _parts_of(content: Any) -> list[Any] | None:
    """The parts of a content that was written as their JSON, as where other messages of its column have texts.

    Lists of anything else, or of parts with ids, as documents have them, stay the text that they are.
    """
    parts = lenient(content) if isinstance(content, str) else None
    if not isinstance(parts, list) or not all(isinstance(part, Mapping) for part in parts):
        return None
    known = all(isinstance(part.get("type"), str) and part["type"] in _PARTS for part in parts)
    return parts if known and not any(part["type"] in PARTS_OF_TEXT and "id" in part for part in parts) else None


def _inner(message: Mapping[Any, Any]) -> Mapping[Any, Any]:
    """A message as LangChain serialises it, `kwargs` or `data` around what is said, and its class for a role."""
    inner = message.get("kwargs") or message.get("data")
    if not isinstance(inner, Mapping) or "content" not in inner:
        return message
    path = message.get("id")
    kind = path[-1] if isinstance(path, list) and path else message.get("type")
    role = str(inner.get("type") or kind or "").lower().removesuffix("message")
    return {**inner, "role": inner.get("role") or role}


def _role(name: str) -> str:
    plainly = name.lower().strip()
    return ROLE_OF.get(plainly, ROLE_OF.get(plainly.removesuffix("message"), plainly))


def _tool_turn(fields: Mapping[str, Any]) -> Turn:
    content = next((fields[name] for name in ("content", "output", "response", "result") if fields.get(name) is not None), None)
    return Turn(TOOL, text_of(content), content)


def _has_bad_bytes(value: Any) -> bool:
    if isinstance(value, bytes):
        try:
            value.decode("utf-8")
        except UnicodeDecodeError:
            return True
        return False
    if isinstance(value, Mapping):
        return any(map(_has_bad_bytes, value.values()))
    return isinstance(value, list | tuple) and any(map(_has_bad_bytes, value))
