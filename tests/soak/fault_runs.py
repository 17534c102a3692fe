"""Runs with injected faults: their logs and commands, and counts of their output."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from tests.conftest import example_rows, write_logs
from tests.jobs.conftest import COMMAND, environment, read_rows, write_job
from tests.soak.results import Result, record

DETECTORS = [{"name": "entities", "kind": "entities"}, {"name": "novelty", "kind": "novelty"}]
DAYS = (1, 2)
PATIENCE = 900
"""Seconds until a run must have ended, on a machine that also does other work."""


def scale_times(times: int) -> int:
    """Scale a number of tries by the environment variable SOAK_SHARE (default 1)."""
    return max(1, round(times * float(os.environ.get("SOAK_SHARE", "1"))))


def write_two_days(folder: Path, rows: int) -> Path:
    """Write logs of two days with `rows` rows in total, in small row groups."""
    for day in DAYS:
        part = example_rows(rows // 2, start=day * rows)
        write_logs(folder / "logs" / f"dt={day}" / "a.parquet", part, row_group_size=max(1, rows // 20))
    return folder / "logs"


def list_ids(rows: int) -> set[str]:
    """List the row ids of `write_two_days`."""
    return {f"dt={day}/a.parquet#{i + 1}" for day in DAYS for i in range(rows // 2)}


def write_detector_job(folder: Path, **settings: Any) -> Path:
    """Write a job file without an SLM for `write_two_days`."""
    return write_job(
        folder / "job.yaml",
        settings,
        members={"slms": [], "detectors": DETECTORS},
        runtime={"block_mib": 0.01, "local_rows": 0},
    )


@dataclass
class Tries:
    """Counts of the tries of one class of faults; one line of tests/benchmarks/results/faults.md.

    Attributes:
        name: Class of faults.
        tried: Number of tries.
        survived: Number of tries that ended as expected.
        lost: Rows lost, over all tries.
        twice: Duplicate rows, over all tries.
        notes: Remarks.
    """

    name: str
    tried: int = 0
    survived: int = 0
    lost: int = 0
    twice: int = 0
    notes: list[str] = field(default_factory=list)

    def count(self, expected: set[str], ids: Iterable[str], *, well: bool) -> None:
        """Count one try.

        Args:
            expected: Ids of the input's rows.
            ids: Ids in the output, with duplicates.
            well: Whether it ended as expected.
        """
        listed = list(ids)
        self.tried += 1
        self.lost += len(expected - set(listed))
        self.twice += len(listed) - len(set(listed))
        self.survived += well and set(listed) == expected and len(listed) == len(expected)

    def done(self, note: str = "") -> None:
        """Record the counts, and fail unless all tries ended well."""
        note = "; ".join(filter(None, [note, *self.notes]))
        record(Result("faults", self.name, self.tried, self.survived, self.lost, self.twice, note))
        assert (self.survived, self.lost, self.twice) == (self.tried, 0, 0), self


def launch(*args: str | Path, log: Path, **env: str) -> subprocess.Popen[bytes]:
    """Start a command in a new process group; its output goes to a file."""
    with log.open("ab") as output:
        return subprocess.Popen(
            [*COMMAND, *map(str, args)], stdout=output, stderr=output, env=environment(**env), start_new_session=True
        )


def run_command(*args: str | Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end; it must not print a traceback."""
    result = subprocess.run(
        [*COMMAND, *map(str, args)], capture_output=True, text=True, timeout=PATIENCE, env=environment(**env), check=False
    )
    assert "Traceback" not in result.stdout + result.stderr, result.stdout + result.stderr
    return result


def kill_at(
    process: subprocess.Popen[bytes], moment: Callable[[], bool], after: float, log: Path
) -> list[psutil.Process] | None:
    """Kill a process, but not its children, `after` seconds after a moment.

    Returns:
        Its children, which the caller must kill later; None if the process had ended before.
    """
    deadline = time.monotonic() + PATIENCE
    while not moment():
        if process.poll() is not None:
            return None
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.001)
    time.sleep(after)
    orphans = list_children(process)
    process.send_signal(signal.SIGKILL)
    process.wait()
    return orphans if process.returncode == -signal.SIGKILL else None


def list_children(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """List all descendants of a process."""
    return psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []


def kill_all(processes: Iterable[psutil.Process]) -> None:
    """Kill processes that are still running."""
    running = list(processes)
    for process in running:
        try:
            process.kill()
        except psutil.NoSuchProcess:
            continue
    psutil.wait_procs(running, timeout=30)


def read_content(output: Path) -> dict[str, Mapping[str, Any]]:
    """Read the scored rows by row id, without the run id."""
    return {row["row_id"]: {name: value for name, value in row.items() if name != "run_id"} for row in read_rows(output)}


def rows_agree(row: Mapping[str, Any], other_row: Mapping[str, Any]) -> bool:
    """Return whether two rows are equal, with a tolerance for floats, which depend on the order of sums."""
    return row.keys() == other_row.keys() and all(_values_agree(value, other_row[name]) for name, value in row.items())


def _values_agree(value: Any, other_value: Any) -> bool:
    if isinstance(value, float) and isinstance(other_value, float):
        return abs(value - other_value) <= 1e-6 * max(1.0, abs(value))
    if isinstance(value, dict) and isinstance(other_value, dict):
        return rows_agree(value, other_value)
    if isinstance(value, list) and isinstance(other_value, list):
        return len(value) == len(other_value) and all(map(_values_agree, value, other_value))
    return bool(value == other_value)
