"""The stage that puts the passages of rows in order."""

from dataclasses import dataclass

import pyarrow as pa

from ragassay.pipeline.attach import attach
from ragassay.pipeline.engines.environment import engine_environment
from ragassay.pipeline.stages.stage import Stage
from ragassay.pipeline.text.split import sentences_with
from ragassay.pipeline.uncertainty.config import Rerank
from ragassay.pipeline.uncertainty.prompt import answer_encoder
from ragassay.pipeline.uncertainty.reader import Reader
from ragassay.pipeline.uncertainty.rerank import Found, rank_rows
from ragassay.schemas.columns import Status, raw_columns

COLUMNS = raw_columns("passage_order", "usage", "error")


@dataclass
class Reranker(Stage):
    """Holds one model, and says in which order SLMs and scores of uncertainty get the passages of a row.

    Attributes:
        rerank: Which model, and how.
        splitter: Name and language of the splitter, for passages longer than the window.
        threads: CPU threads of this replica.
    """

    rerank: Rerank
    splitter: tuple[str, str]
    threads: int

    columns_in = ("question", "context", "status", *COLUMNS.names)
    columns_out = COLUMNS
    unit = "sentences"
    fault_prefix = "rerank"

    def __post_init__(self) -> None:
        """Declare what depends on the settings."""
        self.name, self.replicas, self.environment = self.rerank.name, self.rerank.replicas, engine_environment()

    def setup(self) -> None:
        """Load the model."""
        gpus = self.rerank.replicas.num_gpus
        self._reader = Reader(self.rerank, self.rerank.engine, gpus=gpus, threads=self.threads)
        self._encoder = answer_encoder(self.rerank, self._reader.tokenizer)
        self._sentences_of = sentences_with(*self.splitter)

    def __call__(self, table: pa.Table) -> pa.Table:
        """Put the passages of the rows whose status is ok in order; leave the others as they are."""
        places, rows = found_of(table)
        results = rank_rows(rows, self.rerank, self._encoder, self._reader, self._sentences_of)
        additions = [{"usage": [r.usage("rerank")], "passage_order": r.order, "error": r.note} for r in results]
        return attach(table, COLUMNS, dict(zip(places, additions, strict=True)))


def found_of(table: pa.Table) -> tuple[list[int], list[Found]]:
    """The rows of a table whose status is ok: their places in it, and their questions with all of their passages."""
    rows = table.select(["question", "context", "status"]).to_pylist()
    places = [i for i, row in enumerate(rows) if row["status"] == Status.OK]
    return places, [Found(rows[i]["question"] or "", [passage or "" for passage in rows[i]["context"]]) for i in places]
