"""The stage of an SLM behind a server: it asks the server about batches of rows."""

from collections import OrderedDict
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from ragassay.pipeline.rows import good_rows
from ragassay.pipeline.slm.config import Slm
from ragassay.pipeline.slm.score import SLM_COLUMNS, RowScore, attach_scores, score_once
from ragassay.pipeline.slm.served import ask_rows
from ragassay.pipeline.stages.slm import ROW_COLUMNS, forget
from ragassay.pipeline.stages.stage import Stage


@dataclass
class ServedScorer(Stage):
    """Asks one server. Two batches may be under way at once, each with as many requests in flight as the server gets.

    Attributes:
        slm: The SLM's config.
    """

    slm: Slm

    columns_in = (*ROW_COLUMNS, *SLM_COLUMNS.names)
    columns_out = SLM_COLUMNS
    unit = "sentences"

    def __post_init__(self) -> None:
        """Declare what depends on the settings."""
        self.name, self.replicas = self.slm.name, self.slm.replicas

    def setup(self) -> None:
        """Remember no results yet."""
        self._known: OrderedDict[bytes, RowScore] = OrderedDict()

    def __call__(self, table: pa.Table) -> pa.Table:
        """Score the rows whose status is ok; leave the others as they are."""
        places, rows = good_rows(table)
        results = score_once(rows, self._known, partial(ask_rows, slm=self.slm))
        forget(self._known)
        return attach_scores(table, self.slm, places, results)
