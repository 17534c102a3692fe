"""The actor that asks the server of one SLM about batches of rows."""

from collections import OrderedDict
from functools import partial

import pyarrow as pa

from ragassay.pipeline.rows import good_rows
from ragassay.pipeline.slm.config import Slm
from ragassay.pipeline.slm.score import RowScore, attach_all, score_once
from ragassay.pipeline.slm.served import ask_rows
from ragassay.pipeline.stages.slm import forget


class ServedScorer:
    """Actor: asks one server. Two batches may be under way at once, each with as many requests in flight as the server gets."""

    def __init__(self, slm: Slm) -> None:
        """Remember whom to ask.

        Args:
            slm: The SLM's config.
        """
        self._slm = slm
        self._known: OrderedDict[bytes, RowScore] = OrderedDict()

    def __call__(self, table: pa.Table) -> pa.Table:
        """Score the rows whose status is ok; leave the others as they are.

        Raises:
            ModelError: The server can't be used.
        """
        places, rows = good_rows(table)
        results = score_once(rows, self._known, partial(ask_rows, slm=self._slm))
        forget(self._known)
        return attach_all(table, self._slm, places, results)
