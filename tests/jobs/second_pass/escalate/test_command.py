"""Daily runs with a cascade: `run` scores, finalizes and escalates, and keeps the judge's verdicts."""

from pathlib import Path
from typing import Any

import pytest

from ragassay.jobs.second_pass.escalate import command as escalate_command
from ragassay.schemas.columns import is_flagged
from tests.chat_server import Reply, Serve, Server, completion
from tests.conftest import example_rows, write_logs
from tests.jobs.conftest import invoke, manifest, write_job
from tests.jobs.second_pass.escalate.conftest import check_verdicts, read_escalated, read_scored
from tests.raises import fails

pytestmark = pytest.mark.usefixtures("without_ray")
ROWS = 40


def reply_half_wrong(body: dict[str, Any]) -> Reply:
    """Find every second opening hour wrong."""
    return completion(
        {"No": 0.9, "Yes": 0.1} if "opens at 7" in body["messages"][-1]["content"].split("Statement:")[-1] else {"Yes": 1.0}
    )


@pytest.fixture
def daily(tmp_path: Path, serve: Serve) -> tuple[Path, Path, Path, Server]:
    """Logs of one day, the output path, the job file's path, and a scripted judge."""
    logs = tmp_path / "logs"
    write_logs(logs / "dt=2026-11-02" / "a.parquet", example_rows(ROWS))
    return logs, tmp_path / "out", tmp_path / "job.yaml", serve(reply_half_wrong)


def write_job_file(path: Path, server: Server | None, **more: Any) -> Path:
    members = {"slms": [], "detectors": [{"name": "n", "kind": "novelty"}]}
    job: dict[str, Any] = {"members": members, "verdict": {"threshold": {"quantile": 0.3}}}
    if server is not None:
        engine = {"kind": "server", "base_url": server.url, "retries": 0}
        job["escalation"] = {"judge": {"name": "judge", "model": "m", "engine": engine}, "share": 0.5}
    return write_job(path, job, **more)


def count_requests(server: Server) -> int:
    """Count the requests about sentences. Every run that scores also sends a request to test the server."""
    return sum("Statement:" in body["messages"][-1]["content"] for body in server.bodies)


def test_each_run_escalates_its_partition(daily: tuple[Path, Path, Path, Server]) -> None:
    logs, output, path, server = daily
    config = write_job_file(path, server)
    for number in range(3):
        if number:
            write_logs(logs / f"dt=2026-11-0{number + 2}" / "a.parquet", example_rows(ROWS, start=ROWS * number))
        requests = count_requests(server)
        done = invoke("run", logs, output, "--config", config)
        assert done.returncode == 0, done.stdout + done.stderr
        record = manifest(output)["runs"][-1]
        assert record["escalation"]["partitions"] == [f"dt=2026-11-0{number + 2}"] == record["partitions"]
        assert (record["escalation"]["scored"], record["escalation"]["decided"]) == (ROWS, ROWS // 2)
        assert record["escalation"]["usage"]["prompts"] == count_requests(server) - requests > 0
        rows = [row for row in read_scored(output).values() if row["dt"] == f"2026-11-0{number + 2}"]
        assert record["flagged"] == sum(row["verdict"] == "hallucinated" for row in rows)
        assert all(row["verdict"] == "hallucinated" for row in rows if any(map(is_flagged, row["sentences"])))
        flagged = next((s for s in record["drift"]["shifts"] if s["metric"] == "flagged"), None)
        assert flagged is None or flagged["latest"] == pytest.approx(record["flagged"] / ROWS)  # includes the judge's verdicts
        assert f"{ROWS // 2} by judge" in done.stdout
    before = read_scored(output)
    check_verdicts(output, before)
    requests = len(server.bodies)
    again = invoke("run", logs, output, "--config", config)
    assert again.returncode == 0 and "by judge" not in again.stdout and len(server.bodies) == requests
    assert read_scored(output) == before and manifest(output)["runs"][-1]["escalation"] is None


def test_a_job_without_a_judge_escalates_nothing(daily: tuple[Path, Path, Path, Server]) -> None:
    logs, output, path, server = daily
    assert invoke("run", logs, output, "--config", write_job_file(path, None)).returncode == 0
    assert not server.bodies and not (output / "escalated").exists() and manifest(output)["judge"] is None
    assert {row["decided_by"] for row in read_scored(output).values()} == {"ensemble"}
    assert {row["judge_score"] for row in read_scored(output).values()} == {None}
    before = read_scored(output)
    write_job_file(path, server)  # the next run escalates the finalized partition
    done = invoke("run", logs, output, "--config", path)
    assert done.returncode == 0 and len(read_escalated(output)) == ROWS // 2, done.stdout + done.stderr
    check_verdicts(output, before)


def test_the_next_run_escalates_a_partition_interrupted_after_its_verdicts(
    daily: tuple[Path, Path, Path, Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    logs, output, path, server = daily
    config = write_job_file(path, server)
    for step in ("read_candidates", "run_dataflow", "_make_record", "_rewrite_partitions"):
        with monkeypatch.context() as broken:
            broken.setattr(escalate_command, step, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
            assert invoke("run", logs, output, "--config", config).returncode == 130
    requests = count_requests(server)
    done = invoke("run", logs, output, "--config", config)
    assert done.returncode == 0 and count_requests(server) == requests > 0, done.stdout + done.stderr
    record = manifest(output)["runs"][-1]
    assert (record["escalation"]["sent"], record["escalation"]["decided"]) == (ROWS // 2, ROWS // 2) and record["drift"]
    check_verdicts(output, read_scored(output))


def test_more_logs_of_an_escalated_partition(daily: tuple[Path, Path, Path, Server]) -> None:
    """Responses are chosen from the whole partition; answered ones stay decided and are not sent again."""
    logs, output, path, server = daily
    config = write_job_file(path, server)
    assert invoke("run", logs, output, "--config", config).returncode == 0
    answers = read_escalated(output)
    write_logs(logs / "dt=2026-11-02" / "b.parquet", example_rows(ROWS, start=ROWS))
    done = invoke("run", logs, output, "--config", config)
    assert done.returncode == 0, done.stdout + done.stderr
    after = read_escalated(output)
    assert ROWS <= len(after) <= ROWS + ROWS // 2 and after.items() >= answers.items()
    record = manifest(output)["runs"][-1]["escalation"]
    assert record["chosen"] == record["decided"] == len(after) and record["sent"] == len(after) - len(answers)
    assert record["usage"]["prompts"] == sum(row["usage"]["prompts"] for key, row in after.items() if key not in answers)
    check_verdicts(output, read_scored(output))


def test_an_unusable_judge_is_an_error_before_anything_is_scored(daily: tuple[Path, Path, Path, Server]) -> None:
    logs, output, path, server = daily
    server.reply = lambda _: (401, {"error": {"message": "no key"}})
    done = invoke("run", logs, output, "--config", write_job_file(path, server))
    fails(done, "server.refuses-key", 401)
    assert not (output / "raw").exists()


def test_score_and_finalize_ask_no_judge(daily: tuple[Path, Path, Path, Server]) -> None:
    logs, output, path, server = daily
    config = write_job_file(path, server)
    for command in (("score", logs, output), ("finalize", output)):
        assert invoke(*command, "--config", config).returncode == 0
    assert not count_requests(server) and not (output / "escalated").exists()
    assert invoke("escalate", output, "--config", config).returncode == 0 and len(read_escalated(output)) == ROWS // 2
    fresh = output.with_name("fresh")
    assert invoke("score", logs, fresh, "--config", config).returncode == 0
    done = invoke("escalate", fresh, "--config", config)
    fails(done, "output.no-verdicts")
