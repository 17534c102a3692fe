"""Find the user's columns with few values, such as tenant or model, in which flags may concentrate."""

from collections.abc import Collection, Iterator

import pyarrow as pa

from ragassay.jobs.evaluation.labels import LABEL_WORDS, is_label_name
from ragassay.jobs.output.scored_dataset import DataFile, ScoredDataset
from ragassay.jobs.report.counts import group_values
from ragassay.schemas.columns import scored_schema

MAX_VALUES = 50
"""Values of a column with few values."""

MAX_COLUMNS = 20
"""Columns that are looked at."""

MIN_ROWS_PER_VALUE = 4
"""Rows per value that a column has on average; ids have fewer."""

SAMPLED_FILES, SAMPLED_ROWS = 8, 2_000
"""Files, and rows of each, in which the values of a column are counted first."""


def find_slice_columns(scored: ScoredDataset, excluded: Collection[str]) -> list[str]:
    """Find the columns of the user's own, hive keys included, that have 2 to 50 values in a sample of the rows.

    Columns of ids are left out. So are labels: flags concentrate in wrong responses.

    Args:
        scored: The rows.
        excluded: Columns to leave out.
    """
    files = scored.files[:: max(1, len(scored.files) // SAMPLED_FILES)][:SAMPLED_FILES]
    names = dict.fromkeys(name for file in scored.files for name in _list_plain_columns(scored, file) if name not in excluded)
    values: dict[str, set[str | None]] = {name: set() for name in names}
    sampled_rows = 0
    for file in {*files, scored.files[-1]}:
        part = ScoredDataset(scored.fs, (file,), scored.uri)
        for rows in part.read_batches([*names], SAMPLED_ROWS, reports_progress=False):
            for name in names:
                if len(values[name]) <= MAX_VALUES:
                    values[name] |= set(group_values(rows.table, name).unique().to_pylist())
            sampled_rows += len(rows)
            break
    most = min(MAX_VALUES, sampled_rows // MIN_ROWS_PER_VALUE)
    few = [name for name, known in values.items() if 1 < len(known) <= most]
    return [name for name in few if not is_label_name(name) and not _are_labels(values[name])][:MAX_COLUMNS]


def _list_plain_columns(scored: ScoredDataset, file: DataFile) -> Iterator[str]:
    ours = set(scored_schema(pa.schema([])).names)
    for field in scored.schema_of(file):
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        is_plain = pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_boolean(kind)
        if field.name not in ours and (is_plain or pa.types.is_integer(kind)):
            yield field.name
    yield from file.keys


def _are_labels(values: Collection[str | None]) -> bool:
    words = {str(value).strip().lower() for value in values if value is not None}
    return words <= LABEL_WORDS.keys()
