"""How Phoenix and MLflow say what they do not know or want; the real ones are in tests/soak/test_publish.py."""

from pathlib import Path
from typing import Any

import pytest

from ragassay.jobs.integrations.publish import mlflow, phoenix
from ragassay.schemas.columns import HALLUCINATED
from tests.jobs.integrations.publish.conftest import Serve
from tests.jobs.integrations.publish.outputs import IDS, row, rows, write_output
from tests.jobs.integrations.publish.test_publish import publish, record
from tests.raises import fails
from tests.tool_servers import DROP_BEHIND, METHOD, Headers, Reply, Tool


class Annotations:
    """Annotations, known by span or trace, name and identifier; a batch with an unknown id is refused whole."""

    def __init__(self, known: set[str]) -> None:
        self.known = known
        self.there: dict[tuple[str, str, str], dict[str, Any]] = {}

    def answer(self, path: str, headers: Headers, body: Any) -> Reply:
        kind = {"/v1/span_annotations?sync=true": "span", "/v1/trace_annotations?sync=true": "trace"}.get(path)
        if kind is None:
            return 404, {"detail": "Not Found"}
        missing = {one[f"{kind}_id"] for one in body["data"]} - self.known
        if missing:
            return 404, f"{kind.capitalize()}s with IDs {', '.join(missing)} do not exist."
        if any(not one["name"].strip() for one in body["data"]):
            return 422, {"detail": [{"loc": ["body", "name"], "msg": "too short", "input": "secret"}]}
        for one in body["data"]:
            self.there[one[f"{kind}_id"], one["name"], one["identifier"]] = one
        return 200, {"data": [{"id": "x"} for _ in body["data"]]}


class Assessments:
    """What MLflow has: assessments of known traces, under ids of its own."""

    def __init__(self, known: set[str]) -> None:
        self.there: dict[str, list[dict[str, Any]]] = {trace: [] for trace in known}
        self.written = 0

    def answer(self, path: str, headers: Headers, body: Any) -> Reply:
        _, _, rest = path.partition("/api/3.0/mlflow/traces/")
        trace, _, tail = rest.partition("/assessments")
        if trace not in self.there:
            return 404, {"error_code": "RESOURCE_DOES_NOT_EXIST", "message": f"Trace with ID {trace} is not found."}
        mine = self.there[trace]
        if headers[METHOD] == "GET":
            return 200, {"trace": {"trace_info": {"trace_id": trace, "assessments": mine}}}
        self.written += 1
        assert all(isinstance(value, str) for value in body["assessment"]["metadata"].values())
        if headers[METHOD] == "POST":
            mine.append({**body["assessment"], "assessment_id": f"a-{self.written}"})
        else:
            (one,) = [one for one in mine if f"/{one['assessment_id']}" == tail]
            one |= {name: body["assessment"][name] for name in body["update_mask"].split(",")}
        return 200, {"assessment": mine[-1]}


def test_phoenix_says_which_spans_it_does_not_know(tmp_path: Path, serve: Serve) -> None:
    mine = [row(f"r{i}", trace_id=f"t{i}", span_id=f"s{i}" if i % 2 else None) for i in range(40)]
    there = Annotations({one["span_id"] or one["trace_id"] for one in mine} - {"s1", "s11", "t2"})
    tool = serve(Tool(there.answer))
    output = write_output(tmp_path, {"": mine}, extra=IDS)
    done = publish(output, tool.url, tool="phoenix")
    assert done.returncode == 0 and "3 rows whose trace or span is not there" in done.stdout, done.stdout + done.stderr
    assert len(there.there) == 37 and tool.count == 4  # s1 and s11 are told apart
    assert record(output, "phoenix").partitions[""].unknown == 3
    before = tool.count
    assert "0 verdicts" in publish(output, tool.url, tool="phoenix").stdout and tool.count == before
    said = there.there["s3", "ragassay", phoenix_id(there, "s3")]
    assert said["result"] == {"label": "supported", "score": 0.8, "explanation": "None of 2 sentences is flagged."}
    assert said["annotator_kind"] == "CODE" and said["metadata"]["row_id"] == "r3"


def phoenix_id(there: Annotations, whose: str) -> str:
    (found,) = [identifier for one, _, identifier in there.there if one == whose]
    return found


def test_where_no_trace_is_known_the_column_is_wrong(tmp_path: Path, serve: Serve) -> None:
    tool = serve(Tool(Annotations(set()).answer))
    done = publish(write_output(tmp_path, {"": rows(5)}), tool.url, tool="phoenix")
    fails(done, "publish.unknown-traces", 5)


def test_a_name_that_phoenix_refuses(tmp_path: Path, serve: Serve) -> None:
    tool = serve(Tool(Annotations({f"r{i}" for i in range(4)}).answer))
    done = publish(write_output(tmp_path, {"": rows(4)}), tool.url, tool="phoenix", name=" ")
    assert done.returncode == 1 and "422: body.name: too short" in done.stdout and "secret" not in done.stdout + done.stderr


def test_a_server_that_is_no_phoenix(tmp_path: Path, serve: Serve) -> None:
    tool = serve(Tool(lambda *_: (404, {"detail": "Not Found"})))
    done = publish(write_output(tmp_path, {"": rows(2)}), tool.url, tool="phoenix")
    fails(done, "publish.no-api")


@pytest.mark.usefixtures("quickly")
def test_mlflow_has_it_once_though_its_answer_was_lost(tmp_path: Path, serve: Serve) -> None:
    there = Assessments({f"r{i}" for i in range(20)} - {"r3"})
    tool = serve(Tool(there.answer))
    tool.fault = lambda number: DROP_BEHIND if number in {2, 7, 12} else None
    output = write_output(tmp_path, {"": rows(20)})
    done = publish(output, tool.url, tool="mlflow")
    assert done.returncode == 0 and "1 rows whose trace" in done.stdout, done.stdout + done.stderr
    assert [len(found) for trace, found in sorted(there.there.items()) if trace not in {"r9", "r19"}] == [1] * 17
    (bad,) = there.there["r0"]
    assert bad["feedback"] == {"value": HALLUCINATED} and "It has 42 parts." in bad["rationale"]
    assert bad["metadata"]["ragassay.score"] == "0.2" and bad["source"]["source_type"] == "CODE"
    written = there.written
    assert "17 verdicts" in publish(output, tool.url, "--resend", tool="mlflow").stdout
    assert there.written == written  # it was there already, word for word
    write_output(tmp_path, {"": [{**one, "score": 0.25} for one in rows(20)]}, "20261122T020000Z-bbbbbb")
    publish(output, tool.url, tool="mlflow")
    assert there.there["r0"][0]["metadata"]["ragassay.score"] == "0.25" and len(there.there["r0"]) == 1


def test_keys_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
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
