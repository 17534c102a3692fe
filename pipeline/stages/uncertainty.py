"""The actor that holds the model that reads responses, for scores of uncertainty."""

from collections.abc import Sequence
from math import isnan
from typing import Any

import pyarrow as pa

from ragassay.pipeline.contain import contain, fault_of, with_status
from ragassay.pipeline.errors import ModelError
from ragassay.pipeline.rows import good_rows
from ragassay.pipeline.split import sentences_with
from ragassay.pipeline.uncertainty.config import Uncertainty
from ragassay.pipeline.uncertainty.prompt import answer_encoder
from ragassay.pipeline.uncertainty.reader import Reader
from ragassay.pipeline.uncertainty.rows import RowRead, Spoken, read_rows
from ragassay.schemas.columns import MEMBER, USAGE, Status


class UncertaintyScorer:
    """Actor: holds one model, and gives batches of rows the values of the members that are read together."""

    def __init__(self, members: Sequence[Uncertainty], splitter: tuple[str, str], threads: int) -> None:
        """Load the model.

        Args:
            members: Of one reading (`Uncertainty.reading`).
            splitter: Name and language of the splitter, for passages longer than the window.
            threads: CPU threads of this replica.
        """
        self._members = members
        self._fault: ModelError | None = None
        first = members[0]
        try:
            self._reader = Reader(first, first.engine, gpus=first.replicas.num_gpus, threads=threads)
            self._encoder = answer_encoder(first, self._reader.tokenizer)
        except ModelError as error:
            # Ray passes on only the text of what a constructor raises; a call's error arrives as what it is.
            self._fault = error
        self._sentences_of = sentences_with(*splitter)

    def __call__(self, table: pa.Table) -> pa.Table:
        """Read the rows whose status is ok; leave the others as they are.

        Raises:
            ModelError: The model could not be loaded, or gave NaN.
        """
        if self._fault:
            raise self._fault
        failed = f"uncertainty {self._members[0].name!r}: "
        return pa.concat_tables(
            contain(
                table.num_rows,
                lambda some: self._read(table[some]),
                lambda i, error: with_status(table.slice(i, 1), Status.ERROR, failed + fault_of(error)),
            )
        )

    def _read(self, table: pa.Table) -> pa.Table:
        places, rows = good_rows(table)
        spans = [[(s["start"], s["end"]) for s in table["sentences"][i].as_py()] for i in places]
        column = self._members[0].samples
        logged = table[column].to_pylist() if column in table.column_names else [None] * table.num_rows
        spoken = [
            Spoken(row, mine, [text for text in logged[i] or () if text])
            for i, row, mine in zip(places, rows, spans, strict=True)
        ]
        return attach(
            table, self._members, places, read_rows(spoken, self._members, self._encoder, self._reader, self._sentences_of)
        )


def attach(table: pa.Table, members: Sequence[Uncertainty], places: Sequence[int], results: Sequence[RowRead]) -> pa.Table:
    """Put what was read into the rows' columns.

    Args:
        table: All rows.
        members: Whose values.
        places: Row number of each result.
        results: One a row that was read.
    """
    types = {"members": pa.list_(MEMBER), "usage": pa.list_(USAGE), "context_windows": pa.int32(), "error": pa.string()}
    columns: dict[str, list[Any]] = {name: table[name].to_pylist() for name in types}
    for i, result in zip(places, results, strict=True):
        columns["members"][i] += [
            {
                "name": member.name,
                "sentence_scores": [_or_null(value) for value in result.sentences[member.name]],
                "response_score": _or_null(result.response[member.name]),
            }
            for member in members
        ]
        columns["usage"][i].append(result.usage(members[0].name))
        columns["context_windows"][i] = max(columns["context_windows"][i] or 0, result.windows) or None
        columns["error"][i] = "; ".join(filter(None, [columns["error"][i], result.note])) or None
    for name, kind in types.items():
        column = pa.array(columns[name], type=kind)
        table = table.set_column(table.schema.get_field_index(name), table.schema.field(name), column)
    return table


def _or_null(value: float) -> float | None:
    return None if isnan(value) else value
