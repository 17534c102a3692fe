"""Test OpenLineage events of runs with a server that validates them by the client's models."""

import json
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from pyarrow import fs as pafs
from rich.console import Console

from ragassay.jobs.config.input import InputConfig
from ragassay.jobs.config.integrations import OpenLineage
from ragassay.jobs.config.job import make_job
from ragassay.jobs.input import find_logs
from ragassay.jobs.input.tables.delta import list_delta_files
from ragassay.jobs.integrations.lineage.events import send_run_events
from ragassay.jobs.storage.folder import Folder, open_folder
from ragassay.pipeline.errors import InputError
from ragassay.schemas.manifest import Run
from tests.conftest import example_rows, free_port, write_logs
from tests.raises import EXAMPLE, raises, refuses

RUN = "20261101T030000Z-abc123"


class Server(NamedTuple):
    url: str
    events: list[dict[str, Any]]
    headers: list[dict[str, str]]


@pytest.fixture
def server() -> Iterator[Server]:
    events: list[dict[str, Any]] = []
    headers: list[dict[str, str]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            data = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            is_accepted = self.path == "/api/v1/lineage" and is_valid(data)
            if is_accepted:
                events.append(data)
                headers.append(dict(self.headers))
            self.send_response(201 if is_accepted else 422)
            self.end_headers()

        def log_message(self, *_: Any) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http_server:
        threading.Thread(target=http_server.serve_forever, daemon=True).start()
        yield Server(f"http://127.0.0.1:{http_server.server_port}", events, headers)
        http_server.shutdown()


def is_valid(data: dict[str, Any]) -> bool:
    """Return whether the client's models accept an event; they check ids, times and addresses."""
    from openlineage.client import event_v2

    def dataset(kind: Callable[..., Any], fields: dict[str, Any]) -> Any:
        for facet in fields.get("facets", {}).values():
            assert facet["_producer"] and facet["_schemaURL"].startswith("https://openlineage.io/spec/")
        return kind(**fields)

    try:
        event_v2.RunEvent(
            eventTime=data["eventTime"],
            eventType=event_v2.RunState[data["eventType"]],
            producer=data["producer"],
            run=event_v2.Run(data["run"]["runId"], data["run"].get("facets")),
            job=event_v2.Job(data["job"]["namespace"], data["job"]["name"]),
            inputs=[dataset(event_v2.InputDataset, item) for item in data["inputs"]],
            outputs=[dataset(event_v2.OutputDataset, item) for item in data["outputs"]],
        )
    except (KeyError, ValueError, TypeError, AssertionError):
        return False
    return bool(data["schemaURL"].endswith("RunEvent"))


def new_run() -> Run:
    return Run(RUN, "2026-11-01T03:00:00+00:00")


def test_events_of_a_run_over_files(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENLINEAGE_URL", server.url)
    monkeypatch.setenv("OPENLINEAGE_API_KEY", "secret")
    write_logs(tmp_path / "logs" / "dt=1" / "a.parquet", example_rows(7))
    logs, output, record = find_logs(str(tmp_path / "logs")), open_folder(str(tmp_path / "audit")), new_run()
    console = Console(file=StringIO())
    with send_run_events(OpenLineage(), "run", logs, output, record, console) as end_events:
        write_logs(tmp_path / "audit" / "scored" / "dt=1" / "part-0.parquet", [{"row_id": "a", "verdict": "supported"}])
        end_events(replace(record, rows={"in": 7, "scored": 6, "failed": 1, "skipped": 0}))
    start, end = server.events
    assert (start["eventType"], end["eventType"]) == ("START", "COMPLETE")
    assert start["run"]["runId"] == end["run"]["runId"] and start["job"] == end["job"]
    assert (end["job"]["namespace"], end["job"]["name"]) == ("ragassay", "ragassay.audit.run")
    (read,), (written,) = end["inputs"], end["outputs"]
    assert (read["namespace"], read["name"]) == ("file", str(tmp_path / "logs"))
    fields = {field["name"]: field["type"] for field in read["facets"]["schema"]["fields"]}
    assert fields["question"] == "string" and fields["dt"] == "string" and fields["context"].startswith("list")
    statistics = read["inputFacets"]["inputStatistics"]
    assert (statistics["rowCount"], statistics["fileCount"]) == (7, 1)
    assert (
        written["name"] == str(tmp_path / "audit" / "scored") and written["outputFacets"]["outputStatistics"]["rowCount"] == 7
    )
    assert [field["name"] for field in written["facets"]["schema"]["fields"]] == ["row_id", "verdict"]
    assert server.headers[0]["Authorization"] == "Bearer secret" and console.file.getvalue() == ""  # type: ignore[attr-defined]


def test_events_of_a_run_over_a_table_have_its_version(server: Server, tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", pa.Table.from_pylist(example_rows(3)))
    settings = OpenLineage(url=server.url, namespace="prod", job="nightly")
    logs = find_logs(str(tmp_path / "t"), InputConfig())
    with send_run_events(settings, "score", logs, open_folder(str(tmp_path / "out")), new_run(), Console(quiet=True)):
        pass
    assert server.events[0]["inputs"][0]["facets"]["version"]["datasetVersion"] == "0"
    assert server.events[0]["job"]["name"] == "nightly.score"
    remote = Folder(pafs.LocalFileSystem(), str(tmp_path / "out"), "s3://KEY:SECRET@bkt/a%20b?region=eu")
    logs = list_delta_files(Folder(pafs.LocalFileSystem(), str(tmp_path / "t"), "s3://KEY:SECRET@bkt/t"), InputConfig(), tuple)
    with pytest.raises(InputError), send_run_events(settings, "score", logs, remote, new_run(), Console(quiet=True)):
        raise InputError(EXAMPLE, text="s3://KEY:SECRET@bkt/t is bad")
    (read,), (written,) = server.events[-1]["inputs"], server.events[-1]["outputs"]
    assert (read["namespace"], read["name"]) == ("s3://bkt", "t")
    assert (written["namespace"], written["name"]) == ("s3://bkt", "a b/scored") and "SECRET" not in json.dumps(server.events)


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (InputError(EXAMPLE, text="logs are bad: fix them"), "logs are bad: fix them"),
        (ValueError("a user's text"), "ValueError"),
    ],
)
def test_a_failed_run_sends_a_failure_without_log_texts(server: Server, tmp_path: Path, error: Exception, message: str) -> None:
    output = open_folder(str(tmp_path / "out"))
    with (
        pytest.raises(type(error)),
        send_run_events(OpenLineage(url=server.url), "finalize", None, output, new_run(), Console(quiet=True)),
    ):
        raise error
    assert [event["eventType"] for event in server.events] == ["START", "FAIL"]
    assert server.events[1]["run"]["facets"]["errorMessage"]["message"] == message
    assert server.events[1]["inputs"][0]["name"] == str(tmp_path / "out" / "raw")


def test_an_unreachable_server_gives_one_warning_and_no_failure(tmp_path: Path) -> None:
    output_text = StringIO()
    url = f"http://127.0.0.1:{free_port()}"
    with send_run_events(
        OpenLineage(url=url), "run", None, open_folder(str(tmp_path)), new_run(), Console(file=output_text, width=300)
    ):
        pass
    assert output_text.getvalue().count("warning: the OpenLineage server") == 1 and url in output_text.getvalue()


def test_no_events_are_sent_without_a_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENLINEAGE_URL", raising=False)
    monkeypatch.setattr(
        "ragassay.jobs.integrations.lineage.events.import_package", lambda *_: pytest.fail("the client was imported")
    )
    with send_run_events(OpenLineage(), "run", None, open_folder(str(tmp_path)), new_run(), Console(quiet=True)):
        pass


@pytest.mark.parametrize("url", ["localhost:5000", "http://h:port", "http://[", "file:///x"])
def test_an_invalid_address_is_refused_or_reported(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with refuses("config.server-address"):
        make_job({"integrations": {"openlineage": {"url": url}}})
    monkeypatch.setenv("OPENLINEAGE_URL", url)
    output_text, calls = StringIO(), []
    with send_run_events(
        OpenLineage(), "run", None, open_folder(str(tmp_path)), new_run(), Console(file=output_text, width=300)
    ):
        calls.append(True)
    assert (
        calls
        and output_text.getvalue().count("warning") == 1
        and "OPENLINEAGE_URL is not the address" in output_text.getvalue()
    )


def test_a_missing_client_fails_a_run_only_if_the_job_file_sets_a_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "openlineage.client.event_v2", None)
    output, output_text, url = open_folder(str(tmp_path)), StringIO(), "http://127.0.0.1:9"
    with (
        raises("install.missing"),
        send_run_events(OpenLineage(url=url), "run", None, output, new_run(), Console()),
    ):
        pass
    monkeypatch.setenv("OPENLINEAGE_URL", url)
    with send_run_events(OpenLineage(), "run", None, output, new_run(), Console(file=output_text, width=300)):
        pass
    assert output_text.getvalue().count("warning") == 1 and "ragassay[lineage]" in output_text.getvalue()


def test_a_warning_contains_no_secret_of_the_address(tmp_path: Path) -> None:
    output_text, port = StringIO(), free_port()
    settings = OpenLineage(url=f"http://me:secret@127.0.0.1:{port}/x?api_key=secret")
    with send_run_events(settings, "run", None, open_folder(str(tmp_path)), new_run(), Console(file=output_text, width=300)):
        pass
    assert (
        f"server http://127.0.0.1:{port} accepted no event" in output_text.getvalue() and "secret" not in output_text.getvalue()
    )
