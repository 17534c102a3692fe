"""Test publishing to Phoenix and MLflow with stand-ins; tests/soak/test_publish.py uses the real servers."""

from pathlib import Path
from typing import Any

import pytest

from ragassay.jobs.integrations.publish import mlflow, phoenix
from ragassay.schemas.columns import HALLUCINATED
from tests.jobs.integrations.publish.conftest import Serve
from tests.jobs.integrations.publish.outputs import IDS, row, rows, write_output
from tests.jobs.integrations.publish.test_publish import publish, record
from tests.raises import fails
from tests.tool_servers import DROP_AFTER, METHOD, Headers, Reply, Tool


class Annotations:
    """Phoenix: annotations by span or trace, name and identifier; a batch with an unknown id is refused as a whole."""

    def __init__(self, known: set[str]) -> None:
        self.known = known
        self.annotations: dict[tuple[str, str, str], dict[str, Any]] = {}

    def answer(self, path: str, headers: Headers, body: Any) -> Reply:
        kind = {"/v1/span_annotations?sync=true": "span", "/v1/trace_annotations?sync=true": "trace"}.get(path)
        if kind is None:
            return 404, {"detail": "Not Found"}
        missing = {item[f"{kind}_id"] for item in body["data"]} - self.known
        if missing:
            return 404, f"{kind.capitalize()}s with IDs {', '.join(missing)} do not exist."
        if any(not item["name"].strip() for item in body["data"]):
            return 422, {"detail": [{"loc": ["body", "name"], "msg": "too short", "input": "secret"}]}
        for item in body["data"]:
            self.annotations[item[f"{kind}_id"], item["name"], item["identifier"]] = item
        return 200, {"data": [{"id": "x"} for _ in body["data"]]}


class Assessments:
    """MLflow: assessments of known traces, with ids that it creates."""

    def __init__(self, known: set[str]) -> None:
        self.annotations: dict[str, list[dict[str, Any]]] = {trace: [] for trace in known}
        self.written = 0

    def answer(self, path: str, headers: Headers, body: Any) -> Reply:
        _, _, rest = path.partition("/api/3.0/mlflow/traces/")
        trace, _, tail = rest.partition("/assessments")
        if trace not in self.annotations:
            return 404, {"error_code": "RESOURCE_DOES_NOT_EXIST", "message": f"Trace with ID {trace} is not found."}
        assessments = self.annotations[trace]
        if headers[METHOD] == "GET":
            return 200, {"trace": {"trace_info": {"trace_id": trace, "assessments": assessments}}}
        self.written += 1
        assert all(isinstance(value, str) for value in body["assessment"]["metadata"].values())
        if headers[METHOD] == "POST":
            assessments.append({**body["assessment"], "assessment_id": f"a-{self.written}"})
        else:
            (assessment,) = [item for item in assessments if f"/{item['assessment_id']}" == tail]
            assessment |= {name: body["assessment"][name] for name in body["update_mask"].split(",")}
        return 200, {"assessment": assessments[-1]}


def test_unknown_spans_of_phoenix_are_reported(tmp_path: Path, serve: Serve) -> None:
    scored_rows = [row(f"r{i}", trace_id=f"t{i}", span_id=f"s{i}" if i % 2 else None) for i in range(40)]
    server = Annotations({item["span_id"] or item["trace_id"] for item in scored_rows} - {"s1", "s11", "t2"})
    tool = serve(Tool(server.answer))
    output = write_output(tmp_path, {"": scored_rows}, extra=IDS)
    result = publish(output, tool.url, tool="phoenix")
    assert result.returncode == 0 and "3 rows whose trace or span does not exist" in result.stdout, (
        result.stdout + result.stderr
    )
    assert len(server.annotations) == 37 and tool.count == 4  # s1 and s11 are distinguished
    assert record(output, "phoenix").partitions[""].unknown == 3
    before = tool.count
    assert "0 verdicts" in publish(output, tool.url, tool="phoenix").stdout and tool.count == before
    annotation = server.annotations["s3", "ragassay", find_identifier(server, "s3")]
    assert annotation["result"] == {"label": "supported", "score": 0.8, "explanation": "None of 2 sentences is flagged."}
    assert annotation["annotator_kind"] == "CODE" and annotation["metadata"]["row_id"] == "r3"


def find_identifier(server: Annotations, subject: str) -> str:
    (identifier,) = [identifier for item, _, identifier in server.annotations if item == subject]
    return identifier


def test_publishing_fails_if_no_trace_is_known(tmp_path: Path, serve: Serve) -> None:
    tool = serve(Tool(Annotations(set()).answer))
    result = publish(write_output(tmp_path, {"": rows(5)}), tool.url, tool="phoenix")
    fails(result, "publish.unknown-traces", 5)


def test_a_name_that_phoenix_refuses_is_reported(tmp_path: Path, serve: Serve) -> None:
    tool = serve(Tool(Annotations({f"r{i}" for i in range(4)}).answer))
    result = publish(write_output(tmp_path, {"": rows(4)}), tool.url, tool="phoenix", name=" ")
    assert (
        result.returncode == 1
        and "422: body.name: too short" in result.stdout
        and "secret" not in result.stdout + result.stderr
    )


def test_another_server_than_phoenix_is_reported(tmp_path: Path, serve: Serve) -> None:
    tool = serve(Tool(lambda *_: (404, {"detail": "Not Found"})))
    result = publish(write_output(tmp_path, {"": rows(2)}), tool.url, tool="phoenix")
    fails(result, "publish.no-api")


@pytest.mark.usefixtures("fast_retries")
def test_mlflow_has_each_assessment_once_although_replies_were_lost(tmp_path: Path, serve: Serve) -> None:
    server = Assessments({f"r{i}" for i in range(20)} - {"r3"})
    tool = serve(Tool(server.answer))
    tool.fault = lambda number: DROP_AFTER if number in {2, 7, 12} else None
    output = write_output(tmp_path, {"": rows(20)})
    result = publish(output, tool.url, tool="mlflow")
    assert result.returncode == 0 and "1 row whose trace" in result.stdout, result.stdout + result.stderr
    assert [len(items) for trace, items in sorted(server.annotations.items()) if trace not in {"r9", "r19"}] == [1] * 17
    (assessment,) = server.annotations["r0"]
    assert assessment["feedback"] == {"value": HALLUCINATED} and "It has 42 parts." in assessment["rationale"]
    assert assessment["metadata"]["ragassay.score"] == "0.2" and assessment["source"]["source_type"] == "CODE"
    written = server.written
    assert "17 verdicts" in publish(output, tool.url, "--resend", tool="mlflow").stdout
    assert server.written == written  # equal assessments are not written again
    write_output(tmp_path, {"": [{**item, "score": 0.25} for item in rows(20)]}, "20261122T020000Z-bbbbbb")
    publish(output, tool.url, tool="mlflow")
    assert server.annotations["r0"][0]["metadata"]["ragassay.score"] == "0.25" and len(server.annotations["r0"]) == 1


def test_keys_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PHOENIX_API_KEY", "k1")
    monkeypatch.setenv("PHOENIX_COLLECTOR_ENDPOINT", "http://a:6006/v1/traces")
    assert phoenix.connect(None).url == "http://a:6006"
    assert phoenix.connect("http://b/").headers == {"Authorization": "Bearer k1"}
    monkeypatch.setenv("MLFLOW_TRACKING_TOKEN", "k2")
    assert mlflow.connect("http://c").headers == {"Authorization": "Bearer k2"}
    monkeypatch.setenv("MLFLOW_TRACKING_USERNAME", "me")
    monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", "pw")
    assert mlflow.connect("http://c").headers == {"Authorization": "Basic bWU6cHc="}
    assert "bWU6cHc=" not in repr(mlflow.connect("http://c"))
