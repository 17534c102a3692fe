"""The stages before and after a cascade's judge: `scored/` rows become SLM input, and SLM output becomes `escalated/` rows."""

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ragassay.pipeline.attach import set_columns
from ragassay.pipeline.stages.stage import Stage
from ragassay.schemas.columns import MEMBER, USAGE, Status, raw_columns


@dataclass
class JudgeInputStage(Stage):
    """Converts rows of `scored/` to input of an SLM's stages, without the results of earlier members."""

    name = "to judge"
    columns_in = ()
    columns_out = raw_columns("members", "evidence", "usage", "context_windows", "passage_order", "status", "error")

    def __call__(self, table: pa.Table) -> pa.Table:
        """Add the columns."""
        initial = {"members": [], "usage": [], "status": Status.OK.value}
        values = {name: [initial.get(name)] * table.num_rows for name in self.columns_out.names}
        return set_columns(table, self.columns_out, values)


@dataclass
class JudgeOutputStage(Stage):
    """Converts SLM output to rows of `escalated/`, with their partition keys: the judge's output, or why there is none.

    Attributes:
        run_id: Written to every row.
    """

    run_id: str

    name = "from judge"
    columns_in = ("members", "usage")
    columns_out = pa.schema([("judge", MEMBER), ("usage", USAGE), ("run_id", pa.string())])
    columns_dropped = ("question", "context", "response", "sentences", "members", "evidence", "usage", "passage_order")

    def __call__(self, table: pa.Table) -> pa.Table:
        """Take the judge's entries from the lists."""
        values: dict[str, list[Any]] = {
            "judge": [_first_entry(row) for row in table["members"].to_pylist()],
            "usage": [_first_entry(row) for row in table["usage"].to_pylist()],
            "run_id": [self.run_id] * table.num_rows,
        }
        return set_columns(table.drop_columns(list(self.columns_dropped)), self.columns_out, values)


def _first_entry(entries: list[dict[str, object]] | None) -> dict[str, object] | None:
    return entries[0] if entries else None
