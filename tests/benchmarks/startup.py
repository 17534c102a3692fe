"""Time small jobs: `python -m tests.benchmarks.startup OUT.md [--before CHECKOUT] [--rounds 3] [--jobs NAME …]`.

Times the bundled demo, a job of 100 short rows, and the same job without a model. Each command runs in a new process, with a
warm file cache and a cold one (if this user may drop it), in turns with another checkout of this program, if any. Writes
medians, minimums and maximums. Nothing else should run in the meantime.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import yaml

from ragassay.pipeline.engines.dtype import detect_cpu_dtype
from tests.conftest import REPO, example_rows, write_logs

DROP_CACHES = Path("/proc/sys/vm/drop_caches")
DEMO = REPO / "jobs" / "data" / "handbook" / "demo"
DETECTORS = [{"name": kind, "kind": kind} for kind in ("entities", "attribution", "novelty")]


def make_commands(folder: Path) -> dict[str, list[str]]:
    """Make the command of each job, without the output folder, which is its third argument."""
    rows = str(write_logs(folder / "rows.parquet", example_rows(100)))
    detectors_only = folder / "without.yaml"
    detectors_only.write_text(
        yaml.safe_dump({"members": {"slms": [], "detectors": DETECTORS}, "verdict": {"aggregate": {"positive": "cdf"}}})
    )
    return {
        "demo": ["run", str(DEMO), "--config", str(REPO / "jobs" / "demo.yaml")],
        "100 rows": ["run", rows],
        "100 rows, no model": ["run", rows, "--config", str(detectors_only)],
    }


def time_command(checkout: Path, command: list[str], output: Path) -> float:
    """Measure the seconds of a command in a checkout."""
    name, logs, *rest = command
    started = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "ragassay", name, logs, str(output), *rest], cwd=checkout, check=True, stdout=subprocess.DEVNULL
    )
    return time.perf_counter() - started


def drop_caches() -> bool:
    """Drop the file cache, and return whether this user may do so."""
    if not os.access(DROP_CACHES, os.W_OK):
        return False
    os.sync()
    DROP_CACHES.write_text("3")
    return True


def main() -> None:
    """Measure and write the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("--before", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--jobs", nargs="*", help="Names of jobs (default: all).")
    options = parser.parse_args()
    checkouts = {"before": options.before.absolute()} if options.before else {}
    checkouts["now"] = REPO
    times_by_case: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for round_number in range(options.rounds):
            for job, command in make_commands(folder).items():
                if options.jobs and job not in options.jobs:
                    continue
                for cache in ("cold", "warm"):
                    for version, checkout in checkouts.items():
                        if cache == "cold" and not drop_caches():
                            continue
                        output = folder / f"{job}-{round_number}-{cache}-{version}"
                        times_by_case[job, cache, version].append(time_command(checkout, command, output))
                        options.out.write_text(render_table(times_by_case, list(checkouts)))


def render_table(times_by_case: dict[tuple[str, str, str], list[float]], checkouts: list[str]) -> str:
    """Render the times as Markdown."""
    lines = [
        f"{os.cpu_count()} cores, {detect_cpu_dtype()}",
        "",
        "| job | file cache | " + " | ".join(f"{c}, s" for c in checkouts) + " |",
    ]
    lines.append("| --- " * (len(checkouts) + 2) + "|")
    for job, cache in dict.fromkeys((job, cache) for job, cache, _ in times_by_case):
        cells = []
        for version in checkouts:
            times = times_by_case.get((job, cache, version), [])
            cells.append(f"{statistics.median(times):.1f} ({min(times):.1f} to {max(times):.1f})" if times else "-")
        lines.append(f"| {job} | {cache} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
