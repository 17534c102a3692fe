"""No output, log or record shows a secret of a URI, whatever library quotes the URI."""

import io
import json
import logging
import pickle
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx2
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from openai import BadRequestError
from pyarrow import fs as pafs
from rich.console import Console

from ragassay.jobs.cli.console import command_console, new_console
from ragassay.jobs.config.input import Columns
from ragassay.jobs.config.integrations import OpenLineage
from ragassay.jobs.display.address import strip_credentials
from ragassay.jobs.display.lines import print_lines
from ragassay.jobs.input.files import LogFile, Logs
from ragassay.jobs.input.read import read_logs
from ragassay.jobs.integrations.lineage.events import send_run_events
from ragassay.jobs.integrations.publish.http import ToolReply
from ragassay.jobs.output.fingerprint import format_value
from ragassay.jobs.progress.bar_state import Bar
from ragassay.jobs.progress.show import format_json, print_line
from ragassay.jobs.runtime.clean_output import RayDataFormatter, clean_error, clean_process_output, clean_task, traceback_text
from ragassay.jobs.runtime.ray_session import find_own_error
from ragassay.jobs.scoring import register
from ragassay.jobs.storage.folder import Folder, open_folder
from ragassay.pipeline.engines.server import ModelEndpoint, ServerSettings, _classify_error
from ragassay.pipeline.engines.server_labels import LabelEndpoint, _make_failed_answer
from ragassay.pipeline.engines.text_protocol import Completion
from ragassay.pipeline.errors import InputError, Message, OutputError
from ragassay.schemas.explanation_columns import AnswerStatus
from ragassay.schemas.manifest import Manifest, Run
from ragassay.schemas.source import SourceTable
from tests.uris import SECRET, SecretUri, uris

TEXT = Message("input.example", "{text}")
BROKEN = SecretUri(f"s3://K:{SECRET}@bkt/a?sig={SECRET}#{SECRET}", "s3://bkt/a", is_plain=True)


@pytest.fixture(autouse=True)
def hooks() -> Iterator[None]:
    """Install the hooks of a RAGAssay process; restore those of the test run afterwards."""
    before = sys.excepthook, sys.unraisablehook, threading.excepthook, warnings.formatwarning, logging.getLogRecordFactory()
    clean_process_output()
    yield
    sys.excepthook, sys.unraisablehook, threading.excepthook, warnings.formatwarning, records = before
    logging.setLogRecordFactory(records)


def library_error(uri: SecretUri) -> OSError:
    """An error of a library with a cause, as raised."""
    try:
        try:
            raise ValueError({"url": uri.text}, uri.text)
        except ValueError as error:
            raise OSError(2, f"GET '{uri.text}' failed", uri.text) from error
    except OSError as error:
        return error


def console_text(work: Callable[[Console], None], width: int = 60) -> str:
    with redirect_stdout(io.StringIO()) as stream:
        work(new_console(width=width))
    return stream.getvalue()


def error_text(error: Exception) -> str:
    """Text that a command prints for an error."""
    with redirect_stderr(io.StringIO()) as stream, suppress(SystemExit), command_console():
        raise error
    return stream.getvalue()


def logged(log: Callable[[logging.Logger], None]) -> str:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    logger = logging.getLogger("ragassay.test_attack_secrets")
    logger.addHandler(handler)
    try:
        log(logger)
    finally:
        logger.removeHandler(handler)
    return stream.getvalue()


def stderr_of(work: Callable[[], None]) -> str:
    with redirect_stderr(io.StringIO()) as stream:
        work()
    return stream.getvalue()


def raise_in_thread(uri: SecretUri) -> None:
    def fail() -> None:
        raise library_error(uri)

    thread = threading.Thread(target=fail)
    thread.start()
    thread.join()


def warning_text(uri: SecretUri) -> str:
    return warnings.formatwarning(UserWarning(f"see {uri.text}"), UserWarning, "a.py", 1, f"x = '{uri.text}'")


def manifest_text(uri: SecretUri) -> str:
    file = LogFile("a.parquet", strip_credentials(uri.text), "a.parquet", 1, (), error=f"can't open '{uri.text}': no")
    source = SourceTable("iceberg", strip_credentials(uri.text), 1)
    run = Run("r", "2026-11-01T00:00:00+00:00", files_skipped={file.uri: file.error or ""}, source=source)
    return Manifest(files={0: register._make_entry(file)}, runs=[run]).to_json()


def row_errors(uri: SecretUri) -> Iterator[str]:
    """Texts for the `error` column of raw/ and of sidecars."""
    caller = ModelEndpoint("judge", "m", ServerSettings(base_url="http://h:1/v1"))
    answer = httpx2.Response(
        400, request=httpx2.Request("POST", uri.text if uri.is_plain and "[" not in uri.shown else "http://h")
    )
    refusal = _classify_error(caller, BadRequestError("no", response=answer, body={"message": f"fetching '{uri.text}' failed"}))
    yield _make_failed_answer(LabelEndpoint("judge", "m", caller.server), str(refusal)).error or ""
    yield Completion(AnswerStatus.REFUSED, error=f"judge: '{uri.text}' failed").error or ""
    yield _unreadable(uri)
    yield ToolReply(503, {"message": f"proxy to '{uri.text}' failed"}).reason


def _unreadable(uri: SecretUri) -> str:
    def broken(*_: Any) -> Iterator[pa.RecordBatch]:
        raise OSError(f"reading '{uri.text}' failed")
        yield

    class BrokenReader:
        row_group_sizes = (1,)
        read_batches = broken

        def __enter__(self) -> "BrokenReader":
            return self

        def __exit__(self, *_: object) -> None: ...

    file = LogFile("a.x", "a.x", "a.x", 1, (), rows=1, view=SimpleNamespace(open=lambda *_: BrokenReader()))
    columns = Columns(question="q", context="c", response="r")
    (table,) = read_logs(pafs.LocalFileSystem(), file, 0, [0], columns, pa.schema([]), keep_unreadable=True)
    return str(table["error"][0].as_py())


def from_worker(uri: SecretUri) -> str:
    """An error of a library in a Ray task, as text and pickled."""

    def work() -> None:
        raise library_error(uri)

    try:
        clean_task(work)()
    except OSError as error:
        return f"{error} {error!r} {vars(error)} {error.__cause__} {pickle.loads(pickle.dumps(error))}"
    raise AssertionError("the task must raise")


OUTPUTS: dict[str, Callable[[SecretUri], str]] = {
    "own error": lambda uri: error_text(InputError(TEXT, text=f"input {uri.text!r} is bad")),
    "error of a store": lambda uri: error_text(OSError(f"AWS Error NETWORK at '{uri.text}': no")),
    "error of a full disk": lambda uri: error_text(OSError(28, "no room", uri.text)),
    "error of a library passed on": lambda uri: error_text(OutputError(TEXT, text=f"not writable: {library_error(uri)}")),
    "error of a worker": lambda uri: str(find_own_error(OutputError(TEXT, text=f"output '{uri.text}' is bad"))),
    "traceback": lambda uri: traceback_text(library_error(uri)),
    "traceback of a thread": lambda uri: stderr_of(lambda: raise_in_thread(uri)),
    "traceback of the process": lambda uri: stderr_of(lambda: sys.excepthook(OSError, library_error(uri), None)),
    "log record": lambda uri: logged(lambda log: log.error("at '%s': %d", uri.text, 1)),
    "log record that does not fit": lambda uri: logged(lambda log: log.error("at %d", f"'{uri.text}'")),
    "log record with an error": lambda uri: logged(lambda log: log.error("no", exc_info=library_error(uri))),
    "log of Ray Data": lambda uri: RayDataFormatter().format(
        logging.LogRecord("ray.data", 40, "a.py", 1, "no", (), (OSError, library_error(uri), None))
    ),
    "warning": warning_text,
    "line of a console": lambda uri: console_text(lambda console: console.print(f"report  {uri.text}", markup=False), 200),
    "line of a table": lambda uri: console_text(lambda console: print_lines([("output", f"{uri.text} (a)")], console), 200),
    "line of progress": lambda uri: console_text(lambda console: print_line([Bar("waiting", uri.text)], 1.0, console), 200),
    "progress as JSON": lambda uri: str(json.loads(format_json(Bar(uri.text, uri.text), "now"))),
    "manifest": lambda uri: json.dumps(json.loads(manifest_text(uri)), ensure_ascii=False),
    "pickled error": lambda uri: str(pickle.dumps(InputError(TEXT, text=f"input '{uri.text}' is bad"))),
    "error that leaves a worker": from_worker,
    "setting of a fingerprint": lambda uri: format_value([uri.text]),
}  # fmt: skip


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@pytest.mark.parametrize("output", OUTPUTS)
@given(uri=uris)
def test_attack_no_output_shows_a_secret(output: str, uri: SecretUri) -> None:
    text = OUTPUTS[output](uri)
    assert SECRET not in text
    if uri.is_plain:
        assert uri.shown in text


@given(uri=uris)
def test_attack_no_error_of_a_row_contains_a_secret(uri: SecretUri) -> None:
    for error in row_errors(uri):
        assert SECRET not in error
        assert uri.shown in error or not uri.is_plain


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(uri=uris)
def test_attack_no_event_contains_a_secret(uri: SecretUri, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from openlineage.client import OpenLineageClient
    from openlineage.client.serde import Serde

    events: list[str] = []
    monkeypatch.setattr(OpenLineageClient, "emit", lambda _, event: events.append(Serde.to_json(event)))
    output = Folder(pafs.LocalFileSystem(), str(tmp_path), uri.text)
    logs = Logs(strip_credentials(uri.text), pafs.LocalFileSystem(), [], source=SourceTable("iceberg", uri.text, 1))
    job = OpenLineage(url="http://h:1", namespace=uri.text, job=uri.text)
    run = Run("r", "2026-11-01T00:00:00+00:00")
    with pytest.raises(InputError), send_run_events(job, "run", logs, output, run, Console(quiet=True)):
        raise InputError(TEXT, text=f"input '{uri.text}' is bad")
    assert [json.loads(event)["eventType"] for event in events] == ["START", "FAIL"]
    assert not any(SECRET in event for event in events)
    message = json.loads(events[1])["run"]["facets"]["errorMessage"]["message"]
    assert uri.shown in message or not uri.is_plain


def test_attack_an_unsupported_uri_is_quoted_without_secrets() -> None:
    with pytest.raises(InputError) as error:
        open_folder(f"foo://{SECRET}@bkt/a?sig={SECRET}")
    assert SECRET not in str(error.value) and "foo://bkt/a" in str(error.value)
    assert SECRET not in "".join(traceback.format_exception(error.value))


def test_a_cleaned_error_keeps_its_class_and_attributes() -> None:
    error = library_error(BROKEN)
    clean_error(error)
    assert error.errno == 2 and error.filename == BROKEN.shown and BROKEN.shown in str(error)
    assert isinstance(error.__cause__, ValueError) and error.__cause__.args == ({"url": BROKEN.shown}, BROKEN.shown)


def test_hooks_are_installed_once() -> None:
    before = sys.excepthook, warnings.formatwarning, logging.getLogRecordFactory()
    clean_process_output()
    assert before == (sys.excepthook, warnings.formatwarning, logging.getLogRecordFactory())


def test_a_record_without_a_uri_keeps_its_arguments() -> None:
    record = logging.getLogRecordFactory()("n", 30, "a.py", 1, "%s of %d", ("a", 3), None)
    assert record.args == ("a", 3) and record.getMessage() == "a of 3"
