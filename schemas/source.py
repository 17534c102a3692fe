"""Which version of which table a run read: its lineage, in the manifest."""

from dataclasses import dataclass, field

from ragassay.schemas.versioned import RECORD


@dataclass(frozen=True)
class Source:
    """The table whose rows a run read.

    Attributes:
        kind: delta, iceberg or lance.
        table: Its place, or its name in a catalog.
        version: Version, or id of the snapshot; None where an Iceberg table has none yet.
        since: Version after which rows came in that the run read; None where it read all rows of a version.
        partitioned_by: Names of its partition columns, in order.
    """

    __pydantic_config__ = RECORD

    kind: str
    table: str
    version: int | None
    since: int | None = None
    partitioned_by: list[str] = field(default_factory=list)
