"""Drop the text of rows before they are written: offsets, scores, statuses and keys stay."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from ragassay.pipeline.engines.server import QUOTE_START
from ragassay.pipeline.stages.stage import Stage
from ragassay.schemas.columns import EVIDENCE, SPAN, raw_columns

TEXT_COLUMNS = ("question", "context", "response")

PASSAGE_IDS = "passage_ids"
"""Passage ids are often names of files, addresses or customers, so they count as text."""

_MISSING = EVIDENCE.field("missing").type


@dataclass
class DropTextStage(Stage):
    """Drops the user's text from rows of `raw/`. A fault ends the run, because the row still contains its text.

    It sets question, context, response, sentence texts and the texts that evidence misses to null, and passage ids unless they
    are kept. It removes server quotes from errors.

    Attributes:
        columns_dropped: User's columns to remove.
        keep_passage_ids: Whether to keep passage ids.
    """

    columns_dropped: tuple[str, ...]
    keep_passage_ids: bool = False

    name = "drop_text"
    columns_in = (*TEXT_COLUMNS, PASSAGE_IDS, "sentences", "evidence", "error")
    columns_out = raw_columns(*columns_in)

    def __call__(self, table: pa.Table) -> pa.Table:
        """Drop the text of rows that have all columns of `raw/`."""
        table = table.drop_columns([name for name in self.columns_dropped if name in table.column_names])
        for name in TEXT_COLUMNS if self.keep_passage_ids else (*TEXT_COLUMNS, PASSAGE_IDS):
            table = _replace_column(table, name, pa.nulls(table.num_rows, table.schema.field(name).type))
        errors = [error and error.partition(QUOTE_START)[0] for error in table["error"].to_pylist()]
        table = _replace_column(table, "error", pa.array(errors, pa.string()))
        for name, change in (
            ("sentences", _clear_sentences),
            ("evidence", partial(_clear_evidence, keep_ids=self.keep_passage_ids)),
        ):
            chunks = [_map_lists(chunk, change) for chunk in table[name].chunks]
            table = _replace_column(table, name, pa.chunked_array(chunks, table.schema.field(name).type))
        return table


def _replace_column(table: pa.Table, name: str, column: pa.Array | pa.ChunkedArray) -> pa.Table:
    index = table.schema.get_field_index(name)
    return table.set_column(index, table.schema.field(index), column)


def _map_lists(lists: pa.ListArray, change: Callable[[pa.StructArray], pa.StructArray]) -> pa.ListArray:
    lengths = pc.fill_null(pc.list_value_length(lists), 0)
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(lengths).cast(pa.int32())])
    return pa.ListArray.from_arrays(offsets, change(lists.flatten()), mask=pc.is_null(lists))


def _clear_sentences(spans: pa.StructArray) -> pa.StructArray:
    parts = [pa.nulls(len(spans), field.type) if field.name == "text" else pc.struct_field(spans, field.name) for field in SPAN]
    return pa.StructArray.from_arrays(parts, fields=list(SPAN))


def _clear_missing(missing: pa.StructArray) -> pa.StructArray:
    fields = list(_MISSING.value_type)
    parts = [
        pa.nulls(len(missing), field.type) if field.name == "text" else pc.struct_field(missing, field.name) for field in fields
    ]
    return pa.StructArray.from_arrays(parts, fields=fields)


def _clear_evidence(evidence: pa.StructArray, keep_ids: bool) -> pa.StructArray:
    def part(field: pa.Field) -> pa.Array:
        values = pc.struct_field(evidence, field.name)
        if field.name == "missing":
            return _map_lists(values, _clear_missing)
        return pa.nulls(len(values), field.type) if field.name == "passage_id" and not keep_ids else values

    return pa.StructArray.from_arrays([part(field) for field in EVIDENCE], fields=list(EVIDENCE))
