"""The stages before and behind a cascade's judge: rows of `scored/` as an SLM takes them, rows of `escalated/` from them."""

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ragassay.pipeline.attach import with_columns
from ragassay.pipeline.stages.stage import Stage
from ragassay.schemas.columns import MEMBER, USAGE, Status, raw_columns


@dataclass
class ToJudge(Stage):
    """Makes rows of `scored/` rows as the stages of an SLM take them, as if nobody had said anything of them."""

    name = "to judge"
    columns_in = ()
    columns_out = raw_columns("members", "evidence", "usage", "context_windows", "passage_order", "status", "error")

    def __call__(self, table: pa.Table) -> pa.Table:
        """Add the columns."""
        known = {"members": [], "usage": [], "status": Status.OK.value}
        values = {name: [known.get(name)] * table.num_rows for name in self.columns_out.names}
        return with_columns(table, self.columns_out, values)


@dataclass
class FromJudge(Stage):
    """Makes rows of `escalated/`, with the keys of their partitions: what the judge says of each, or why it says nothing.

    Attributes:
        run_id: Written into every row.
    """

    run_id: str

    name = "from judge"
    columns_in = ("members", "usage")
    columns_out = pa.schema([("judge", MEMBER), ("usage", USAGE), ("run_id", pa.string())])
    columns_dropped = ("question", "context", "response", "sentences", "members", "evidence", "usage", "passage_order")

    def __call__(self, table: pa.Table) -> pa.Table:
        """Take the judge's own entries out of the lists."""
        values: dict[str, list[Any]] = {
            "judge": [_only(row) for row in table["members"].to_pylist()],
            "usage": [_only(row) for row in table["usage"].to_pylist()],
            "run_id": [self.run_id] * table.num_rows,
        }
        return with_columns(table.drop_columns(list(self.columns_dropped)), self.columns_out, values)


def _only(said: list[dict[str, object]] | None) -> dict[str, object] | None:
    return said[0] if said else None
