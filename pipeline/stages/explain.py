"""The stage that asks why sentences were flagged."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ragassay.pipeline.attach import set_columns
from ragassay.pipeline.engines.environment import engine_environment
from ragassay.pipeline.reasoning.ask import AnswerStore, FlaggedResponse, ReasonerClient
from ragassay.pipeline.reasoning.config import Reasoner
from ragassay.pipeline.reasoning.cost_budget import CostBudget
from ragassay.pipeline.reasoning.strategy import Strategy
from ragassay.pipeline.stages.stage import Stage
from ragassay.pipeline.verdict.deciding import find_deciding_sentences
from ragassay.schemas.columns import HALLUCINATED
from ragassay.schemas.explanation_columns import EXPLANATION

TEXT_COLUMNS = ("question", "context", "response", "sentences")


@dataclass
class ExplainStage(Stage):
    """Runs the reasoner, or sends requests to its server. Two batches may run at once.

    Attributes:
        reasoner: Configuration of the reasoner.
        strategy: How the reasoner may disagree.
        identity: Everything that answers depend on besides the chat.
        run_id: Written to every row.
        threads: CPU threads of this replica.
        open_answers: Opens the store of answers.
        make_budget: Creates the budget of this replica; None sets no limit.
    """

    reasoner: Reasoner
    strategy: Strategy
    identity: Mapping[str, Any]
    run_id: str
    threads: int
    open_answers: Callable[[], AnswerStore]
    make_budget: Callable[[], CostBudget] | None = None

    name = "explain"
    columns_in = TEXT_COLUMNS
    columns_out = pa.schema(
        [
            *(pa.field(name, pa.string(), nullable=False) for name in ("strategy", "model", "run_id")),
            pa.field("explanations", pa.list_(EXPLANATION), nullable=False),
        ]
    )
    columns_dropped = TEXT_COLUMNS
    unit = "sentences"

    def __post_init__(self) -> None:
        """Set what depends on the settings."""
        self.replicas = self.reasoner.replicas
        self.environment = {} if self.reasoner.engine.IS_SERVED else engine_environment()

    def setup(self) -> None:
        """Load the reasoner."""
        engine = self.reasoner.load_engine(self.threads)
        budget = self.make_budget() if self.make_budget else None
        self._client = ReasonerClient(self.reasoner, self.strategy, self.identity, engine, self.open_answers(), budget)

    def __call__(self, table: pa.Table) -> pa.Table:
        """Convert hallucinated rows of `scored/` to rows of `explanations/`."""
        rows = [
            FlaggedResponse(
                row["context"] or [],
                row["question"] or "",
                row["response"] or "",
                {i: row["sentences"][i]["text"] for i in find_deciding_sentences(HALLUCINATED, row["sentences"])},
            )
            for row in table.select(TEXT_COLUMNS).to_pylist()
        ]
        values: dict[str, list[Any]] = {
            "strategy": [self.strategy.value] * len(rows),
            "model": [self.reasoner.model] * len(rows),
            "run_id": [self.run_id] * len(rows),
            "explanations": self._client.explain_responses(rows),
        }
        return set_columns(table.drop_columns(TEXT_COLUMNS), self.columns_out, values)
