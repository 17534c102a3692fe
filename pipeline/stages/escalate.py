"""What stands before and behind the judge's actor: rows of `scored/` as an SLM takes them, rows of `escalated/` from them."""

import pyarrow as pa

from ragassay.schemas.columns import EVIDENCE, MEMBER, USAGE, Status


def to_judge(table: pa.Table) -> pa.Table:
    """Rows of `scored/` as the stages of an SLM take them, as if nobody had said anything of them.

    Args:
        table: Rows with `row_key`, `row_id`, question, context, response, `sentences`, and the keys of their partitions.
    """
    size = table.num_rows
    columns = {
        "members": pa.array([[]] * size, pa.list_(MEMBER)),
        "evidence": pa.nulls(size, pa.list_(EVIDENCE)),
        "usage": pa.array([[]] * size, pa.list_(USAGE)),
        "context_windows": pa.nulls(size, pa.int32()),
        "passage_order": pa.nulls(size, pa.list_(pa.int32())),
        "status": pa.array([Status.OK.value] * size),
        "error": pa.nulls(size, pa.string()),
    }
    for name, column in columns.items():
        table = table.append_column(name, column)
    return table


def from_judge(table: pa.Table, run_id: str) -> pa.Table:
    """Rows of `escalated/`, with the keys of their partitions: what the judge says of each, or why it says nothing.

    Args:
        table: Rows of `to_judge` behind the judge.
        run_id: Written into every row.
    """
    said = {
        "judge": pa.array([_only(row) for row in table["members"].to_pylist()], MEMBER),
        "usage": pa.array([_only(row) for row in table["usage"].to_pylist()], USAGE),
        "run_id": pa.array([run_id] * table.num_rows, pa.string()),
    }
    table = table.drop_columns(
        ["question", "context", "response", "sentences", "members", "evidence", "usage", "passage_order"]
    )
    for name, column in said.items():
        table = table.append_column(name, column)
    return table


def _only(said: list[dict[str, object]] | None) -> dict[str, object] | None:
    return said[0] if said else None
