"""The actor that asks why sentences were flagged."""

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa

from ragassay.pipeline.errors import ModelError
from ragassay.pipeline.explain.ask import Answers, Flagged, Questions, flagged_sentences
from ragassay.pipeline.explain.config import Reasoner
from ragassay.pipeline.explain.purse import Purse
from ragassay.pipeline.explain.strategy import Strategy
from ragassay.schemas.explanations import EXPLANATION


class Explainer:
    """Actor: holds the reasoner, or asks its server. Two batches may be under way at once."""

    def __init__(
        self,
        reasoner: Reasoner,
        strategy: Strategy,
        identity: Mapping[str, Any],
        run_id: str,
        threads: int,
        answers: Callable[[], Answers],
        purse: Callable[[], Purse] | None = None,
    ) -> None:
        """Load the reasoner.

        Args:
            reasoner: Its config.
            strategy: How it may disagree.
            identity: What answers depend on beside the chat.
            run_id: Written into every row.
            threads: CPU threads of this replica.
            answers: Opens the place where answers are kept.
            purse: Makes what this replica may spend; None sets no limit.
        """
        self._model, self._strategy, self._run_id = reasoner.model, strategy, run_id
        self._fault: ModelError | None = None
        try:
            engine = reasoner.load(threads)
            self._questions = Questions(reasoner, strategy, identity, engine, answers(), purse() if purse else None)
        except ModelError as error:
            # Ray passes on only the text of what a constructor raises; a call's error arrives as what it is.
            self._fault = error

    def __call__(self, table: pa.Table) -> pa.Table:
        """Rows of `explanations/` from rows of `scored/` with flagged sentences.

        Raises:
            ModelError: The model could not be loaded, or can't be used.
        """
        if self._fault:
            raise self._fault
        rows = [
            Flagged(row["context"] or [], row["question"] or "", row["response"] or "", flagged_sentences(row["sentences"]))
            for row in table.select(["question", "context", "response", "sentences"]).to_pylist()
        ]
        told = self._questions.explain(rows)
        texts = {"strategy": self._strategy.value, "model": self._model, "run_id": self._run_id}
        table = table.drop_columns(["question", "context", "response", "sentences"])
        for name, text in texts.items():
            table = table.append_column(pa.field(name, pa.string(), nullable=False), pa.array([text] * len(rows), pa.string()))
        return table.append_column(
            pa.field("explanations", pa.list_(EXPLANATION), nullable=False), pa.array(told, pa.list_(EXPLANATION))
        )
