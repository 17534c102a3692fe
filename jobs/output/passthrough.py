"""The user's own columns, as the raw files of a partition carry them."""

from collections.abc import Iterable

import pyarrow as pa

from ragassay.jobs.input.types import merge_schemas
from ragassay.jobs.output import errors
from ragassay.jobs.output.scored_dataset import DataFile, ScoredDataset
from ragassay.pipeline.errors import OutputError
from ragassay.schemas.columns import passthrough_schema


def raw_schemas(raw: ScoredDataset) -> dict[DataFile, pa.Schema]:
    """The user's columns in each file of `raw/`."""
    return {file: passthrough_schema(raw.schema_of(file)) for file in raw.files}


def merged_passthrough(schemas: Iterable[pa.Schema]) -> pa.Schema:
    """The user's columns of one partition, with types that hold those of all its files.

    Raises:
        OutputError: A column has types that don't fit together.
    """
    try:
        return merge_schemas(dict.fromkeys(schemas))
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise OutputError(errors.OTHER_COLUMN_TYPE, reason=error) from error
