"""The stage that ranks the passages of rows."""

from dataclasses import dataclass

import pyarrow as pa

from ragassay.pipeline.attach import attach
from ragassay.pipeline.engines.environment import engine_environment
from ragassay.pipeline.stages.stage import Stage
from ragassay.pipeline.text.split import make_sentence_splitter
from ragassay.pipeline.uncertainty.config import Rerank
from ragassay.pipeline.uncertainty.model import UncertaintyModel
from ragassay.pipeline.uncertainty.prompt import make_answer_encoder
from ragassay.pipeline.uncertainty.rerank import RetrievedPassages, rank_passages
from ragassay.schemas.columns import Status, raw_columns

OUTPUT_COLUMNS = raw_columns("passage_order", "usage", "error")


@dataclass
class RerankStage(Stage):
    """Runs a model that ranks the passages of a row for SLMs and uncertainty scores.

    Attributes:
        rerank: Configuration of the model and the ranking.
        splitter: Name and language of the splitter, for passages longer than the window.
        threads: CPU threads of this replica.
    """

    rerank: Rerank
    splitter: tuple[str, str]
    threads: int

    columns_in = ("question", "context", "status", *OUTPUT_COLUMNS.names)
    columns_out = OUTPUT_COLUMNS
    unit = "sentences"
    fault_prefix = "rerank"

    def __post_init__(self) -> None:
        """Set what depends on the settings."""
        self.name, self.replicas, self.environment = self.rerank.name, self.rerank.replicas, engine_environment()

    def setup(self) -> None:
        """Load the model."""
        gpus = self.rerank.replicas.num_gpus
        self._model = UncertaintyModel(self.rerank, self.rerank.engine, gpus=gpus, threads=self.threads)
        self._encoder = make_answer_encoder(self.rerank, self._model.tokenizer)
        self._split_sentences = make_sentence_splitter(*self.splitter)

    def __call__(self, table: pa.Table) -> pa.Table:
        """Rank the passages of rows with status ok; leave other rows unchanged."""
        indices, rows = select_rerank_rows(table)
        results = rank_passages(rows, self.rerank, self._encoder, self._model, self._split_sentences)
        additions = [
            {"usage": [result.make_usage_record("rerank")], "passage_order": result.order, "error": result.note}
            for result in results
        ]
        return attach(table, OUTPUT_COLUMNS, dict(zip(indices, additions, strict=True)))


def select_rerank_rows(table: pa.Table) -> tuple[list[int], list[RetrievedPassages]]:
    """Return the rows of a table with status ok: their row numbers, and their questions with all passages."""
    rows = table.select(["question", "context", "status"]).to_pylist()
    indices = [i for i, row in enumerate(rows) if row["status"] == Status.OK]
    return indices, [
        RetrievedPassages(rows[i]["question"] or "", [passage or "" for passage in rows[i]["context"]]) for i in indices
    ]
