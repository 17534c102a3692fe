"""Read contexts of any supported shape as lists of passages with ids."""

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
    normalize_name,
    parse_documents,
    parse_json,
    parse_number,
)
from ragassay.jobs.input.text import can_be_ids, ids_to_strings, to_strings, wrap_in_lists
from ragassay.jobs.input.types import is_list, is_text, plain_type, to_plain
from ragassay.pipeline.arrays import Floats

TEXT_LIST = pa.list_(pa.string())
FieldPath = tuple[str, ...]


@dataclass(frozen=True)
class PassageColumn:
    """A column of contexts.

    Attributes:
        context: list<string>: the passages of each row.
        ids: list<string>: their ids, in the same order; null for a row without ids.
        invalid_utf8: Numbers of the rows with invalid UTF-8.
        invalid_json: Numbers of the rows with invalid JSON. Their only passage is the content of the column.
    """

    context: pa.Array
    ids: pa.Array
    invalid_utf8: list[int] = field(default_factory=list)
    invalid_json: list[int] = field(default_factory=list)


def can_be_context(kind: pa.DataType) -> bool:
    """Return whether a column of this type can be read as contexts: text, lists of text, or (lists of) structs with text."""
    kind = plain_type(kind)
    inner = kind.value_type if is_list(kind) else kind
    return is_text(inner) or (pa.types.is_struct(inner) and bool(_text_paths(inner)))


def read_passages(array: pa.Array, separator: str | None = None) -> PassageColumn:
    """Read a column of contexts.

    A string is one passage, or the passages of a JSON list or object. A list of strings is unchanged. A list of structs is
    sorted by rank if it has ranks.

    Args:
        array: Array of a type that `can_be_context`.
        separator: Text between the passages of a string that is not JSON; None reads one passage.
    """
    array = to_plain(array)
    kind = array.type
    if pa.types.is_struct(kind):
        array = pa.ListArray.from_arrays(pa.array(range(len(array) + 1), pa.int32()), array, mask=pc.is_null(array))
    if is_list(array.type) and pa.types.is_struct(array.type.value_type):
        return _read_structs(array)
    context, bad = to_strings(array)
    if is_list(context.type):
        return PassageColumn(context, pa.nulls(len(context), TEXT_LIST), bad)
    return _read_strings(context, bad, separator)


def documents_to_columns(rows: Sequence[Sequence[Document | None] | None]) -> tuple[pa.Array, pa.Array]:
    """Convert the documents of each row to contexts and ids; see `PassageColumn`."""
    context = [None if row is None else [document and document.text for document in row] for row in rows]
    ids = [None if row is None else [document and document.id for document in row] for row in rows]
    return pa.array(context, TEXT_LIST), pa.array([row if row and any(row) else None for row in ids], TEXT_LIST)


def split_passages(text: str, separator: str) -> list[str]:
    """Split a text into passages without the white space around them; empty ones are left out."""
    return [passage.strip() for passage in text.split(separator) if passage.strip()]


def _read_strings(array: pa.Array, bad: list[int], separator: str | None) -> PassageColumn:
    if separator is None and not pc.any(pc.match_substring_regex(array, r"^[ \t\r\n]*[\[{]")).as_py():
        return PassageColumn(wrap_in_lists(array), pa.nulls(len(array), TEXT_LIST), bad)
    rows: list[Sequence[Document | None] | None] = []
    invalid_json = []
    for number, text in enumerate(array.to_pylist()):
        documents = None
        try:
            documents = None if text is None else parse_documents(parse_json(text))
        except ValueError:
            invalid_json.append(number)
        if documents is None and text is not None:
            documents = [Document(text)] if separator is None else list(map(Document, split_passages(text, separator)))
        rows.append(documents)
    return PassageColumn(*documents_to_columns(rows), bad, invalid_json)


def _read_structs(array: pa.Array) -> PassageColumn:
    flat = array.flatten()
    lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    row_of = np.repeat(np.arange(len(array)), lengths)
    text, bad = _first_value([to_strings(pc.struct_field(flat, path)) for path in _text_paths(flat.type)], len(flat))
    ids, bad_ids = _first_value(
        [ids_to_strings(pc.struct_field(flat, path)) for path in _find_fields(flat.type, ID_NAMES, can_be_ids)], len(flat)
    )
    ranks = _read_ranks(flat)
    if ranks is not None:
        order = pa.array(np.lexsort((np.arange(len(flat)), ranks, row_of)))
        text, ids = text.take(order), ids.take(order)
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32())
    nulls = pc.is_null(array)
    has_ids = np.zeros(len(array), dtype=bool)
    has_ids[row_of[pc.is_valid(ids).to_numpy(zero_copy_only=False)]] = True
    return PassageColumn(
        pa.ListArray.from_arrays(offsets, text, mask=nulls),
        pa.ListArray.from_arrays(offsets, ids, mask=pa.array(~has_ids)),
        sorted({int(row_of[index]) for index in [*bad, *bad_ids]}),
    )


def _first_value(columns: Sequence[tuple[pa.Array, list[int]]], size: int) -> tuple[pa.Array, list[int]]:
    """Return each row's first value that is not empty, else the first not null; and the rows with invalid UTF-8."""
    if not columns:
        return pa.nulls(size, pa.string()), []
    arrays = [column for column, _ in columns]
    filled = [pc.if_else(pc.equal(column, ""), pa.scalar(None, pa.string()), column) for column in arrays]
    return pc.coalesce(*filled, *arrays), [row for _, bad in columns for row in bad]


def _read_ranks(flat: pa.Array) -> Floats | None:
    paths = _find_fields(
        flat.type, RANK_NAMES, lambda kind: pa.types.is_integer(kind) or pa.types.is_floating(kind) or is_text(kind)
    )
    if not paths:
        return None
    ranks = pc.struct_field(flat, paths[0])
    if is_text(ranks.type):
        ranks = pa.array([parse_number(rank) for rank in to_strings(ranks)[0].to_pylist()], pa.float64())
    ranks = ranks.cast(pa.float64(), safe=False)
    values = pc.fill_null(ranks, np.inf).to_numpy(zero_copy_only=False)
    return np.where(np.isnan(values), np.inf, values)


def _text_paths(kind: pa.StructType) -> list[FieldPath]:
    return _find_fields(kind, TEXT_NAMES, is_text)


def _find_fields(kind: pa.StructType, names: Sequence[str], fits: Callable[[pa.DataType], bool]) -> list[FieldPath]:
    """Find the fields of a struct with one of these names and a type that fits, in the order of the names."""
    by_name: dict[str, FieldPath] = {}
    for name, path, inner in _iterate_fields(kind):
        if name in names and fits(inner):
            by_name.setdefault(name, path)
    return [by_name[name] for name in names if name in by_name]


def _iterate_fields(kind: pa.StructType) -> Iterator[tuple[str, FieldPath, pa.DataType]]:
    for outer in kind:
        name = normalize_name(outer.name)
        yield name, (outer.name,), outer.type
        if pa.types.is_struct(outer.type):
            for inner in outer.type:
                yield f"{name}.{normalize_name(inner.name)}", (outer.name, inner.name), inner.type
