"""Show the first rows of a table that has verdicts."""

import pyarrow as pa

from ragassay.jobs.api import errors
from ragassay.jobs.display.verdict import Verdict
from ragassay.jobs.display.verdicts import Verdicts
from ragassay.pipeline.errors import InputError

REQUIRED_COLUMNS = ("question", "context", "response", "score", "verdict", "threshold", "sentences", "status")


def preview_rows(table: pa.Table, limit: int) -> Verdicts:
    """Preview the first rows of a table.

    Args:
        table: Rows with the columns of `scored/`.
        limit: Maximum number of rows to show.

    Raises:
        InputError: A column is missing.
    """
    missing = [name for name in REQUIRED_COLUMNS if name not in table.column_names]
    if missing:
        raise InputError(errors.MISSING_COLUMNS, columns=", ".join(missing))
    defaults = dict.fromkeys(("evidence", "error", "probability"))
    return Verdicts(tuple(Verdict({**defaults, **row}) for row in table.slice(0, limit).to_pylist()), table.num_rows)
