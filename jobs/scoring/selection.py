"""The rows of an input that a run scores, within its budget."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ragassay.jobs.input import LogFile, Logs
from ragassay.jobs.scoring.row_set import RowSet


@dataclass(frozen=True)
class Selection:
    """The rows of an input that a run scores.

    Attributes:
        logs: The input.
        files: Number in the manifest -> file to score, in order.
        stops: Number of a file that is larger than the budget -> first row, from 0, that is deferred.
        shares: Number -> share of its rows that is scored; all of them where it is not named.
        samples: Number -> the rows (`row_key`) that are scored, where that is not all.
        deferred: Files that are left for later runs.
        outside: Files in partitions that the run was not asked for.
        deadline: Time (`time.time()`) after which no more rows are begun; None for no end.
    """

    logs: Logs
    files: Mapping[int, LogFile]
    stops: Mapping[int, int] = field(default_factory=dict)
    shares: Mapping[int, float] = field(default_factory=dict)
    samples: Mapping[int, RowSet] = field(default_factory=dict)
    deferred: Sequence[LogFile] = ()
    outside: Sequence[LogFile] = ()
    deadline: float | None = None

    @property
    def with_rows(self) -> dict[int, LogFile]:
        """The files that have rows."""
        return {number: file for number, file in self.files.items() if file.rows}

    def rows_of(self, number: int) -> int:
        """Rows of a file that are to be in the output when all of it is scored."""
        return len(self.samples[number]) if number in self.samples else self.files[number].rows or 0

    @property
    def rows(self) -> int:
        """`rows_of` all files."""
        return sum(map(self.rows_of, self.files))

    @property
    def may_end_early(self) -> bool:
        """Whether a budget may end the run before all of the files are scored."""
        return bool(self.stops) or self.deadline is not None
