"""What has been read of an export of traces, as versioned JSON."""

from dataclasses import dataclass, field

from ragassay.schemas.versioned import RECORD, Record


@dataclass(frozen=True)
class ExportFile:
    """A file of an export that was read.

    Attributes:
        size: Bytes.
        mtime: When it was last written, nanoseconds since 1970; null where the store doesn't tell.
        digest: Of its bytes, as far as they tell that it is the same: a Parquet file's footer, all of any other.
    """

    __pydantic_config__ = RECORD

    size: int
    mtime: int | None
    digest: str


@dataclass
class TracesRecord(Record):
    """The state of the traces in an output folder.

    Attributes:
        preset: Which tool they are of.
        files: Path below INPUT -> the file, of all that were read.
        staged: Path below `_traces` -> rows, of every file of logs that was written.
        part: Number of the last files that were written.
        waiting: File below `_traces` with the spans of traces that more may come of; null where there are none.
        open: How many traces those are.
        newest: Latest time of a span, microseconds since 1970, of those that had come by then; 0 where there was none.
        counts: Of the last run that read something; see docs/how-to/inputs.md.
    """

    WHAT = "a record of traces"

    preset: str
    files: dict[str, ExportFile] = field(default_factory=dict)
    staged: dict[str, int] = field(default_factory=dict)
    part: int = 0
    waiting: str | None = None
    open: int = 0
    newest: int = 0
    counts: dict[str, int] = field(default_factory=dict)
