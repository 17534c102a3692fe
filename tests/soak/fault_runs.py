"""Runs that are broken on purpose: the logs, the command, and what is counted of what came out."""

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
"""Seconds until a run must have ended, on a machine that does other work as well."""


def often(times: int) -> int:
    """How often to try: so often, or SOAK_SHARE of it, on a machine that has less time."""
    return max(1, round(times * float(os.environ.get("SOAK_SHARE", "1"))))


def two_days(folder: Path, rows: int) -> Path:
    """Logs of two days, so many rows in all, in small row groups."""
    for day in DAYS:
        part = example_rows(rows // 2, start=day * rows)
        write_logs(folder / "logs" / f"dt={day}" / "a.parquet", part, row_group_size=max(1, rows // 20))
    return folder / "logs"


def ids(rows: int) -> set[str]:
    """What `two_days` is known by in the output."""
    return {f"dt={day}/a.parquet#{i}" for day in DAYS for i in range(rows // 2)}


def without_slm(folder: Path, **settings: Any) -> Path:
    """A job file for them without a model."""
    return write_job(folder / "job.yaml", settings, members={"slms": [], "detectors": DETECTORS}, runtime={"block_mib": 0.01})


@dataclass
class Tries:
    """Counts the tries of one class of faults; a line of tests/benchmarks/results/faults.md.

    Attributes:
        name: The class.
    """

    name: str
    tried: int = 0
    survived: int = 0
    lost: int = 0
    twice: int = 0
    notes: list[str] = field(default_factory=list)

    def count(self, wanted: set[str], found: Iterable[str], *, well: bool) -> None:
        """Count one try.

        Args:
            wanted: Ids of the input's rows.
            found: Ids that came out, with their repetitions.
            well: Whether it ended as it should.
        """
        here = list(found)
        self.tried += 1
        self.lost += len(wanted - set(here))
        self.twice += len(here) - len(set(here))
        self.survived += well and set(here) == wanted and len(here) == len(wanted)

    def done(self, note: str = "") -> None:
        """Record it, and fail where not all went well."""
        note = "; ".join(filter(None, [note, *self.notes]))
        record(Result("faults", self.name, self.tried, self.survived, self.lost, self.twice, note))
        assert (self.survived, self.lost, self.twice) == (self.tried, 0, 0), self


def launched(*args: str | Path, log: Path, **env: str) -> subprocess.Popen[bytes]:
    """The command, in a process group of its own; its output goes to a file."""
    with log.open("ab") as said:
        return subprocess.Popen(
            [*COMMAND, *map(str, args)], stdout=said, stderr=said, env=environment(**env), start_new_session=True
        )


def finished(*args: str | Path, **env: str) -> subprocess.CompletedProcess[str]:
    """The command, to its end; a traceback is never one."""
    done = subprocess.run(
        [*COMMAND, *map(str, args)], capture_output=True, text=True, timeout=PATIENCE, env=environment(**env), check=False
    )
    assert "Traceback" not in done.stdout + done.stderr, done.stdout + done.stderr
    return done


def kill_at(
    process: subprocess.Popen[bytes], moment: Callable[[], bool], after: float, log: Path
) -> list[psutil.Process] | None:
    """Kill a process, and nothing that it has started, at a moment and a little later.

    Returns:
        What it had started, to be ended when it has become clear whether that does any harm; None where it had ended before.
    """
    end = time.monotonic() + PATIENCE
    while not moment():
        if process.poll() is not None:
            return None
        assert time.monotonic() < end, log.read_text()
        time.sleep(0.001)
    time.sleep(after)
    left = children(process)
    process.send_signal(signal.SIGKILL)
    process.wait()
    return left if process.returncode == -signal.SIGKILL else None


def children(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """All that a process has started."""
    return psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []


def end_all(processes: Iterable[psutil.Process]) -> None:
    """Kill what is left of processes that were started here."""
    left = list(processes)
    for one in left:
        try:
            one.kill()
        except psutil.NoSuchProcess:
            continue
    psutil.wait_procs(left, timeout=30)


def content(output: Path) -> dict[str, Mapping[str, Any]]:
    """Row id -> what was found of it, less what differs from run to run."""
    return {row["row_id"]: {name: value for name, value in row.items() if name != "run_id"} for row in read_rows(output)}


def same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two rows are equal, floats to within what the order of a sum changes."""
    return one.keys() == other.keys() and all(_close(value, other[name]) for name, value in one.items())


def _close(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return abs(one - other) <= 1e-6 * max(1.0, abs(one))
    if isinstance(one, dict) and isinstance(other, dict):
        return same(one, other)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_close, one, other))
    return bool(one == other)
