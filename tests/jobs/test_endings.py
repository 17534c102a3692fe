"""How a run ends that is stopped, or has no room left; and that nothing leaves the machine meanwhile."""

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
import ray.util

from tests.conftest import REPO, example_rows, write_logs

from .conftest import COMMAND, environment, manifest, write_job

pytestmark = pytest.mark.slow

DETECTORS = [{"name": "entities", "kind": "entities"}, {"name": "novelty", "kind": "novelty"}]

SEEN = """
import os, sys

def seen(event, args):
    if event in ("socket.connect", "socket.getaddrinfo") and "SEEN" in os.environ:
        address = args[1] if event == "socket.connect" else args
        if isinstance(address, tuple):
            with open(os.environ["SEEN"], "a") as out:
                out.write(f"{address[0]} {sys.argv[:1]}\\n")

sys.addaudithook(seen)
"""
"""As sitecustomize: every process of a run writes down the addresses that it looks up or connects to."""


def stopped(process: subprocess.Popen[str], output: Path, number: signal.Signals) -> str:
    """Send a signal once rows are committed; gives what was said, which is one line."""
    already = len(list(output.glob("raw/*.parquet")))
    end = time.monotonic() + 300
    while len(list(output.glob("raw/*.parquet"))) <= already:
        assert process.poll() is None and time.monotonic() < end
        time.sleep(0.1)
    process.send_signal(number)
    _, said = process.communicate(timeout=120)
    return said


def test_signals_end_a_run_that_then_goes_on_and_nothing_leaves_the_machine(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(SEEN)
    logs = write_logs(tmp_path / "logs.parquet", example_rows(1500), row_group_size=50)
    output = tmp_path / "out"
    job = write_job(tmp_path / "job.yaml", slms=[], detectors=DETECTORS)
    env = environment(SEEN=str(tmp_path / "seen"), PYTHONPATH=os.pathsep.join([str(tmp_path / "site"), str(REPO)]))
    arguments = [*COMMAND, "run", str(logs), str(output), "--config", str(job)]
    for number in (signal.SIGTERM, signal.SIGINT):
        process = subprocess.Popen(arguments, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        said = stopped(process, output, number)
        assert (process.returncode, said) == (128 + number, "stopped; the same command goes on where it stopped\n")
    done = subprocess.run(arguments, env=env, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0 and "1,500 in = 1,500 scored" in done.stdout and "resumed" in done.stdout, done.stderr
    addresses = {line.split()[0] for line in (tmp_path / "seen").read_text().splitlines()}
    assert addresses and addresses <= {"0.0.0.0", "127.0.0.1", "localhost", "::1", ray.util.get_node_ip_address()}


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


@pytest.mark.skipif(shutil.which("unshare") is None, reason="unshare is not installed")
def test_a_full_disk_is_one_error_and_the_command_goes_on_when_there_is_room(tmp_path: Path) -> None:
    logs = write_logs(tmp_path / "logs.parquet", example_rows(200), row_group_size=50)
    job = write_job(tmp_path / "job.yaml", slms=[], detectors=DETECTORS, block_mib=0.01)
    disk = tmp_path / "disk" / "out"
    kept = goes_on(tmp_path, "run", 60, None, "run", logs, disk, "--config", job)
    assert manifest(kept / "out")["runs"][-1]["rows"] == {"in": 200, "scored": 200, "failed": 0, "skipped": 0}
