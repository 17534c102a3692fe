"""Publishing to Langfuse's API: what arrives, that it arrives once, and what is said of the rest."""

import json
import re
import threading
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from ragassay.jobs.integrations.publish import langfuse, run
from ragassay.schemas.columns import HALLUCINATED, SUPPORTED
from ragassay.schemas.published import PublishRecord
from tests.jobs.conftest import here, write_job
from tests.jobs.integrations.publish.conftest import Serve
from tests.jobs.integrations.publish.outputs import IDS, LATER, row, rows, write_output
from tests.raises import fails
from tests.tool_servers import DROP, DROP_BEHIND, SECRET, Langfuse

DAYS = {"dt=2026-11-20": rows(120), "dt=2026-11-21": rows(60, 120)}
SENT = {f"r{i}" for i in range(180) if i % 10 != 9}


def publish(output: Path, url: str, *more: str, tool: str = "langfuse", **settings: Any) -> Any:
    """Run `ragassay publish`, with settings of `integrations.publish` in a job file."""
    config: list[str | Path] = []
    if settings:
        config = ["--config", write_job(output.parent / "publish.yaml", integrations={"publish": settings})]
    return here("publish", output, "--tool", tool, "--url", url, *more, *config)


def record(output: Path, tool: str = "langfuse") -> PublishRecord:
    (path,) = (output / "publish").glob(f"{tool}-*.json")
    return PublishRecord.from_json(path.read_text())


def test_twice_changes_nothing(tmp_path: Path, serve: Serve) -> None:
    output, there = write_output(tmp_path, DAYS), Langfuse()
    tool = serve(there.tool())
    done = publish(output, tool.url)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "162 verdicts to langfuse" in done.stdout and "dt=2026-11-20 108, dt=2026-11-21 54" in done.stdout
    assert "18 rows (18 no_context)" in done.stdout
    assert set(there.named()) == SENT and len(there.scores) == 2 * len(SENT)
    before, requests = dict(there.scores), tool.count
    again = publish(output, tool.url)
    assert again.returncode == 0 and "0 verdicts" in again.stdout and "2 partitions" in again.stdout
    assert tool.count == requests and there.scores == before
    whole = publish(output, tool.url, "--resend")
    assert "162 verdicts" in whole.stdout and tool.count == 2 * requests
    assert there.scores.keys() == before.keys() and there.named() and len(there.named()) == len(SENT)


def test_what_arrives(tmp_path: Path, serve: Serve) -> None:
    mine = [row("a", HALLUCINATED, probability=0.25), row("b", SUPPORTED, score=float("inf"))]
    output, there = write_output(tmp_path, {"": mine}), Langfuse()
    tool = serve(there.tool())
    assert publish(output, tool.url, name="grounded", sentences=True).returncode == 0
    bad = there.named("grounded")["a"]
    assert (bad["value"], bad["dataType"]) == (HALLUCINATED, "CATEGORICAL")
    assert (
        bad["comment"] == "1 of 2 sentences not supported by the context:\n- It has 42 parts. (not in the context: number 42)"
    )
    facts = bad["metadata"]
    assert facts["flagged_sentences"] == 1 and facts["probability"] == 0.25 and facts["threshold"] == 0.5
    assert [s["flagged"] for s in facts["each_sentence"]] == [False, True]
    assert facts["each_sentence"][1]["text"] == "It has 42 parts."
    assert there.named("grounded_score")["a"]["value"] == 0.2
    assert there.named("grounded_probability")["a"]["value"] == 0.25
    assert "b" not in there.named("grounded_score")  # JSON has no infinity
    assert there.named("grounded")["b"]["comment"] == "None of 2 sentences is flagged."


def test_without_text_none_is_sent(tmp_path: Path, serve: Serve) -> None:
    output, there = write_output(tmp_path, {"": rows(10)}), Langfuse()
    tool = serve(there.tool())
    assert publish(output, tool.url, text=False, sentences=True).returncode == 0
    sent = json.dumps(tool.requests)
    assert "characters 15 to 31" in sent
    assert not re.search("parts|Rule|number", sent)


def test_after_a_new_finalize_only_what_changed_is_sent_and_takes_the_old_ones_place(tmp_path: Path, serve: Serve) -> None:
    output, there = write_output(tmp_path, DAYS), Langfuse()
    tool = serve(there.tool())
    publish(output, tool.url)
    turned = [{**one, "verdict": one["verdict"] and HALLUCINATED} for one in DAYS["dt=2026-11-21"]]
    write_output(tmp_path, {"dt=2026-11-21": turned}, LATER)
    done = publish(output, tool.url)
    assert "54 verdicts" in done.stdout and "1 partition" in done.stdout
    found = there.named()
    assert set(found) == SENT
    assert {found[r["row_id"]]["value"] for r in turned if r["verdict"]} == {HALLUCINATED}
    assert {found[r["row_id"]]["value"] for r in DAYS["dt=2026-11-20"] if r["verdict"]} == {HALLUCINATED, SUPPORTED}
    part = record(output).partitions["dt=2026-11-21"]
    assert (part.verdicts, part.resends, part.sent, part.done) == (LATER, 1, 54, True)
    days = {moment.date() for moment, _ in there.scores.values()}
    assert days == {datetime.fromisoformat(part.since).date()}  # else Langfuse would keep both


def test_a_partition_that_no_ended_run_has_judged_is_not_sent(tmp_path: Path, serve: Serve) -> None:
    output, there = write_output(tmp_path, DAYS), Langfuse()
    manifest = json.loads((output / "manifest.json").read_text())
    del manifest["finalized"]["dt=2026-11-20"]
    (output / "manifest.json").write_text(json.dumps(manifest))
    done = publish(output, serve(there.tool()).url)
    assert "dt=2026-11-20: `ragassay finalize` gives them" in done.stdout and "54 verdicts" in done.stdout


@pytest.mark.usefixtures("quickly")
def test_429_500_and_dropped_connections_lose_nothing_and_double_nothing(tmp_path: Path, serve: Serve) -> None:
    output, there = write_output(tmp_path, DAYS), Langfuse()
    tool = serve(there.tool())
    tool.headers = {"Retry-After": "0"}
    faults: dict[int, Any] = {1: (429, {"message": "slow down"}), 2: DROP, 4: DROP_BEHIND, 5: (500, {}), 7: (503, {})}
    tool.fault = faults.get
    done = publish(output, tool.url)
    assert done.returncode == 0, done.stdout
    assert set(there.named()) == SENT and len(there.scores) == there.taken == 2 * len(SENT)
    assert tool.count == len(faults) + 5  # 108 and 54 verdicts, 50 a request


@pytest.mark.usefixtures("quickly")
def test_of_a_batch_that_is_taken_in_part_only_the_rest_is_sent_again(tmp_path: Path, serve: Serve) -> None:
    output = write_output(tmp_path, {"": rows(8)})
    late = {"r2", "r5"}

    def refuse(score: dict[str, Any]) -> tuple[int, str] | None:
        if score["traceId"] in late:
            late.discard(score["traceId"])
            return 503, "try later"
        return (400, "no such data type") if score["traceId"] == "r4" else None

    there = Langfuse(refuse)
    tool = serve(there.tool())
    done = publish(output, tool.url)
    fails(done, "publish.some-refused", 1)
    assert "r4: 400: no such data type" in done.stdout
    assert [len(body["batch"]) for _, body in tool.requests] == [16, 2]
    assert set(there.named()) == {f"r{i}" for i in range(8)} - {"r4"}
    (refused,) = record(output).partitions[""].refused
    assert (refused.row_id, refused.rows) == ("r4", 1)
    still = publish(output, tool.url)  # the refused one alone is tried again
    assert still.returncode == 1 and len(tool.requests[-1][1]["batch"]) == 2
    there.refuse = lambda _: None
    mended = publish(output, tool.url)
    assert mended.returncode == 0 and "1 verdicts" in mended.stdout and "r4" in there.named()
    assert "0 verdicts" in publish(output, tool.url).stdout and record(output).partitions[""].sent == 8


@pytest.mark.usefixtures("quickly")
def test_what_a_tool_refuses_whole_is_found_by_halves(tmp_path: Path, serve: Serve) -> None:
    output, there = write_output(tmp_path, {"": rows(30)}), Langfuse()
    tool = there.tool()

    def answer(path: str, headers: dict[str, str], body: Any) -> tuple[int, Any]:
        poison = any(event["body"]["traceId"] == "r13" for event in body["batch"])
        return (500, {"message": "oh"}) if poison else there.answer(path, headers, body)

    tool.answer = answer
    done = publish(output, serve(tool).url)
    assert done.returncode == 1 and "r13: 500: oh" in done.stdout
    assert set(there.named()) == {f"r{i}" for i in range(30) if i % 10 != 9} - {"r13"}


@pytest.mark.usefixtures("quickly")
def test_where_the_tool_stays_away_it_goes_on_there_later(
    tmp_path: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "AT_ONCE", 1)
    output, there = write_output(tmp_path, DAYS), Langfuse()
    tool = serve(there.tool())
    tool.fault = lambda number: (503, {}) if number > 2 else None
    done = publish(output, tool.url)
    fails(done, "publish.unreachable", 503, "10 times")
    part = record(output).partitions["dt=2026-11-20"]
    assert (part.sent, part.done) == (100, False) and "dt=2026-11-21" not in done.stdout
    tool.fault = lambda _: None
    before = len(tool.requests)
    rest = publish(output, tool.url)
    assert rest.returncode == 0 and "62 verdicts" in rest.stdout and len(tool.requests) == before + 3
    assert set(there.named()) == SENT and there.taken == 2 * len(SENT)


def test_only_flagged_and_what_is_no_longer_flagged(tmp_path: Path, serve: Serve) -> None:
    output, there = write_output(tmp_path, {"": [row("a", HALLUCINATED), row("b")]}), Langfuse()
    tool = serve(there.tool())
    done = publish(output, tool.url, "--flagged-only")
    assert "1 not flagged" in done.stdout and set(there.named()) == {"a"}
    write_output(tmp_path, {"": [row("a"), row("b", HALLUCINATED)]}, LATER)
    publish(output, tool.url, "--flagged-only")
    assert {trace: score["value"] for trace, score in there.named().items()} == {"a": SUPPORTED, "b": HALLUCINATED}


def test_partitions_are_chosen(tmp_path: Path, serve: Serve) -> None:
    output, there = write_output(tmp_path, DAYS), Langfuse()
    tool = serve(there.tool())
    assert "54 verdicts" in publish(output, tool.url, "--partitions", "dt>=2026-11-21").stdout
    assert "108 verdicts" in publish(output, tool.url, "--partitions", "dt>2026-11-01", "--partitions", "dt<2026-11-21").stdout
    assert set(there.named()) == SENT
    for condition, code in {"dt": "partitions.syntax", "day=1": "partitions.no-key", "dt=2030": "partitions.none"}.items():
        fails(publish(output, tool.url, "--partitions", condition), code)


def test_ids_of_traces_and_spans(tmp_path: Path, serve: Serve) -> None:
    mine = [row("a", trace_id="t1", span_id="s1"), row("b", trace_id=None, span_id="s2"), row("c", trace_id="t3")]
    output, there = write_output(tmp_path, {"": mine}, extra=IDS), Langfuse()
    tool = serve(there.tool())
    done = publish(output, tool.url)
    assert "1 no trace id" in done.stdout and set(there.named()) == {"t1", "t3"}
    assert "observationId" not in there.named()["t1"]
    spans = publish(output, tool.url, span_column="span_id", name="by_span")
    assert spans.returncode == 0 and there.named("by_span")["t1"]["observationId"] == "s1"
    fails(publish(output, tool.url, trace_column="trace"), "output.no-column", "'trace'", "integrations.publish.trace_column")


def test_rows_with_the_same_id_are_counted_and_the_first_stands(tmp_path: Path, serve: Serve) -> None:
    output, there = write_output(tmp_path, {"": [row("a", HALLUCINATED), row("b"), row("a")]}), Langfuse()
    done = publish(output, serve(there.tool()).url)
    assert "1 same row_id as an earlier row" in done.stdout
    assert {trace: score["value"] for trace, score in there.named().items()} == {"a": HALLUCINATED, "b": SUPPORTED}


def test_large_requests_are_parted(tmp_path: Path, serve: Serve) -> None:
    long = [{"text": "x" * 490, "start": i * 500, "end": i * 500 + 490, "score": 0.1, "flagged": True} for i in range(300)]
    output = write_output(tmp_path, {"": [{**row(f"r{i}", HALLUCINATED), "sentences": long} for i in range(40)]})
    there = Langfuse()
    done = publish(output, serve(there.tool()).url, sentences=True)
    assert done.returncode == 0 and len(there.named()) == 40
    assert there.named()["r0"]["comment"].endswith("- and 280 more")


def test_dry_run_asks_nobody_and_changes_nothing(tmp_path: Path) -> None:
    output = write_output(tmp_path, DAYS)
    done = publish(output, "http://127.0.0.1:9", "--dry-run")
    assert done.returncode == 0 and "162 verdicts" in done.stdout and '"traceId": "r0"' in done.stdout
    assert not (output / "publish").exists()


def test_keys_are_needed_never_shown_and_told_apart(tmp_path: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    output, there = write_output(tmp_path, {"": rows(5)}), Langfuse()
    tool = serve(there.tool())
    good = publish(output, tool.url)
    monkeypatch.setenv("LANGFUSE_SECRET_KEY", "sk-lf-wrong")
    monkeypatch.setenv("LANGFUSE_PUBLIC_KEY", "pk-lf-other")
    bad = publish(output, tool.url)
    fails(bad, "publish.key-refused", 401, "LANGFUSE_SECRET_KEY")
    assert len(list((output / "publish").iterdir())) == 2
    monkeypatch.delenv("LANGFUSE_SECRET_KEY")
    none = publish(output, tool.url)
    fails(none, "publish.no-langfuse-keys", "LANGFUSE_PUBLIC_KEY", "LANGFUSE_SECRET_KEY")
    written = "".join(path.read_text() for path in (output / "publish").iterdir())
    said = "".join(done.stdout + done.stderr for done in (good, bad, none))
    assert not any(key in said + written for key in (SECRET, "sk-lf-wrong", "Basic"))


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("ftp://x", "publish.no-url"),
        ("http://me:secret@127.0.0.1:1", "publish.url-with-password"),
        ("me:secret@127.0.0.1:1", "publish.url-with-password"),
        ("http://127.0.0.1:1/x?api_key=secret", "publish.url-with-query"),
        ("http://127.0.0.1:1/#secret", "publish.url-with-query"),
        ("http://127.0.0.1:secret", "publish.unreadable-url"),
    ],
)
def test_addresses_that_are_none(tmp_path: Path, url: str, code: str) -> None:
    done = publish(write_output(tmp_path, {"": rows(1)}), url)
    fails(done, code)
    assert "secret" not in done.stderr
    assert not (tmp_path / "audit" / "publish").exists()


def test_a_server_that_is_no_langfuse_is_named(tmp_path: Path, serve: Serve) -> None:
    tool = Langfuse().tool()
    tool.answer = lambda *_: (404, {"message": "nothing here"})
    done = publish(write_output(tmp_path, {"": rows(3)}), serve(tool).url)
    fails(done, "publish.no-api")
    tool.answer = lambda *_: (301, {})
    fails(publish(tmp_path / "audit", tool.url), "publish.redirected")


@pytest.mark.parametrize("to", ["langfuse", "phoenix", "mlflow", "otel"])
def test_a_login_page_has_taken_nothing(tmp_path: Path, to: str) -> None:
    output = write_output(tmp_path, {"": rows(3)})
    with ThreadingHTTPServer(("127.0.0.1", 0), LoginPage) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        done = publish(output, f"http://127.0.0.1:{server.server_port}", to=to)
        server.shutdown()
    fails(done, "publish.web-page", 200)
    assert record(output, to).partitions[""].sent == 0 and not record(output, to).partitions[""].done


class LoginPage(BaseHTTPRequestHandler):
    """Answers everything with a page."""

    def do_POST(self) -> None:
        page = b"\n<!doctype html><title>Log in</title>"
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)

    do_GET = do_POST

    def log_message(self, *_: Any) -> None: ...


def test_dry_run_counts_what_is_sent_then(tmp_path: Path, serve: Serve) -> None:
    mine = [row("a", HALLUCINATED), row("b"), row("c", HALLUCINATED)]
    output, there = write_output(tmp_path, {"": mine}), Langfuse(lambda s: (400, "no") if s["traceId"] == "c" else None)
    tool = serve(there.tool())
    for run_id, verdicts in (("", 2), ("", 1), (LATER, 3)):  # all that are flagged; the refused one; those flagged no longer
        if run_id:
            write_output(tmp_path, {"": [row("a"), row("b"), row("c", HALLUCINATED)]}, run_id)
            there.refuse = lambda _: None
        dry = publish(output, tool.url, "--flagged-only", "--dry-run")
        assert f" {verdicts} verdicts" in dry.stdout, dry.stdout
        before = tool.count
        publish(output, tool.url, "--flagged-only")
        sent = [event["body"]["traceId"] for _, body in tool.requests[before:] for event in body["batch"]]
        assert tool.count > before and len(set(sent)) == verdicts


def test_who_refuses_everything_is_not_asked_a_million_times(
    tmp_path: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "MOST_REFUSED", 60)
    there = Langfuse(lambda _: (400, "no"))
    tool = serve(there.tool())
    done = publish(write_output(tmp_path, {"": rows(2000)}), tool.url)
    fails(done, "publish.too-many-refused", 60)
    assert tool.count < 12


def test_an_unreadable_record_is_named(tmp_path: Path, serve: Serve) -> None:
    output, there = write_output(tmp_path, {"": rows(3)}), Langfuse()
    tool = serve(there.tool())
    publish(output, tool.url)
    (path,) = (output / "publish").iterdir()
    path.write_text("{}")
    done = publish(output, tool.url)
    fails(done, "publish.unreadable-state", path)


def test_events_differ_where_what_they_say_does() -> None:
    from tests.jobs.integrations.publish.test_verdict import SENDING, verdict

    one, same, other = (langfuse.events(verdict(v), SENDING) for v in (SUPPORTED, SUPPORTED, HALLUCINATED))
    assert one == same and one[0]["id"] != other[0]["id"] and one[0]["body"]["id"] == other[0]["body"]["id"]


def test_settings_of_a_job_file_count_where_no_option_is_given(tmp_path: Path, serve: Serve) -> None:
    output, there = write_output(tmp_path, {"dt=2026-11-20": [row("a", SUPPORTED)]}), Langfuse()
    tool = serve(there.tool())
    job = write_job(tmp_path / "job.yaml", integrations={"publish": {"name": "faithful", "trace_column": "row_id"}})
    assert publish(output, tool.url, "--config", str(job)).returncode == 0
    assert {name for _, name, _ in there.scores} == {"faithful", "faithful_score"}
    assert publish(output, tool.url, "--config", str(job), "--name", "other", "--again").returncode == 0
    assert "other" in {name for _, name, _ in there.scores}
