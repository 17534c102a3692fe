"""The input files of an output folder, as its manifest has them, and what a run with a budget left of them."""

from dataclasses import dataclass

from ragassay.schemas.versioned import RECORD

PENDING = "pending"
SCORED = "scored"
UNREADABLE = "unreadable"
LEFT = "left"
"""Of a file over which a budget ran out: what is committed of it stands in the checkpoint, and a later run goes on."""


@dataclass(frozen=True)
class InputFile:
    """An input file; its number is the upper half of its rows' `row_key`.

    Attributes:
        path: Path below the input's root, such as `dt=2026-11-20/part-0.parquet`.
        uri: Where it was read from.
        size: Bytes when it was registered.
        rows: Rows by its Parquet footer; None where the footer can't be read.
        partition: Hive path of its folder; empty where there is none.
        state: pending, scored, left or unreadable.
        error: Why it is unreadable.
        digest: Of its Parquet footer; None where it can't be read.
        judged: Whether a run has written verdicts of its rows and ended.
        mtime: When it was last written, nanoseconds since 1970; None where its store does not tell.
        share: Share of its rows that are scored, chosen by a hash of their ids; 1 is all of them.
        sampled_out: Rows that were not chosen when it was last scored, and stand nowhere in the output.
    """

    __pydantic_config__ = RECORD

    path: str
    uri: str
    size: int
    rows: int | None
    partition: str
    state: str = PENDING
    error: str | None = None
    digest: str | None = None
    judged: bool = False
    mtime: int | None = None
    share: float = 1.0
    sampled_out: int = 0

    @property
    def rows_out(self) -> int:
        """Rows of it that the output holds; 0 unless it is scored."""
        return (self.rows or 0) - self.sampled_out if self.state == SCORED else 0

    @property
    def share_out(self) -> float:
        """Share of its rows that `scored/` has; of a file that is being scored anew, with a larger share, still the old one."""
        return self.share if self.state == SCORED or not self.rows else 1 - self.sampled_out / self.rows


@dataclass(frozen=True)
class Left:
    """What a run with a budget left for later ones.

    Attributes:
        rows: Rows that are still to be scored, those sampled out aside (of files not begun, as many as the share says).
        files: Files that are not scored yet.
        partitions: Partitions with such files, which have no verdicts of these.
        committed: Rows of these files that are scored already, and wait in the checkpoint.
        nights: Runs more at the speed of this one; None where it scored nothing.
    """

    __pydantic_config__ = RECORD

    rows: int
    files: int
    partitions: int
    committed: int
    nights: int | None
