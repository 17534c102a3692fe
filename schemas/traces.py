"""The record of trace export files that were read, as versioned JSON."""

from dataclasses import dataclass, field

from ragassay.schemas.versioned import RECORD_CONFIG, Record


@dataclass(frozen=True)
class ExportFile:
    """A file of a trace export that was read.

    Attributes:
        size: Bytes.
        mtime: Time of its last change, nanoseconds since 1970; null if the store does not report it.
        digest: Digest of the footer of a Parquet file, or of all bytes of any other file.
    """

    __pydantic_config__ = RECORD_CONFIG

    size: int
    mtime: int | None
    digest: str


@dataclass
class TracesRecord(Record):
    """State of the traces in an output folder.

    Attributes:
        preset: Tool that wrote the traces.
        files: Path relative to the input -> file, for all files that were read.
        staged: Path in `_traces` -> rows, for every log file that was written.
        part: Number of the last written files.
        pending_file: File in `_traces` with the spans of incomplete traces; null if there are none.
        pending: Number of incomplete traces.
        newest: Latest time of a span, microseconds since 1970, when the export was last read; 0 without spans.
        counts: Counts of the last run that read new spans; see docs/how-to/inputs.md.
    """

    DESCRIPTION = "a record of traces"

    preset: str
    files: dict[str, ExportFile] = field(default_factory=dict)
    staged: dict[str, int] = field(default_factory=dict)
    part: int = 0
    pending_file: str | None = None
    pending: int = 0
    newest: int = 0
    counts: dict[str, int] = field(default_factory=dict)
