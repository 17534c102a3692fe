"""The user's own columns, as the raw files of a partition carry them."""

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
from pyarrow import fs as pafs
from pyarrow import parquet as pq

from ragassay.jobs.input.types import merge_schemas
from ragassay.jobs.output import errors
from ragassay.jobs.storage import READERS
from ragassay.pipeline.errors import OutputError
from ragassay.schemas.columns import passthrough_of_raw


def raw_schemas(fs: pafs.FileSystem, files: Sequence[str]) -> list[pa.Schema]:
    """The user's columns in each of these raw files."""
    with ThreadPoolExecutor(READERS) as readers:
        return list(readers.map(lambda path: passthrough_of_raw(pq.read_schema(path, filesystem=fs)), files))


def merged_passthrough(schemas: Iterable[pa.Schema]) -> pa.Schema:
    """The user's columns of one partition, with types that hold those of all its files.

    Raises:
        OutputError: A column has types that don't fit together.
    """
    try:
        return merge_schemas(dict.fromkeys(schemas))
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise OutputError(errors.OTHER_COLUMN_TYPE, reason=error) from error
