"""Contain faults: run a step over rows, and if it raises, halve the rows until the faulty row is isolated."""

from collections.abc import Callable
from pathlib import Path
from traceback import walk_tb
from typing import TypeVar

from ragassay.pipeline.errors import RagassayError

ROOT = Path(__file__).parent.parent

RUN_FAULTS = (RagassayError, OSError, ImportError)
"""Faults of the run, not of a row: a model, the job file, a full disk, a missing library."""

Piece = TypeVar("Piece")
Item = TypeVar("Item")


def contain(rows: int, step: Callable[[slice], Piece], fail: Callable[[int, Exception], Piece]) -> list[Piece]:
    """Run a step over all rows at once; if it raises, run it over each half, down to single rows.

    Args:
        rows: Number of rows; with 0 rows the step runs once.
        step: Returns the result for a range of rows.
        fail: Returns the result for a single row, by its number, for which the step raised.

    Returns:
        Results of consecutive ranges that cover all rows.

    Raises:
        RagassayError, OSError, ImportError: The run can't continue.
        MemoryError: Memory is too small for each of several rows.
    """
    memory_errors = 0

    def run_range(start: int, stop: int) -> list[Piece]:
        nonlocal memory_errors
        try:
            return [step(slice(start, stop))]
        except RUN_FAULTS:
            raise
        except Exception as error:
            if stop - start <= 1:
                memory_errors += isinstance(error, MemoryError)
                if stop == start or memory_errors == rows > 1:
                    raise
                return [fail(start, error)]
        middle = (start + stop) // 2
        return [*run_range(start, middle), *run_range(middle, stop)]

    return run_range(0, rows)


def contain_item(step: Callable[[Item], Piece], item: Item, fail: Callable[[Exception], Piece]) -> Piece:
    """Run a step over one item; `fail` returns the result if the step raises. See `contain`."""
    try:
        return step(item)
    except RUN_FAULTS:
        raise
    except Exception as error:
        return fail(error)


def describe_fault(error: Exception) -> str:
    """Describe an exception of a step without its message, which may quote the log: its class and where it was raised."""
    frames = [(Path(frame.f_code.co_filename), frame.f_code.co_name, line) for frame, line in walk_tb(error.__traceback__)]
    own_frames = [(path.relative_to(ROOT), name, line) for path, name, line in frames if ROOT in path.parents]
    path, name, line = own_frames[-1]  # the deepest
    return f"{type(error).__name__} in {name} ({path}, line {line})"
