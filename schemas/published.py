"""What `publish` has sent to a tool, partition by partition, as versioned JSON."""

from dataclasses import dataclass, field

from ragassay.schemas.versioned import RECORD, Record


@dataclass(frozen=True)
class Refused:
    """What the tool would not take.

    Attributes:
        reason: What it said.
        row_id: Of which row; null where it only said how many, as a collector of OpenTelemetry does.
        rows: How many rows.
    """

    __pydantic_config__ = RECORD

    reason: str
    row_id: str | None
    rows: int = 1


@dataclass
class PublishedPartition:
    """How far a partition is.

    Attributes:
        verdicts: Which verdicts: the run that gave them, and the one that escalated them.
        what: What of them was asked for, in words; other words send the partition anew.
        since: When it was first sent, UTC, ISO 8601. Every later sending bears this time and a thousandth of a second more, so
            that tools which know a score by id and day overwrite it, and the later one holds.
        times: How often it was sent anew since then; 0 the first time.
        rows: Rows of `scored/`, from the first one, whose verdicts the tool has answered for, or which were not sent.
        done: Whether these are all.
        sent: Of these, rows that the tool has taken.
        left_out: Of these, rows that were not sent, by reason.
        unknown: Of these, rows whose trace the tool does not know.
        refused: Of these, what it would not take.
    """

    __pydantic_config__ = RECORD

    verdicts: str
    what: str
    since: str
    times: int = 0
    rows: int = 0
    done: bool = False
    sent: int = 0
    left_out: dict[str, int] = field(default_factory=dict)
    unknown: int = 0
    refused: list[Refused] = field(default_factory=list)


@dataclass
class Published(Record):
    """What a tool has been sent of an output.

    Attributes:
        target: The tool.
        url: Where it is.
        name: Name of the score there.
        partitions: Hive path -> how far it is; the empty path where the output has none.
    """

    WHAT = "a record of what was published"

    target: str
    url: str
    name: str
    partitions: dict[str, PublishedPartition] = field(default_factory=dict)
