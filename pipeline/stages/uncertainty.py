"""The stage that measures the uncertainty of responses with a model."""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from ragassay.pipeline.attach import RowUpdate, attach, null_if_nan
from ragassay.pipeline.engines.environment import engine_environment
from ragassay.pipeline.rows import select_ok_rows
from ragassay.pipeline.stages.slm import ROW_COLUMNS
from ragassay.pipeline.stages.stage import Stage
from ragassay.pipeline.text.split import make_sentence_splitter
from ragassay.pipeline.uncertainty.config import Uncertainty
from ragassay.pipeline.uncertainty.measure_rows import RowUncertainty, UncertaintyRow, measure_rows
from ragassay.pipeline.uncertainty.model import UncertaintyModel
from ragassay.pipeline.uncertainty.prompt import make_answer_encoder
from ragassay.schemas.columns import raw_columns

OUTPUT_COLUMNS = raw_columns("members", "usage", "context_windows", "error")


@dataclass
class UncertaintyStage(Stage):
    """Runs one model once, and computes from its output the values of several members.

    Attributes:
        members: Members of one measurement (`Uncertainty.measurement_settings`).
        splitter: Name and language of the splitter, for passages longer than the window.
        threads: CPU threads of this replica.
    """

    members: Sequence[Uncertainty]
    splitter: tuple[str, str]
    threads: int

    columns_in = (*ROW_COLUMNS, *OUTPUT_COLUMNS.names)
    columns_out = OUTPUT_COLUMNS
    unit = "sentences"

    def __post_init__(self) -> None:
        """Set what depends on the settings."""
        self.name, self.replicas = self.members[0].name, self.members[0].replicas
        self.environment = engine_environment()
        self.fault_prefix = f"uncertainty {self.name!r}"

    def setup(self) -> None:
        """Load the model."""
        first = self.members[0]
        self._model = UncertaintyModel(first, first.engine, gpus=first.replicas.num_gpus, threads=self.threads)
        self._encoder = make_answer_encoder(first, self._model.tokenizer)
        self._split_sentences = make_sentence_splitter(*self.splitter)

    def __call__(self, table: pa.Table) -> pa.Table:
        """Measure the rows with status ok; leave other rows unchanged."""
        indices, rows = select_ok_rows(table)
        spans = [[(sentence["start"], sentence["end"]) for sentence in table["sentences"][i].as_py()] for i in indices]
        column = self.members[0].samples
        logged_samples = table[column].to_pylist() if column in table.column_names else [None] * table.num_rows
        responses = [
            UncertaintyRow(row, row_spans, [text for text in logged_samples[i] or () if text])
            for i, row, row_spans in zip(indices, rows, spans, strict=True)
        ]
        results = measure_rows(responses, self.members, self._encoder, self._model, self._split_sentences)
        return attach(table, OUTPUT_COLUMNS, dict(zip(indices, map(self._make_update, results), strict=True)))

    def _make_update(self, result: RowUncertainty) -> RowUpdate:
        members = [
            {
                "name": member.name,
                "sentence_scores": [null_if_nan(value) for value in result.sentence_values[member.name]],
                "response_score": null_if_nan(result.response_value[member.name]),
            }
            for member in self.members
        ]
        usage = [result.make_usage_record(self.name)]
        return {"members": members, "usage": usage, "context_windows": result.windows or None, "error": result.note}
