"""No process of a command prints a secret, not even for a wrong command line or an unforeseen error."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.jobs.conftest import environment

SECRET = "hUsH7xq"
URI = f"foo://KEY:{SECRET}@bkt/a?region=eu&sig={SECRET}#{SECRET}"
BROKEN = f"""
import logging, sys, threading, warnings
from ragassay.jobs.cli import main
from ragassay.jobs.config import job

URI = {URI!r}

def fail(path):
    warnings.warn("see " + URI)
    logging.getLogger("a.library").error("at %s", URI)
    thread = threading.Thread(target=lambda: [].index(URI))
    thread.start()
    thread.join()
    try:
        raise OSError("GET " + URI)
    except OSError as error:
        raise ValueError(URI) from error

job.load_job = fail
sys.argv = ["ragassay", "prepare"]
main.app()
"""


def run(*command: str | Path, **env: str) -> subprocess.CompletedProcess[str]:
    variables = {**environment(), **env}
    done = subprocess.run(
        [sys.executable, *map(str, command)], capture_output=True, text=True, timeout=300, env=variables, check=False
    )
    assert SECRET not in done.stdout + done.stderr
    return done


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["report", URI], 1),
        (["run", URI, "out"], 1),
        (["evaluate", "out", URI], 2),
        (["run", "logs", "out", "--order", URI], 2),
        ([URI], 2),
        ([f"--{URI}"], 2),
    ],
    ids=["output", "input", "argument too many", "value of an option", "command", "option"],
)
def test_attack_no_error_of_a_command_shows_a_secret(arguments: list[str], code: int, tmp_path: Path) -> None:
    done = run("-m", "ragassay", *(str(tmp_path / argument) if argument == "out" else argument for argument in arguments))
    assert done.returncode == code, done.stderr
    assert "foo://" in done.stderr and "Traceback" not in done.stderr


def test_attack_no_unforeseen_error_shows_a_secret(tmp_path: Path) -> None:
    script = tmp_path / "broken.py"
    script.write_text(BROKEN)
    done = run(script, RAGASSAY_VERBOSE="1")
    assert done.returncode == 1
    stderr = done.stderr
    assert "UserWarning: see foo://bkt/a" in stderr and "ERROR:a.library:at foo://bkt/a" in stderr
    assert "OSError: GET foo://bkt/a" in stderr and "ValueError: foo://bkt/a" in stderr
    assert stderr.count("Traceback (most recent call last)") == 3 and "Exception in thread" in stderr


def test_attack_the_log_file_of_libraries_shows_no_secret(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text(BROKEN)
    done = run(tmp_path / "broken.py", RAGASSAY_HOME=str(tmp_path))
    (log,) = (tmp_path / "logs").glob("*.log")
    text = log.read_text()
    assert "UserWarning: see foo://bkt/a" in text and "ERROR:a.library:at foo://bkt/a" in text and SECRET not in text
    assert "ValueError: foo://bkt/a" in done.stderr and "UserWarning" not in done.stderr and str(log) in done.stderr
