"""The rows of an input that one run scores."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ragassay.jobs.input import LogFile, Logs
from ragassay.jobs.scoring.row_set import RowSet


@dataclass(frozen=True)
class Selection:
    """Rows selected for one run.

    Attributes:
        logs: The input.
        files: Number in the manifest -> file to score, in order.
        cut_at: Number of a file that exceeds the budget -> first row (from 0) that is deferred to a later run.
        shares: Number -> share of the file's rows to score; 1 if it is missing.
        samples: Number -> keys of the rows to score, if these are not all rows.
        deferred: Files that are deferred to later runs.
        outside: Files in partitions that the conditions exclude.
        deadline: Time (`time.time()`) after which no more rows are started; None for no end.
    """

    logs: Logs
    files: Mapping[int, LogFile]
    cut_at: Mapping[int, int] = field(default_factory=dict)
    shares: Mapping[int, float] = field(default_factory=dict)
    samples: Mapping[int, RowSet] = field(default_factory=dict)
    deferred: Sequence[LogFile] = ()
    outside: Sequence[LogFile] = ()
    deadline: float | None = None

    @property
    def non_empty_files(self) -> dict[int, LogFile]:
        """The files that have rows."""
        return {number: file for number, file in self.files.items() if file.rows}

    def count_rows(self, number: int) -> int:
        """Count the rows of a file that will be in the output once it is scored."""
        return len(self.samples[number]) if number in self.samples else self.files[number].rows or 0

    @property
    def rows(self) -> int:
        """Rows of all files that will be in the output once they are scored."""
        return sum(map(self.count_rows, self.files))

    @property
    def can_end_early(self) -> bool:
        """Whether a budget can end the run before all files are scored."""
        return bool(self.cut_at) or self.deadline is not None
