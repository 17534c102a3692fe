"""A bug must not look like a quiet night: rows on which this program failed are counted, and too many end the run."""

from collections import Counter
from fractions import Fraction

from ragassay.jobs.config.runtime import RuntimeConfig
from ragassay.jobs.verdicts import errors as codes
from ragassay.pipeline.errors import RowsError
from ragassay.schemas.columns import Status
from ragassay.schemas.manifest import Run


def worst_share(*statuses: Counter[str]) -> dict[str, int]:
    """Rows with the status `error`, and all rows, of those counts of rows by status that has the largest share of errors.

    Args:
        statuses: Counts; the first counts among equals.

    Returns:
        {errors, rows}; empty where there are no rows at all.
    """
    counted = [{"errors": found[Status.ERROR.value], "rows": found.total()} for found in statuses if found.total()]
    return max(counted, key=lambda found: Fraction(found["errors"], found["rows"]), default={})


def refuse_too_many_errors(runtime: RuntimeConfig, run: Run, output_uri: str) -> None:
    """End a run with an error where this program failed on too many rows: of those that it wrote, or, where it wrote none, of
    those that the last run before it wrote. So a scheduler that tries again is told again.

    Raises:
        RowsError: More than `max_error_share` of the rows have the status `error`.
    """
    errors, rows = run.errors.get("errors", 0), run.errors.get("rows", 0)
    if errors > Fraction(repr(float(runtime.max_error_share))) * rows:  # as it is written: 0.29 of 100 are 29
        raise RowsError(codes.TOO_MANY_ERRORS, errors=errors, rows=rows, output=output_uri, most=runtime.max_error_share)
