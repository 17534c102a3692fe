"""Contexts in the shapes that logs have, as lists of passages with their ids."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ragassay.jobs.input.documents import (
    ID_NAMES,
    RANK_NAMES,
    TEXT_NAMES,
    Document,
    decoded,
    listed_documents,
    number_of,
    plain_name,
)
from ragassay.jobs.input.text import as_lists, can_be_ids, id_texts, texts
from ragassay.jobs.input.types import is_list, is_text, plain, plain_type
from ragassay.pipeline.arrays import Floats

TEXTS = pa.list_(pa.string())
Path = tuple[str, ...]


@dataclass(frozen=True)
class Passages:
    """A column of contexts.

    Attributes:
        context: list<string>: the passages of each row.
        ids: list<string>: their ids, in the same order; a row of which none has an id is null.
        no_utf8: Rows that hold bytes which are no UTF-8.
        no_json: Rows that hold JSON which can't be read; their passage is what stands there.
    """

    context: pa.Array
    ids: pa.Array
    no_utf8: list[int] = field(default_factory=list)
    no_json: list[int] = field(default_factory=list)


def can_be_context(kind: pa.DataType) -> bool:
    """Whether a column of this type can be read as contexts: texts, lists of texts, or (lists of) structs with a text."""
    kind = plain_type(kind)
    inner = kind.value_type if is_list(kind) else kind
    return is_text(inner) or (pa.types.is_struct(inner) and bool(_text_paths(inner)))


def passages(array: pa.Array) -> Passages:
    """Contexts as lists of passages.

    A string is one passage, or those of the JSON list or object that it is. A list of strings stays as it is. A list of structs
    comes in the order of their ranks where they have any.

    Args:
        array: Of a type that `can_be_context`.
    """
    array = plain(array)
    kind = array.type
    if pa.types.is_struct(kind):
        array = pa.ListArray.from_arrays(pa.array(range(len(array) + 1), pa.int32()), array, mask=pc.is_null(array))
    if is_list(array.type) and pa.types.is_struct(array.type.value_type):
        return _of_structs(array)
    context, bad = texts(array)
    if is_list(context.type):
        return Passages(context, pa.nulls(len(context), TEXTS), bad)
    return _of_strings(context, bad)


def to_columns(rows: Sequence[Sequence[Document | None] | None]) -> tuple[pa.Array, pa.Array]:
    """Documents of rows as contexts and ids; see `Passages`."""
    context = [None if row is None else [one and one.text for one in row] for row in rows]
    ids = [None if row is None else [one and one.id for one in row] for row in rows]
    return pa.array(context, TEXTS), pa.array([row if row and any(row) else None for row in ids], TEXTS)


def _of_strings(array: pa.Array, bad: list[int]) -> Passages:
    if not pc.any(pc.match_substring_regex(array, r"^[ \t\r\n]*[\[{]")).as_py():
        return Passages(as_lists(array), pa.nulls(len(array), TEXTS), bad)
    rows: list[Sequence[Document | None] | None] = []
    no_json = []
    for number, text in enumerate(array.to_pylist()):
        found = None
        try:
            found = None if text is None else listed_documents(decoded(text))
        except ValueError:
            no_json.append(number)
        rows.append([Document(text)] if found is None and text is not None else found)
    return Passages(*to_columns(rows), bad, no_json)


def _of_structs(array: pa.Array) -> Passages:
    flat = array.flatten()
    lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    row_of = np.repeat(np.arange(len(array)), lengths)
    text, bad = _first([texts(pc.struct_field(flat, path)) for path in _text_paths(flat.type)], len(flat))
    ids, bad_ids = _first(
        [id_texts(pc.struct_field(flat, path)) for path in _paths(flat.type, ID_NAMES, can_be_ids)], len(flat)
    )
    ranks = _ranks(flat)
    if ranks is not None:
        order = pa.array(np.lexsort((np.arange(len(flat)), ranks, row_of)))
        text, ids = text.take(order), ids.take(order)
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32())
    nulls = pc.is_null(array)
    has_ids = np.zeros(len(array), dtype=bool)
    has_ids[row_of[pc.is_valid(ids).to_numpy(zero_copy_only=False)]] = True
    return Passages(
        pa.ListArray.from_arrays(offsets, text, mask=nulls),
        pa.ListArray.from_arrays(offsets, ids, mask=pa.array(~has_ids)),
        sorted({int(row_of[at]) for at in [*bad, *bad_ids]}),
    )


def _first(columns: Sequence[tuple[pa.Array, list[int]]], size: int) -> tuple[pa.Array, list[int]]:
    """The first value of each row that is not empty, then the first that is not null; and the rows that are no UTF-8."""
    if not columns:
        return pa.nulls(size, pa.string()), []
    found = [column for column, _ in columns]
    filled = [pc.if_else(pc.equal(column, ""), pa.scalar(None, pa.string()), column) for column in found]
    return pc.coalesce(*filled, *found), [row for _, bad in columns for row in bad]


def _ranks(flat: pa.Array) -> Floats | None:
    paths = _paths(flat.type, RANK_NAMES, lambda kind: pa.types.is_integer(kind) or pa.types.is_floating(kind) or is_text(kind))
    if not paths:
        return None
    ranks = pc.struct_field(flat, paths[0])
    if is_text(ranks.type):
        ranks = pa.array([number_of(rank) for rank in texts(ranks)[0].to_pylist()], pa.float64())
    ranks = ranks.cast(pa.float64(), safe=False)
    found = pc.fill_null(ranks, np.inf).to_numpy(zero_copy_only=False)
    return np.where(np.isnan(found), np.inf, found)


def _text_paths(kind: pa.StructType) -> list[Path]:
    return _paths(kind, TEXT_NAMES, is_text)


def _paths(kind: pa.StructType, names: Sequence[str], fits: Callable[[pa.DataType], bool]) -> list[Path]:
    """Fields of a struct that bear one of these names and have a type that fits, in the order of the names."""
    by_name: dict[str, Path] = {}
    for name, path, inner in _leaves(kind):
        if name in names and fits(inner):
            by_name.setdefault(name, path)
    return [by_name[name] for name in names if name in by_name]


def _leaves(kind: pa.StructType) -> Iterator[tuple[str, Path, pa.DataType]]:
    for one in kind:
        yield plain_name(one.name), (one.name,), one.type
        if pa.types.is_struct(one.type):
            yield from ((f"{plain_name(one.name)}.{plain_name(sub.name)}", (one.name, sub.name), sub.type) for sub in one.type)
