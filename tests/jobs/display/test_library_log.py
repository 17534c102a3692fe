"""Messages of libraries go to a log file, and the command's own lines to the terminal."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

NOISE = """
import os, sys, logging, warnings
os.write(1, b"C++ on stdout\\n"); os.write(2, b"C++ on stderr\\n")
print("Python on stdout"); print("Python on stderr", file=sys.stderr)
warnings.warn("a warning"); logging.getLogger("vllm").warning("a record")
"""
COMMAND = f"""
from ragassay.jobs.cli.console import command_console
from ragassay.pipeline.errors import Message, ModelError
with command_console() as console:
    import sys
    console.print("the result")
    exec({NOISE!r})
    if sys.argv[1:] == ["fail"]: raise ModelError(Message("model.example", "no model"))
    if sys.argv[1:] == ["bug"]: raise ZeroDivisionError
    if sys.argv[1:] == ["crash"]:
        from ragassay.jobs.display.library_log import report_crash
        with report_crash():
            os.write(2, b"terminate called after throwing: bad_alloc\\n")
            import faulthandler; faulthandler._sigsegv()
"""
MESSAGES = ("C++ on stdout", "Python on stdout", "C++ on stderr", "Python on stderr", "a warning", "a record")


def run(home: Path, *args: str, **env: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "RAGASSAY_HOME": str(home), **env}
    return subprocess.run(
        [sys.executable, "-c", COMMAND, *args], env=environment, capture_output=True, text=True, timeout=120, check=False
    )


def read_logs(home: Path) -> list[str]:
    return [path.read_text() for path in sorted((home / "logs").glob("*.log"))]


def test_messages_of_libraries_are_in_the_log_file_only(tmp_path: Path) -> None:
    done = run(tmp_path)
    assert (done.stdout, done.stderr, done.returncode) == ("the result\n", "", 0)
    (log,) = read_logs(tmp_path)
    assert all(message in log for message in MESSAGES) and "the result" not in log


@pytest.mark.parametrize("has_engine", [True, False])
def test_the_python_api_keeps_messages_off_the_terminal_if_the_job_has_an_engine(tmp_path: Path, has_engine: bool) -> None:
    code = f"""
from types import SimpleNamespace
from ragassay.jobs.api.progress import show_progress_only
from ragassay.pipeline.errors import Message, ModelError
try:
    with show_progress_only(SimpleNamespace(members=SimpleNamespace(local_pools={["pool"] if has_engine else []}))):
        exec({NOISE!r})
        raise ModelError(Message("model.example", "no model"))
except ModelError as error:
    print("the result", *getattr(error, "__notes__", []))
"""
    environment = {**os.environ, "RAGASSAY_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=120, check=True
    )
    if has_engine:
        (path,) = (tmp_path / "logs").glob("*.log")
        assert (done.stdout, done.stderr) == (f"the result messages of libraries: {path}\n", "")
        assert all(message in path.read_text() for message in MESSAGES)
    else:
        assert all(message in done.stdout + done.stderr for message in MESSAGES) and "the result\n" in done.stdout


def test_an_error_of_a_model_names_the_log_file(tmp_path: Path) -> None:
    done = run(tmp_path, "fail")
    (path,) = (tmp_path / "logs").glob("*.log")
    assert done.stderr == f"error[model.example]: no model\nmessages of libraries: {path}\n" and done.returncode == 1


def test_a_bug_shows_its_traceback_and_names_the_log_file(tmp_path: Path) -> None:
    done = run(tmp_path, "bug")
    assert "ZeroDivisionError" in done.stderr and f"messages of libraries: {tmp_path}" in done.stderr
    assert "C++ on stderr" not in done.stderr


def test_a_crash_shows_where_the_process_was_and_its_last_messages(tmp_path: Path) -> None:
    text = run(tmp_path, "crash").stderr
    assert "Fatal Python error: Segmentation fault" in text
    assert f"messages of libraries: {tmp_path}" in text and "terminate called after throwing: bad_alloc" in text


def test_verbose_shows_the_messages(tmp_path: Path) -> None:
    done = run(tmp_path, RAGASSAY_VERBOSE="1")
    assert all(message in done.stdout + done.stderr for message in MESSAGES)
    assert not (tmp_path / "logs").exists()


def test_old_and_empty_log_files_are_deleted(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    for number in range(30):
        (tmp_path / "logs" / f"20200101T0000{number:02d}Z-1.log").write_text("old")
    run(tmp_path)
    assert len(read_logs(tmp_path)) == 20
    code = "from ragassay.jobs.cli.console import command_console\nwith command_console() as c: c.print('quiet')"
    subprocess.run([sys.executable, "-c", code], env={**os.environ, "RAGASSAY_HOME": str(tmp_path / "b")}, check=True)
    assert read_logs(tmp_path / "b") == []


@pytest.mark.parametrize("arguments", [["--verbose", "demo-logs"], ["demo-logs", "--verbose"]])
def test_verbose_is_accepted_before_and_after_the_command(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from typer.testing import CliRunner

    from ragassay.jobs.cli.main import app
    from ragassay.pipeline.engines.verbosity import is_verbose

    monkeypatch.setenv("RAGASSAY_VERBOSE", "0")
    assert CliRunner().invoke(app, arguments).exit_code == 0
    assert is_verbose()
