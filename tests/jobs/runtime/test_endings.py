"""How a run ends that is stopped; and that nothing leaves the machine meanwhile."""

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
import ray.util

from tests.conftest import REPO, example_rows, write_logs
from tests.jobs.conftest import COMMAND, environment, write_job

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


def check_signal(number: signal.Signals, tmp_path: Path) -> None:
    """A signal ends a run, the same command resumes it, and neither contacts another machine."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(SEEN)
    logs = write_logs(tmp_path / "logs.parquet", example_rows(600), row_group_size=50)
    output = tmp_path / "out"
    job = write_job(tmp_path / "job.yaml", members={"slms": [], "detectors": DETECTORS})
    env = environment(SEEN=str(tmp_path / "seen"), PYTHONPATH=os.pathsep.join([str(tmp_path / "site"), str(REPO)]))
    arguments = [*COMMAND, "run", str(logs), str(output), "--config", str(job)]
    process = subprocess.Popen(arguments, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    said = stopped(process, output, number)
    assert (process.returncode, said) == (128 + number, "stopped; the same command goes on where it stopped\n")
    done = subprocess.run(arguments, env=env, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0 and "600 in = 600 scored" in done.stdout and "resumed" in done.stdout, done.stderr
    addresses = {line.split()[0] for line in (tmp_path / "seen").read_text().splitlines()}
    assert addresses and addresses <= {"0.0.0.0", "127.0.0.1", "localhost", "::1", ray.util.get_node_ip_address()}


def test_a_signal_ends_a_run_that_is_then_resumed_and_nothing_leaves_the_machine(tmp_path: Path) -> None:
    check_signal(signal.SIGTERM, tmp_path)
