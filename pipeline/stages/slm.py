"""The actor that holds one SLM's engine and scores batches of rows."""

from collections import OrderedDict
from collections.abc import Callable

import pyarrow as pa

from ragassay.pipeline.engines.engine_thread import EngineThread
from ragassay.pipeline.engines.protocol import EngineOutput
from ragassay.pipeline.errors import ModelError
from ragassay.pipeline.rows import good_rows
from ragassay.pipeline.slm.config import Slm
from ragassay.pipeline.slm.prompt import PromptBuilder
from ragassay.pipeline.slm.score import RowScore, attach_all, score_rows
from ragassay.pipeline.split import sentences_with

REMEMBERED_ROWS = 50_000
"""Rows whose results an actor remembers, for their repetitions in later batches: about 50 MB."""


def forget(known: OrderedDict[bytes, RowScore]) -> None:
    """Drop the oldest results where there are too many."""
    while len(known) > REMEMBERED_ROWS:
        known.popitem(last=False)


class SlmScorer:
    """Actor: holds one SLM's engine, on a thread of its own, and scores batches of rows.

    Two batches may be under way at once: while the engine is busy with one, the other is tokenised and waits, so that the
    engine never does.
    """

    def __init__(
        self,
        slm: Slm,
        splitter: tuple[str, str],
        threads: int,
        metrics: Callable[[str], Callable[[EngineOutput], None]] | None = None,
        keep: int | None = None,
    ) -> None:
        """Load the engine.

        Args:
            slm: The SLM's config.
            splitter: Name and language of the splitter, for passages longer than the window.
            threads: CPU threads of this replica.
            metrics: Makes, from the SLM's name, what is told of every engine call.
            keep: Passages of a re-ranked row to keep where not all fit the window; None keeps all.
        """
        self._slm = slm
        self._keep = keep
        self._fault: ModelError | None = None
        try:
            self._engine = EngineThread(lambda: slm.load_engine(threads), metrics and metrics(slm.name), f"SLM {slm.name!r}")
            self._builder = PromptBuilder(slm, self._engine.tokenizer)
            self._engine.warm_up([*self._builder.yes, *self._builder.no])
        except ModelError as error:
            # Ray passes on only the text of what a constructor raises; a call's error arrives as what it is.
            self._fault = error
        self._sentences_of = sentences_with(*splitter)
        self._known: OrderedDict[bytes, RowScore] = OrderedDict()

    def __call__(self, table: pa.Table) -> pa.Table:
        """Score the rows whose status is ok; leave the others as they are.

        Raises:
            ModelError: The model could not be loaded, or gave NaN.
        """
        if self._fault:
            raise self._fault
        places, rows = good_rows(table, self._keep)
        results = score_rows(rows, self._slm, self._builder, self._engine, self._sentences_of, self._known)
        forget(self._known)
        return attach_all(table, self._slm, places, results)
