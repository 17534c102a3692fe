"""Read and merge the schemas of pass-through columns in the raw files of a partition."""

from collections.abc import Iterable

import pyarrow as pa

from ragassay.jobs.input.types import merge_schemas
from ragassay.jobs.output import errors
from ragassay.jobs.output.scored_dataset import DataFile, ScoredDataset
from ragassay.pipeline.errors import OutputError
from ragassay.schemas.columns import passthrough_schema


def passthrough_schemas(raw: ScoredDataset) -> dict[DataFile, pa.Schema]:
    """Return the pass-through columns of each file of `raw/`."""
    return {file: passthrough_schema(raw.schema_of(file)) for file in raw.files}


def merge_passthrough(schemas: Iterable[pa.Schema]) -> pa.Schema:
    """Merge the pass-through columns of a partition's files into common types.

    Raises:
        OutputError: The types of a column have no common type.
    """
    try:
        return merge_schemas(dict.fromkeys(schemas))
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise OutputError(errors.OTHER_COLUMN_TYPE, reason=error) from error
