"""The stage of one SLM: it holds the SLM's engine and scores batches of rows."""

from collections import OrderedDict
from dataclasses import dataclass

import pyarrow as pa

from ragassay.pipeline.engines.engine_thread import EngineThread
from ragassay.pipeline.engines.environment import engine_environment
from ragassay.pipeline.rows import good_rows
from ragassay.pipeline.slm.config import Slm
from ragassay.pipeline.slm.prompt import PromptBuilder
from ragassay.pipeline.slm.score import SLM_COLUMNS, RowScore, attach_scores, score_rows
from ragassay.pipeline.stages.stage import Stage
from ragassay.pipeline.text.split import sentences_with

REMEMBERED_ROWS = 50_000
"""Rows whose results an actor remembers, for their repetitions in later batches: about 50 MB."""

ROW_COLUMNS = ("question", "context", "response", "sentences", "passage_order", "status")
"""Columns that `good_rows` reads."""


def forget(known: OrderedDict[bytes, RowScore]) -> None:
    """Drop the oldest results where there are too many."""
    while len(known) > REMEMBERED_ROWS:
        known.popitem(last=False)


@dataclass
class SlmScorer(Stage):
    """Scores rows with one SLM, whose engine has a thread of its own.

    Two batches may be under way at once: while the engine is busy with one, the other is tokenised and waits, so that the
    engine never does. Faults are contained row by row behind the engine, so that none of its work is done again.

    Attributes:
        slm: The SLM's config.
        splitter: Name and language of the splitter, for passages longer than the window.
        threads: CPU threads of this replica.
        keep: Passages of a re-ranked row to keep where not all fit the window; None keeps all.
    """

    slm: Slm
    splitter: tuple[str, str]
    threads: int
    keep: int | None = None

    columns_in = (*ROW_COLUMNS, *SLM_COLUMNS.names)
    columns_out = SLM_COLUMNS
    unit = "sentences"

    def __post_init__(self) -> None:
        """Declare what depends on the settings."""
        self.name, self.replicas, self.environment = self.slm.name, self.slm.replicas, engine_environment()

    def setup(self) -> None:
        """Load the engine."""
        slm, threads = self.slm, self.threads
        self._engine = EngineThread(lambda: slm.load_engine(threads), f"SLM {slm.name!r}")
        self._builder = PromptBuilder(slm, self._engine.tokenizer)
        self._engine.warm_up([*self._builder.yes, *self._builder.no])
        self._sentences_of = sentences_with(*self.splitter)
        self._known: OrderedDict[bytes, RowScore] = OrderedDict()

    def __call__(self, table: pa.Table) -> pa.Table:
        """Score the rows whose status is ok; leave the others as they are."""
        places, rows = good_rows(table, self.keep)
        results = score_rows(rows, self.slm, self._builder, self._engine, self._sentences_of, self._known)
        forget(self._known)
        return attach_scores(table, self.slm, places, results)
