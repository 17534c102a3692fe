"""The stage of an SLM behind a server: it sends batches of rows to the server."""

from collections import OrderedDict
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from ragassay.pipeline.rows import select_ok_rows
from ragassay.pipeline.slm.config import Slm
from ragassay.pipeline.slm.score import SLM_COLUMNS, RowScore, attach_scores, score_distinct_rows
from ragassay.pipeline.slm.score_served import score_served_rows
from ragassay.pipeline.stages.slm import ROW_COLUMNS, drop_oldest
from ragassay.pipeline.stages.stage import Stage


@dataclass
class ServedSlmStage(Stage):
    """Sends requests to one server. Two batches may run at once, each with the server's number of concurrent requests.

    Attributes:
        slm: Configuration of the SLM.
    """

    slm: Slm

    columns_in = (*ROW_COLUMNS, *SLM_COLUMNS.names)
    columns_out = SLM_COLUMNS
    unit = "sentences"

    def __post_init__(self) -> None:
        """Set what depends on the settings."""
        self.name, self.replicas = self.slm.name, self.slm.replicas

    def setup(self) -> None:
        """Start without remembered results."""
        self._known: OrderedDict[bytes, RowScore] = OrderedDict()

    def __call__(self, table: pa.Table) -> pa.Table:
        """Score the rows with status ok; leave other rows unchanged."""
        indices, rows = select_ok_rows(table)
        results = score_distinct_rows(rows, self._known, partial(score_served_rows, slm=self.slm))
        drop_oldest(self._known)
        return attach_scores(table, self.slm, indices, results)
