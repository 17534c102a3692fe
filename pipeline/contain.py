"""A row's fault is that row's: run a step over rows, and where it raises, part them until the row at fault is found."""

from collections.abc import Callable
from pathlib import Path
from traceback import walk_tb
from typing import TypeVar

import pyarrow as pa

from ragassay.pipeline.errors import RagassayError
from ragassay.schemas.columns import Status

ROOT = Path(__file__).parent.parent

FAULTS_OF_THE_RUN = (RagassayError, OSError, ImportError)
"""What no row is to blame for: a model, the job file, a full disk, a missing library."""

Piece = TypeVar("Piece")
Item = TypeVar("Item")


def contain(rows: int, step: Callable[[slice], Piece], fail: Callable[[int, Exception], Piece]) -> list[Piece]:
    """Run a step over all rows at once; where it raises, over either half, and so on down to the single row.

    Args:
        rows: How many there are; without any, the step is run once.
        step: Gives the result of a stretch of rows.
        fail: Gives the result of a row, by its place, that made the step raise.

    Returns:
        The results of stretches that are, one after the other, all rows.

    Raises:
        RagassayError: And other faults of the run rather than a row's; memory that is not enough for any of several rows.
    """
    starved = 0

    def of(start: int, stop: int) -> list[Piece]:
        nonlocal starved
        try:
            return [step(slice(start, stop))]
        except FAULTS_OF_THE_RUN:
            raise
        except Exception as error:
            if stop - start <= 1:
                starved += isinstance(error, MemoryError)
                if stop == start or starved == rows > 1:
                    raise
                return [fail(start, error)]
        middle = (start + stop) // 2
        return [*of(start, middle), *of(middle, stop)]

    return of(0, rows)


def contain_one(step: Callable[[Item], Piece], item: Item, fail: Callable[[Exception], Piece]) -> Piece:
    """The result of a step over one row, or over something of one; `fail` gives it where the step raises. See `contain`."""
    try:
        return step(item)
    except FAULTS_OF_THE_RUN:
        raise
    except Exception as error:
        return fail(error)


def with_status(rows: pa.Table, status: Status, error: str) -> pa.Table:
    """Rows of the plan that turned out not to be scorable: without members and evidence, with a status and its reason."""
    texts = {"status": status.value, "error": error}
    for name in ("members", "evidence", *texts):
        field = rows.schema.field(name)
        column = pa.array([texts[name]] * rows.num_rows) if name in texts else pa.nulls(rows.num_rows, field.type)
        rows = rows.set_column(rows.schema.get_field_index(name), field, column)
    return rows


def fault_of(error: Exception) -> str:
    """What to say of a row that made a step raise: the exception's class and where it arose.

    Its message is left out: it may hold text of the log.
    """
    places = [(Path(frame.f_code.co_filename), frame.f_code.co_name, line) for frame, line in walk_tb(error.__traceback__)]
    ours = [(path.relative_to(ROOT), name, line) for path, name, line in places if ROOT in path.parents]
    path, name, line = ours[-1]  # the deepest
    return f"{type(error).__name__} in {name} ({path}, line {line})"
