"""Run a command and measure the memory of all of its processes: `python -m tests.benchmarks.memory COMMAND`.

Memory that processes share counts once (PSS).
"""

import subprocess
import sys
import time
from contextlib import suppress

import psutil

SECONDS = 0.5
"""Time between two measurements."""


def measure_memory(process: psutil.Process) -> int:
    """Return the bytes that a process and its children have in memory now."""
    total = 0
    with suppress(psutil.Error):
        for part in (process, *process.children(recursive=True)):
            with suppress(psutil.Error):
                total += part.memory_full_info().pss
    return total


def main() -> int:
    """Run the command, print the peak, and return its exit code."""
    command = subprocess.Popen(sys.argv[1:])
    process, peak = psutil.Process(command.pid), 0
    while command.poll() is None:
        peak = max(peak, measure_memory(process))
        time.sleep(SECONDS)
    print(f"peak {peak / (1 << 30):.1f} GiB", file=sys.stderr)
    return command.returncode


if __name__ == "__main__":
    sys.exit(main())
