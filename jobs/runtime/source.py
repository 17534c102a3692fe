"""Where the rows of a plan come from."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa


@dataclass(frozen=True)
class Part:
    """Rows that one task reads.

    Attributes:
        read: Function that reads them. It is sent to a worker with everything that it refers to.
        path: Path of the file.
        rows: Number of the rows; None if it is not known.
        size: Bytes of the file; None if the size is not known.
    """

    read: Callable[[], Iterator[pa.Table]]
    path: str
    rows: int | None = None
    size: int | None = None


@dataclass(frozen=True)
class Source:
    """Rows of a plan.

    Attributes:
        schema: Schema of the rows.
        parts: The parts that are read one by one or at the same time.
        size: Bytes of all files; None if the size is not known.
    """

    schema: pa.Schema
    parts: Sequence[Part]
    size: int | None = None
