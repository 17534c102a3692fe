"""What is known of the columns of logs before anyone names them: their types in all files, and values of some rows."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from statistics import fmean
from typing import Any, TypeVar

import pyarrow as pa

from ragassay.jobs.init.names import names_talk
from ragassay.jobs.input.documents import parse_json_if_possible
from ragassay.jobs.input.files import Logs, group_by_schema
from ragassay.jobs.input.formats import open_log
from ragassay.jobs.input.messages import can_be_messages
from ragassay.jobs.input.passages import can_be_context, read_passages
from ragassay.jobs.input.text import can_be_ids, escape_invalid_utf8, to_strings
from ragassay.jobs.input.types import is_list, is_text, plain_type, to_plain

ROWS = 400  # that are looked at, about
PLACES = 16  # row groups that they are taken from, spread over the log
DECODED = 100  # texts of a column that are read as JSON

_Item = TypeVar("_Item")


@dataclass(frozen=True, eq=False)
class Column:
    """A column of logs, and what its values say.

    Attributes:
        name: Its name.
        kind: Its types in words; several where files differ.
        everywhere: Whether all files have it.
        text: Whether it can be read as one text a row, in every file.
        passages: Whether it can be read as a context, in every file: as one text, a list of texts or of structs with a text.
        talk: Whether it can be read as conversations, in every file.
        ids: Whether it can be read as ids.
        lists: Whether it is a list of texts, or of structs with a text, in some file.
        values: Its values in the rows looked at: texts, lists of texts, conversations, or plain ones; none of other nested
            types.
    """

    name: str
    kind: str
    everywhere: bool = True
    text: bool = False
    passages: bool = False
    talk: bool = False
    ids: bool = False
    lists: bool = False
    values: list[Any] = field(default_factory=list)

    @cached_property
    def texts(self) -> list[str]:
        """A text a row of a column that can be a context; empty where there is none."""
        return ["\n".join(filter(None, v)).strip() if isinstance(v, list) else (v or "").strip() for v in self.values]

    @cached_property
    def filled(self) -> list[str]:
        """Those that are not empty."""
        return [text for text in self.texts if text]

    @cached_property
    def chars(self) -> float:
        """Characters of a text, on average."""
        return mean(list(map(len, self.filled)))

    @cached_property
    def asks(self) -> float:
        """Share of the texts that end with a question mark."""
        return mean([text.endswith(("?", "？", "؟")) for text in self.filled])

    @cached_property
    def decoded(self) -> list[Any]:
        """Texts as the lists and objects that they are as JSON; None for any other text."""
        read = [] if self.lists else map(parse_json_if_possible, self.filled[:DECODED])
        return [None if isinstance(value, str) else value for value in read]

    @cached_property
    def holds_talk(self) -> bool:
        """Whether a column of texts holds conversations, by its name or as JSON: messages with roles."""
        lists = [value for value in self.decoded if value and isinstance(value, list)]
        return names_talk(self.name) or any(all(isinstance(m, dict) and "role" in m for m in value) for value in lists)


def mean(values: Sequence[float]) -> float:
    """Mean of numbers; 0 of none."""
    return fmean(values) if values else 0.0


def spread(items: Sequence[_Item], most: int) -> Sequence[_Item]:
    """Some of many, at most so many, from all over."""
    return items[:: max(1, -(-len(items) // most))]


def columns_of(logs: Logs) -> list[Column]:
    """The columns of logs, in the order of their files."""
    types: dict[str, list[pa.DataType]] = {}
    schemas = group_by_schema(logs.files)
    for schema in schemas:
        for name in dict.fromkeys(schema.names):
            # Of two columns of one name neither can be meant, and the check of the logs says so.
            types.setdefault(name, []).append(schema.field(schema.names.index(name)).type)
    readable = [name for name, kinds in types.items() if all(map(_is_readable, kinds))]
    values: dict[str, list[Any]] = {name: [] for name in types}
    for batch in _sample(logs, readable):
        for name in types:
            values[name] += _values(batch[name]) if name in batch.schema.names else [None] * batch.num_rows
    return [
        Column(
            name=name,
            kind=" and ".join(dict.fromkeys(str(plain_type(kind)) for kind in kinds)),
            everywhere=(everywhere := len(kinds) == len(schemas)),
            text=everywhere and all(map(is_text, kinds)),
            passages=everywhere and all(map(_is_context, kinds)),
            talk=everywhere and all(map(can_be_messages, kinds)),
            ids=all(map(can_be_ids, kinds)),
            lists=any(_is_context(kind) and not is_text(kind) for kind in kinds),
            values=values[name],
        )
        for name, kinds in types.items()
    ]


def _is_context(kind: pa.DataType) -> bool:
    """Whether a type is that of a context; structs with a role are messages."""
    kind = plain_type(kind)
    is_talk = is_list(kind) and pa.types.is_struct(kind.value_type) and can_be_messages(kind)
    return can_be_context(kind) and not is_talk


def _is_readable(kind: pa.DataType) -> bool:
    return can_be_context(kind) or can_be_messages(kind) or not pa.types.is_nested(plain_type(kind))


def _sample(logs: Logs, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Rows of row groups that are spread over the log; those that can't be read are passed over, the run tells of them."""
    groups = spread([(file, group) for file in logs.files if file.rows for group in range(file.row_groups)], PLACES)
    for file, group in groups:
        there = file.schema.names if file.schema is not None else []
        try:
            with open_log(logs.fs, file) as log:
                rows = log.read_batches(group, -(-ROWS // len(groups)), [name for name in names if there.count(name) == 1])
                yield from islice(rows, 1)
        except (OSError, pa.ArrowException):
            continue


def _values(array: pa.Array) -> list[Any]:
    array = to_plain(array)
    if is_text(array.type):
        return list(to_strings(array)[0].to_pylist())
    if _is_context(array.type):
        return list(read_passages(array).context.to_pylist())
    try:
        return list(escape_invalid_utf8(array)[0].to_pylist())
    except (ValueError, OverflowError):  # a time that Python doesn't have, such as one in the year 10,000 or of an unknown zone
        return [None] * len(array)
