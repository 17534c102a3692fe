"""The actor that holds the model that puts the passages of rows in order."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from ragassay.pipeline.contain import contain, fault_of, with_status
from ragassay.pipeline.errors import ModelError
from ragassay.pipeline.split import sentences_with
from ragassay.pipeline.uncertainty.config import Rerank
from ragassay.pipeline.uncertainty.prompt import answer_encoder
from ragassay.pipeline.uncertainty.reader import Reader
from ragassay.pipeline.uncertainty.rerank import Found, Ranked, rank_rows
from ragassay.schemas.columns import USAGE, Status


class Reranker:
    """Actor: holds one model, and says in which order SLMs and scores of uncertainty get the passages of a row."""

    def __init__(self, rerank: Rerank, splitter: tuple[str, str], threads: int) -> None:
        """Load the model.

        Args:
            rerank: Which, and how.
            splitter: Name and language of the splitter, for passages longer than the window.
            threads: CPU threads of this replica.
        """
        self._rerank = rerank
        self._fault: ModelError | None = None
        try:
            self._reader = Reader(rerank, rerank.engine, gpus=rerank.replicas.num_gpus, threads=threads)
            self._encoder = answer_encoder(rerank, self._reader.tokenizer)
        except ModelError as error:
            # Ray passes on only the text of what a constructor raises; a call's error arrives as what it is.
            self._fault = error
        self._sentences_of = sentences_with(*splitter)

    def __call__(self, table: pa.Table) -> pa.Table:
        """Put the passages of the rows whose status is ok in order; leave the others as they are.

        Raises:
            ModelError: The model could not be loaded, or gave NaN.
        """
        if self._fault:
            raise self._fault
        return pa.concat_tables(
            contain(
                table.num_rows,
                lambda some: self._rank(table[some]),
                lambda i, error: with_status(table.slice(i, 1), Status.ERROR, f"rerank: {fault_of(error)}"),
            )
        )

    def _rank(self, table: pa.Table) -> pa.Table:
        places, rows = found_of(table)
        return attach(table, places, rank_rows(rows, self._rerank, self._encoder, self._reader, self._sentences_of))


def found_of(table: pa.Table) -> tuple[list[int], list[Found]]:
    """The rows of a table whose status is ok: their places in it, and their questions with all of their passages."""
    rows = table.select(["question", "context", "status"]).to_pylist()
    places = [i for i, row in enumerate(rows) if row["status"] == Status.OK]
    return places, [Found(rows[i]["question"] or "", [passage or "" for passage in rows[i]["context"]]) for i in places]


def attach(table: pa.Table, places: Sequence[int], results: Sequence[Ranked]) -> pa.Table:
    """Put the order of the passages into the rows' columns.

    Args:
        table: All rows.
        places: Row number of each result.
        results: One a row whose status is ok.
    """
    types = {"passage_order": pa.list_(pa.int32()), "usage": pa.list_(USAGE), "error": pa.string()}
    columns: dict[str, list[Any]] = {name: table[name].to_pylist() for name in types}
    for i, result in zip(places, results, strict=True):
        columns["passage_order"][i] = result.order
        columns["usage"][i].append(result.usage("rerank"))
        columns["error"][i] = "; ".join(filter(None, [columns["error"][i], result.note])) or None
    for name, kind in types.items():
        column = pa.array(columns[name], type=kind)
        table = table.set_column(table.schema.get_field_index(name), table.schema.field(name), column)
    return table
