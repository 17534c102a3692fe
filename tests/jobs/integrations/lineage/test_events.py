"""OpenLineage events of runs, by a server that reads them with the client's own models."""

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
from ragassay.jobs.input.tables.delta import find_delta
from ragassay.jobs.integrations.lineage.events import run_events
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

    class Take(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            data = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            fine = self.path == "/api/v1/lineage" and is_valid(data)
            if fine:
                events.append(data)
                headers.append(dict(self.headers))
            self.send_response(201 if fine else 422)
            self.end_headers()

        def log_message(self, *_: Any) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Take) as listening:
        threading.Thread(target=listening.serve_forever, daemon=True).start()
        yield Server(f"http://127.0.0.1:{listening.server_port}", events, headers)
        listening.shutdown()


def is_valid(data: dict[str, Any]) -> bool:
    """Whether the client's models take an event as it came: they check ids, times and addresses."""
    from openlineage.client import event_v2

    def dataset(kind: Callable[..., Any], given: dict[str, Any]) -> Any:
        for facet in given.get("facets", {}).values():
            assert facet["_producer"] and facet["_schemaURL"].startswith("https://openlineage.io/spec/")
        return kind(**given)

    try:
        event_v2.RunEvent(
            eventTime=data["eventTime"],
            eventType=event_v2.RunState[data["eventType"]],
            producer=data["producer"],
            run=event_v2.Run(data["run"]["runId"], data["run"].get("facets")),
            job=event_v2.Job(data["job"]["namespace"], data["job"]["name"]),
            inputs=[dataset(event_v2.InputDataset, one) for one in data["inputs"]],
            outputs=[dataset(event_v2.OutputDataset, one) for one in data["outputs"]],
        )
    except (KeyError, ValueError, TypeError, AssertionError):
        return False
    return bool(data["schemaURL"].endswith("RunEvent"))


def run() -> Run:
    return Run(RUN, "2026-11-01T03:00:00+00:00")


def test_a_run_over_files_starts_and_completes(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENLINEAGE_URL", server.url)
    monkeypatch.setenv("OPENLINEAGE_API_KEY", "secret")
    write_logs(tmp_path / "logs" / "dt=1" / "a.parquet", example_rows(7))
    logs, output, record = find_logs(str(tmp_path / "logs")), open_folder(str(tmp_path / "audit")), run()
    console = Console(file=StringIO())
    with run_events(OpenLineage(), "run", logs, output, record, console) as end_events:
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


def test_a_table_has_its_version(server: Server, tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", pa.Table.from_pylist(example_rows(3)))
    settings = OpenLineage(url=server.url, namespace="prod", job="nightly")
    logs = find_logs(str(tmp_path / "t"), InputConfig())
    with run_events(settings, "score", logs, open_folder(str(tmp_path / "out")), run(), Console(quiet=True)):
        pass
    assert server.events[0]["inputs"][0]["facets"]["version"]["datasetVersion"] == "0"
    assert server.events[0]["job"]["name"] == "nightly.score"
    far = Folder(pafs.LocalFileSystem(), str(tmp_path / "out"), "s3://KEY:SECRET@bkt/a%20b?region=eu")
    logs = find_delta(Folder(pafs.LocalFileSystem(), str(tmp_path / "t"), "s3://KEY:SECRET@bkt/t"), InputConfig(), tuple)
    with pytest.raises(InputError), run_events(settings, "score", logs, far, run(), Console(quiet=True)):
        raise InputError(EXAMPLE, text="s3://KEY:SECRET@bkt/t is bad")
    (read,), (written,) = server.events[-1]["inputs"], server.events[-1]["outputs"]
    assert (read["namespace"], read["name"]) == ("s3://bkt", "t")
    assert (written["namespace"], written["name"]) == ("s3://bkt", "a b/scored") and "SECRET" not in json.dumps(server.events)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (InputError(EXAMPLE, text="logs are bad: mend them"), "logs are bad: mend them"),
        (ValueError("a user's text"), "ValueError"),
    ],
)
def test_a_run_that_fails_says_so_and_quotes_no_text(server: Server, tmp_path: Path, error: Exception, said: str) -> None:
    output = open_folder(str(tmp_path / "out"))
    with (
        pytest.raises(type(error)),
        run_events(OpenLineage(url=server.url), "finalize", None, output, run(), Console(quiet=True)),
    ):
        raise error
    assert [event["eventType"] for event in server.events] == ["START", "FAIL"]
    assert server.events[1]["run"]["facets"]["errorMessage"]["message"] == said
    assert server.events[1]["inputs"][0]["name"] == str(tmp_path / "out" / "raw")


def test_a_server_that_is_down_is_named_once_and_fails_nothing(tmp_path: Path) -> None:
    heard = StringIO()
    url = f"http://127.0.0.1:{free_port()}"
    with run_events(OpenLineage(url=url), "run", None, open_folder(str(tmp_path)), run(), Console(file=heard, width=300)):
        pass
    assert heard.getvalue().count("warning: the OpenLineage server") == 1 and url in heard.getvalue()


def test_nobody_is_told_where_no_server_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENLINEAGE_URL", raising=False)
    monkeypatch.setattr("ragassay.jobs.integrations.lineage.events.import_library", lambda *_: pytest.fail("it looked for the client"))
    with run_events(OpenLineage(), "run", None, open_folder(str(tmp_path)), run(), Console(quiet=True)):
        pass


@pytest.mark.parametrize("url", ["localhost:5000", "http://h:port", "http://[", "file:///x"])
def test_an_address_that_is_none(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with refuses("config.server-address"):
        make_job({"integrations": {"openlineage": {"url": url}}})
    monkeypatch.setenv("OPENLINEAGE_URL", url)
    heard, done = StringIO(), []
    with run_events(OpenLineage(), "run", None, open_folder(str(tmp_path)), run(), Console(file=heard, width=300)):
        done.append(True)
    assert done and heard.getvalue().count("warning") == 1 and "OPENLINEAGE_URL is no address" in heard.getvalue()


def test_a_client_that_is_not_installed_fails_a_run_only_where_the_job_wants_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "openlineage.client.event_v2", None)
    output, heard, url = open_folder(str(tmp_path)), StringIO(), "http://127.0.0.1:9"
    with (
        raises("input.library-missing"),
        run_events(OpenLineage(url=url), "run", None, output, run(), Console()),
    ):
        pass
    monkeypatch.setenv("OPENLINEAGE_URL", url)
    with run_events(OpenLineage(), "run", None, output, run(), Console(file=heard, width=300)):
        pass
    assert heard.getvalue().count("warning") == 1 and "ragassay[tables]" in heard.getvalue()


def test_a_warning_shows_no_secret_of_the_address(tmp_path: Path) -> None:
    heard, port = StringIO(), free_port()
    settings = OpenLineage(url=f"http://me:secret@127.0.0.1:{port}/x?api_key=secret")
    with run_events(settings, "run", None, open_folder(str(tmp_path)), run(), Console(file=heard, width=300)):
        pass
    assert f"server http://127.0.0.1:{port} took no event" in heard.getvalue() and "secret" not in heard.getvalue()
