"""The stage of one SLM: it runs the SLM's engine and scores batches of rows."""

from collections import OrderedDict
from dataclasses import dataclass

import pyarrow as pa

from ragassay.pipeline.engines.engine_thread import EngineThread
from ragassay.pipeline.engines.environment import engine_environment
from ragassay.pipeline.rows import select_ok_rows
from ragassay.pipeline.slm.config import Slm
from ragassay.pipeline.slm.evidence import EVIDENCE_COLUMNS, attach_evidence, score_rows_with_evidence
from ragassay.pipeline.slm.prompt import PromptBuilder
from ragassay.pipeline.slm.score import SLM_COLUMNS, RowScore, attach_scores, score_rows
from ragassay.pipeline.stages.stage import Stage
from ragassay.pipeline.text.split import make_sentence_splitter

MAX_REMEMBERED_ROWS = 50_000
"""Rows whose results an actor remembers for repetitions in later batches: about 50 MB."""

ROW_COLUMNS = ("question", "context", "response", "sentences", "passage_order", "status")
"""Columns that `select_ok_rows` reads."""


def drop_oldest(known: OrderedDict[bytes, RowScore]) -> None:
    """Drop the oldest results beyond the limit."""
    while len(known) > MAX_REMEMBERED_ROWS:
        known.popitem(last=False)


@dataclass
class SlmStage(Stage):
    """Scores rows with one SLM, whose engine runs on a separate thread.

    Two batches may run at once: while the engine works on one batch, the other is tokenized, so the engine never waits. Faults
    after the engine call are contained row by row, so that none of its work is repeated.

    Attributes:
        slm: Configuration of the SLM.
        splitter: Name and language of the splitter, for passages longer than the window.
        threads: CPU threads of this replica.
        keep_best: Number of top-ranked passages to keep if not all fit the window; None keeps all.
    """

    slm: Slm
    splitter: tuple[str, str]
    threads: int
    keep_best: int | None = None

    columns_in = (*ROW_COLUMNS, *SLM_COLUMNS.names)
    columns_out = SLM_COLUMNS
    unit = "sentences"

    def __post_init__(self) -> None:
        """Set what depends on the settings."""
        self.name, self.replicas = self.slm.name, self.slm.replicas
        self.environment = engine_environment(with_intel_openmp=self.slm.local_engine.USES_INTEL_OPENMP)
        if self.slm.evidence:
            self.columns_in = (*self.columns_in, *EVIDENCE_COLUMNS.names)
            self.columns_out = pa.schema([*SLM_COLUMNS, *EVIDENCE_COLUMNS])

    def setup(self) -> None:
        """Load the engine."""
        slm, threads = self.slm, self.threads
        self._engine = EngineThread(lambda: slm.load_engine(threads), f"SLM {slm.name!r}")
        self._builder = PromptBuilder(slm, self._engine.tokenizer)
        self._engine.warm_up([*self._builder.yes_ids, *self._builder.no_ids])
        self._split_sentences = make_sentence_splitter(*self.splitter)
        self._known: OrderedDict[bytes, RowScore] = OrderedDict()

    def __call__(self, table: pa.Table) -> pa.Table:
        """Score the rows with status ok; leave other rows unchanged."""
        indices, rows = select_ok_rows(table, self.keep_best)
        score = score_rows_with_evidence if self.slm.evidence else score_rows
        results = score(rows, self.slm, self._builder, self._engine, self._split_sentences, self._known)
        drop_oldest(self._known)
        table = attach_scores(table, self.slm, indices, results)
        return attach_evidence(table, indices, rows, results) if self.slm.evidence else table
