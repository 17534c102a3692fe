"""What is known of the columns of logs before anyone names them: their types in all files, and values of some rows."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pyarrow as pa

from ragassay.jobs.input.files import Logs, by_schema
from ragassay.jobs.input.formats import open_log
from ragassay.jobs.input.messages import can_be_messages
from ragassay.jobs.input.passages import can_be_context, passages
from ragassay.jobs.input.text import can_be_ids, mended, texts
from ragassay.jobs.input.types import is_list, is_text, plain, plain_type

ROWS = 400
"""Rows that are looked at, about."""

PLACES = 16
"""Row groups that they are taken from, spread over the log."""

_Item = TypeVar("_Item")


@dataclass(frozen=True)
class Column:
    """A column of logs.

    Attributes:
        name: Its name.
        kinds: Its types, as Arrow has them; several where files differ.
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
    kinds: tuple[str, ...]
    everywhere: bool = True
    text: bool = False
    passages: bool = False
    talk: bool = False
    ids: bool = False
    lists: bool = False
    values: list[Any] = field(default_factory=list)

    @property
    def kind(self) -> str:
        """Its types in words."""
        return " and ".join(self.kinds)


def columns_of(logs: Logs) -> list[Column]:
    """The columns of logs, in the order of their files."""
    types: dict[str, list[pa.DataType]] = {}
    schemas = by_schema(logs.files)
    for schema in schemas:
        for name in dict.fromkeys(schema.names):
            # Of two columns of one name neither can be meant, and the check of the logs says so.
            types.setdefault(name, []).append(schema.field(schema.names.index(name)).type)
    names = {name: all(map(_is_plain, kinds)) for name, kinds in types.items()}
    values: dict[str, list[Any]] = {name: [] for name in types}
    for batch in _batches(logs, [name for name, readable in names.items() if readable]):
        for name in types:
            there = name in batch.schema.names
            values[name] += _values(batch[name]) if there else [None] * batch.num_rows
    return [
        Column(
            name=name,
            kinds=tuple(dict.fromkeys(str(plain_type(kind)) for kind in kinds)),
            everywhere=len(kinds) == len(schemas),
            text=len(kinds) == len(schemas) and all(map(is_text, kinds)),
            passages=len(kinds) == len(schemas) and all(can_be_context(kind) and not is_talk(kind) for kind in kinds),
            talk=len(kinds) == len(schemas) and all(map(can_be_messages, kinds)),
            ids=all(map(can_be_ids, kinds)),
            lists=any(map(_is_lists, kinds)),
            values=values[name],
        )
        for name, kinds in types.items()
    ]


def is_talk(kind: pa.DataType) -> bool:
    """Whether its type says that it holds messages: structs with a role."""
    kind = plain_type(kind)
    return is_list(kind) and pa.types.is_struct(kind.value_type) and can_be_messages(kind)


def _is_lists(kind: pa.DataType) -> bool:
    return not is_text(kind) and can_be_context(kind) and not is_talk(kind)


def _is_plain(kind: pa.DataType) -> bool:
    return can_be_context(kind) or can_be_messages(kind) or not pa.types.is_nested(plain_type(kind))


def _batches(logs: Logs, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Rows of row groups that are spread over the log; those that can't be read are passed over, the run tells of them."""
    groups = [(file, group) for file in logs.files if file.rows for group in range(file.row_groups)]
    places = spread(groups, PLACES)
    for file, group in places:
        mine = [name for name in names if file.schema is not None and file.schema.names.count(name) == 1]
        try:
            with open_log(logs.fs, file) as log:
                yield from _first(log.batches(group, -(-ROWS // len(places)), mine))
        except (OSError, pa.ArrowException):
            continue


def spread(items: Sequence[_Item], most: int) -> Sequence[_Item]:
    """Some of many, at most so many, from all over."""
    return items[:: max(1, -(-len(items) // most))]


def _first(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield batch
        return


def _values(array: pa.Array) -> list[Any]:
    array = plain(array)
    if is_text(array.type):
        return list(texts(array)[0].to_pylist())
    if can_be_context(array.type) and not is_talk(array.type):
        return list(passages(array).context.to_pylist())
    found = mended(array)[0]
    try:
        return list(found.to_pylist())
    except (ValueError, OverflowError):  # a time that Python doesn't have, such as one in the year 10,000 or of an unknown zone
        return [None] * len(found)
