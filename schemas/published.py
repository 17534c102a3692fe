"""The record of verdicts that `publish` sent to a tool, per partition, as versioned JSON."""

from dataclasses import dataclass, field

from ragassay.schemas.versioned import RECORD_CONFIG, Record


@dataclass(frozen=True)
class RefusedRows:
    """Rows that the tool rejected.

    Attributes:
        reason: The tool's message.
        row_id: Rejected row; null if the tool reports only a number of rows, as an OpenTelemetry collector does.
        rows: Number of rejected rows.
    """

    __pydantic_config__ = RECORD_CONFIG

    reason: str
    row_id: str | None
    rows: int = 1


@dataclass
class PublishedPartition:
    """Progress of publishing a partition.

    Attributes:
        verdicts: Id of the verdicts: the run that decided them, and the run that escalated them.
        selection: Selected part of the verdicts, in words; another selection sends the partition again.
        since: Time of the first sending, UTC, ISO 8601. Each later sending adds one thousandth of a second, so that tools that
            identify a score by id and day overwrite it with the later value.
        resends: How often it was sent again; 0 the first time.
        rows: Rows of `scored/`, from the first, whose verdicts the tool acknowledged or that were not sent.
        done: Whether all rows are processed.
        sent: Rows that the tool accepted.
        skipped: Reason -> rows that were not sent.
        unknown: Rows whose trace the tool does not know.
        refused: Rows that the tool rejected.
    """

    __pydantic_config__ = RECORD_CONFIG

    verdicts: str
    selection: str
    since: str
    resends: int = 0
    rows: int = 0
    done: bool = False
    sent: int = 0
    skipped: dict[str, int] = field(default_factory=dict)
    unknown: int = 0
    refused: list[RefusedRows] = field(default_factory=list)


@dataclass
class PublishRecord(Record):
    """Verdicts of an output that a tool received.

    Attributes:
        target: Name of the tool.
        url: URL of the tool.
        name: Name of the score in the tool.
        partitions: Hive path -> progress; the empty path if the output has no partitions.
    """

    DESCRIPTION = "a record of published verdicts"

    target: str
    url: str
    name: str
    partitions: dict[str, PublishedPartition] = field(default_factory=dict)
