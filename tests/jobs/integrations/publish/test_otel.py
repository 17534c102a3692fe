"""Test the event `gen_ai.evaluation.result` as a collector reads it."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from ragassay.jobs.integrations.publish import otel
from ragassay.schemas.columns import HALLUCINATED
from tests.jobs.integrations.publish.conftest import Serve
from tests.jobs.integrations.publish.outputs import row, rows, write_output
from tests.jobs.integrations.publish.test_publish import publish, record
from tests.jobs.integrations.publish.test_verdict import OPTIONS, make_verdict
from tests.raises import fails
from tests.tool_servers import DROP, Collector

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
GENERATION = pa.schema([("trace_id", pa.string()), ("span_id", pa.string()), ("generation_span_id", pa.string())])


def test_an_event_is_in_the_context_of_its_span(tmp_path: Path, serve: Serve) -> None:
    ids = {"trace_id": TRACE, "span_id": "1" * 16, "generation_span_id": SPAN}
    scored_rows = [row("a", HALLUCINATED, **ids, probability=0.25), row("b", trace_id="of another kind")]
    output, server = write_output(tmp_path, {"": scored_rows}, extra=GENERATION), Collector()
    assert publish(output, serve(server.tool()).url, tool="otel", sentences=True).returncode == 0
    in_span, without_span = server.records
    expected = {
        "event": "gen_ai.evaluation.result", "trace": TRACE, "span": SPAN, "severity": 9,
        "gen_ai.evaluation.name": "ragassay", "gen_ai.evaluation.score.value": 0.2,
        "gen_ai.evaluation.score.label": HALLUCINATED, "ragassay.probability": 0.25, "ragassay.row_id": "a",
        "ragassay.flagged_sentences": 1, "ragassay.sentences": 2,
    }  # fmt: skip
    assert {name: in_span[name] for name in expected} == expected
    assert "It has 42 parts." in in_span["gen_ai.evaluation.explanation"] and "gen_ai.response.id" not in in_span
    assert in_span["ragassay.each_sentence"][1]["state"] == "flagged"
    assert (without_span["trace"], without_span["span"], without_span["gen_ai.response.id"]) == ("", "", "b")
    assert in_span["log.record.uid"] != without_span["log.record.uid"]


@pytest.mark.usefixtures("fast_retries")
def test_accepted_verdicts_are_not_sent_again(tmp_path: Path, serve: Serve) -> None:
    output, server = write_output(tmp_path, {"": rows(900)}), Collector()
    tool = serve(server.tool())
    faults: dict[int, Any] = {1: (429, {}), 2: DROP, 4: (502, {})}
    tool.fault = faults.get
    assert publish(output, tool.url, tool="otel").returncode == 0
    before = tool.count
    assert "0 verdicts" in publish(output, tool.url, tool="otel").stdout and tool.count == before
    assert len(server.records) == 810 == len({item["log.record.uid"] for item in server.records})


@pytest.mark.usefixtures("fast_retries")
def test_a_partly_refused_batch_is_not_sent_again(tmp_path: Path, serve: Serve) -> None:
    server = Collector(lambda record: record["ragassay.row_id"] in {"r3", "r4"})
    output = write_output(tmp_path, {"": rows(9)})
    tool = serve(server.tool())
    result = publish(output, tool.url, tool="otel")
    fails(result, "publish.some-refused", 2)
    assert "2 rows: too old" in result.stdout
    (refused,) = record(output, "otel").partitions[""].refused
    assert (refused.row_id, refused.rows, record(output, "otel").partitions[""].sent) == (None, 2, 7)
    second = publish(output, tool.url, tool="otel")
    assert second.returncode == 1 and tool.count == 1  # a scheduler's retry fails too


def test_address_and_headers_come_from_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, serve: Serve) -> None:
    server = Collector(key="s3cret=,")
    url = serve(server.tool()).url
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-key=s3cret%3D%2C,x-other=1")
    connection = otel.connect(None)
    assert connection.url == f"{url}/v1/logs" and "s3cret" not in repr(connection)
    assert otel.connect("http://a/b/v1/logs").url == "http://a/b/v1/logs"
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", "http://whole")
    assert otel.connect(None).url == "http://whole"
    output = write_output(tmp_path, {"": rows(3)})
    assert publish(output, url, tool="otel").returncode == 0 and len(server.records) == 3


def test_the_uid_depends_on_the_content() -> None:
    def uid(label: str) -> Any:
        return otel.build_record(make_verdict(label), OPTIONS)["attributes"][0]

    assert uid(HALLUCINATED) == uid(HALLUCINATED) != uid("supported")
