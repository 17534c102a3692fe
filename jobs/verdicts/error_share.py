"""Limit the share of rows on which this program failed, so that a bug does not look like a normal run."""

from collections import Counter
from fractions import Fraction

from ragassay.jobs.config.runtime import RuntimeConfig
from ragassay.jobs.verdicts import errors as codes
from ragassay.pipeline.errors import RowsError
from ragassay.schemas.columns import Status
from ragassay.schemas.manifest import Run


def find_worst_error_share(*statuses: Counter[str]) -> dict[str, int]:
    """Find the group of rows with the largest share of rows with status `error`.

    Args:
        statuses: Rows by status, for each group. Of equal shares, the first wins.

    Returns:
        {errors, rows} of the group; empty if no group has rows.
    """
    groups = [{"errors": counts[Status.ERROR.value], "rows": counts.total()} for counts in statuses if counts.total()]
    return max(groups, key=lambda group: Fraction(group["errors"], group["rows"]), default={})


def refuse_too_many_errors(runtime: RuntimeConfig, run: Run, output_uri: str) -> None:
    """Fail a run if this program failed on too many of the rows that the run wrote.

    If the run wrote no row, the rows of the last run before it count, so that a retry that has nothing left to do fails again.

    Raises:
        RowsError: More than `max_error_share` of the rows have the status `error`.
    """
    errors, rows = run.errors.get("errors", 0), run.errors.get("rows", 0)
    limit = Fraction(repr(float(runtime.max_error_share)))  # the decimal value of the setting: 0.29 of 100 rows is 29
    if errors > limit * rows:
        raise RowsError(codes.TOO_MANY_ERRORS, errors=errors, rows=rows, output=output_uri, maximum=runtime.max_error_share)
