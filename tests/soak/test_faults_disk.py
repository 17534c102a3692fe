"""A disk that is full while raw, statistics, verdicts or the manifest are written: one error, and the same command goes on."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.jobs.conftest import COMMAND, environment, read_rows
from tests.soak.fault_runs import Tries, content, finished, ids, often, same, two_days, without_slm

pytestmark = pytest.mark.soak

ROWS = 600


@contextmanager
def small_disk(place: Path) -> Iterator[Path]:
    """A disk of 64 MiB."""
    place.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "none", str(place)], capture_output=True, check=False)
    if made.returncode:
        pytest.skip(f"no disk can be mounted here: {made.stderr.decode()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def leave(disk: Path, kib: int) -> Path:
    """Fill a disk but for so much."""
    ballast = disk / "ballast"
    with ballast.open("wb") as file:
        file.write(b"\0" * (shutil.disk_usage(disk).free - kib * 1024))
    return ballast


FULL = """
mount -t tmpfs -o size={size}k none {disk} || exit 77
{fill}
{run}; echo "first {step}: $?"
rm -f {disk}/ballast
mount -o remount,size=64m {disk}
{run}; echo "second {step}: $?"
cp -r {disk} {keep}
"""
"""In a namespace of its own, so that the disk is gone when it ends."""


def on_a_small_disk(tmp_path: Path, step: str, size: int, before: Path | None, *arguments: str | Path) -> tuple[str, Path]:
    """Run a command in an output folder on a disk of so many KiB, and again when it has room.

    Returns:
        All that was said, and a copy of the disk.
    """
    disk, keep = tmp_path / "disk", tmp_path / f"after {step}"
    disk.mkdir(exist_ok=True)
    run = " ".join(f"'{a}'" for a in [*COMMAND, *arguments])
    fill = f"cp -r '{before}'/. '{disk}'; dd if=/dev/zero of='{disk}/ballast' bs=1k 2>/dev/null" if before else ""
    script = FULL.format(size=size, disk=f"'{disk}'", keep=f"'{keep}'", run=run, step=step, fill=fill)
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c", script], env=environment(), capture_output=True, text=True, timeout=600, check=False
    )
    if done.returncode == 77:
        pytest.skip(f"no disk can be mounted here: {done.stderr}")
    return done.stdout + done.stderr, keep


def goes_on(tmp_path: Path, step: str, size: int, before: Path | None, *arguments: str | Path) -> Path:
    """See `on_a_small_disk`: the first time it ends with one error, the second time well."""
    said, kept = on_a_small_disk(tmp_path, step, size, before, *arguments)
    assert f"first {step}: 1" in said and f"second {step}: 0" in said and "Traceback" not in said, said
    assert said.count("error[disk.full]: ") == 1 and "No space left on device" in said, said
    return kept


@pytest.mark.parametrize(
    ("name", "before", "sizes"),
    [
        ("raw", None, (24, 48, 96, 160, 224)),
        ("verdicts", "score", (8, 16, 24, 32, 40)),
        ("the manifest", "score", (0, 4)),
        ("the manifest, in a new folder", None, (0, 4)),
    ],
)
def test_one_error_and_on(tmp_path: Path, name: str, before: str | None, sizes: tuple[int, ...]) -> None:
    logs, job = two_days(tmp_path, ROWS), without_slm(tmp_path)
    assert finished("run", logs, tmp_path / "out", "--config", job).returncode == 0
    wanted = content(tmp_path / "out")
    tries = Tries(f"the disk is full while {name} {'is' if name == 'raw' or 'manifest' in name else 'are'} written")
    for kib in sizes[: often(len(sizes))]:
        with small_disk(tmp_path / f"disk{kib}") as disk:
            output = disk / "out"
            if before:
                assert finished(before, logs, output, "--config", job).returncode == 0
            ballast = leave(disk, kib)
            failed = finished("run", logs, output, "--config", job)
            assert failed.returncode == 1, f"{kib} KiB were enough"
            assert failed.stderr.count("error[disk.full]: ") == 1 and str(disk) in failed.stderr, failed.stderr
            ballast.unlink()
            done = finished("run", logs, output, "--config", job)
            rows = content(output)
            equal = rows.keys() == wanted.keys() and all(same(rows[row_id], row) for row_id, row in wanted.items())
            found = [row["row_id"] for row in read_rows(output)]
            tries.count(ids(ROWS), found, well=done.returncode == 0 and equal)
    tries.done(f"tmpfs with {', '.join(map(str, sizes[: tries.tried]))} KiB left")


def test_finalize_and_report_on_a_full_disk(tmp_path: Path) -> None:
    logs, job = two_days(tmp_path, ROWS), without_slm(tmp_path)
    output = tmp_path / "disk" / "out"
    assert finished("run", logs, output, "--config", job).returncode == 0
    kept = tmp_path / "before"
    (tmp_path / "disk").rename(kept)
    steps: dict[str, list[str | Path]] = {"finalize": [output, "--config", job], "report": [output]}
    for step, arguments in steps.items():
        tries = Tries(f"the disk is full in {step}")
        kept = goes_on(tmp_path, step, 64 * 1024, kept, step, *arguments)
        tries.count(ids(ROWS), [row["row_id"] for row in read_rows(kept / "out")], well=True)
        tries.done("tmpfs without a byte left")
    assert (kept / "out" / "report.html").exists()
