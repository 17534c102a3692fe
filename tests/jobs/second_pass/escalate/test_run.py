"""`run` with a cascade, night by night: score, finalise, escalate, and the judge's verdicts stand."""

from pathlib import Path
from typing import Any

import pytest

from ragassay.jobs.second_pass.escalate import run as escalate_run
from tests.chat_server import Reply, Serve, Server, completion
from tests.conftest import example_rows, write_logs
from tests.jobs.conftest import here, manifest, write_job
from tests.jobs.second_pass.escalate.conftest import by_key, check, outcomes
from tests.raises import fails

pytestmark = pytest.mark.usefixtures("without_ray")
NIGHT = 40


def reply(body: dict[str, Any]) -> Reply:
    """Finds every second opening hour wrong."""
    return completion(
        {"No": 0.9, "Yes": 0.1} if "opens at 7" in body["messages"][-1]["content"].split("Statement:")[-1] else {"Yes": 1.0}
    )


@pytest.fixture
def nights(tmp_path: Path, serve: Serve) -> tuple[Path, Path, Path, Server]:
    """Logs of a night, where the output goes, a job file without a cascade, and a judge."""
    logs = tmp_path / "logs"
    write_logs(logs / "dt=2026-11-02" / "a.parquet", example_rows(NIGHT))
    return logs, tmp_path / "out", tmp_path / "job.yaml", serve(reply)


def job_file(path: Path, server: Server | None, **more: Any) -> Path:
    members = {"slms": [], "detectors": [{"name": "n", "kind": "novelty"}]}
    job: dict[str, Any] = {"members": members, "verdict": {"threshold": {"quantile": 0.3}}}
    if server is not None:
        engine = {"kind": "server", "base_url": server.url, "retries": 0}
        job["escalation"] = {"judge": {"name": "judge", "model": "m", "engine": engine}, "share": 0.5}
    return write_job(path, job, **more)


def asked(server: Server) -> int:
    """Requests about sentences: every run that scores asks one question beside, whether the server is there."""
    return sum("Statement:" in body["messages"][-1]["content"] for body in server.bodies)


def test_nights_are_escalated_as_they_come(nights: tuple[Path, Path, Path, Server]) -> None:
    logs, output, path, server = nights
    config = job_file(path, server)
    for number in range(3):
        if number:
            write_logs(logs / f"dt=2026-11-0{number + 2}" / "a.parquet", example_rows(NIGHT, start=NIGHT * number))
        requests = asked(server)
        done = here("run", logs, output, "--config", config)
        assert done.returncode == 0, done.stdout + done.stderr
        record = manifest(output)["runs"][-1]
        assert record["escalation"]["partitions"] == [f"dt=2026-11-0{number + 2}"] == record["partitions"]
        assert (record["escalation"]["scored"], record["escalation"]["decided"]) == (NIGHT, NIGHT // 2)
        assert record["escalation"]["usage"]["prompts"] == asked(server) - requests > 0
        rows = [row for row in by_key(output).values() if row["dt"] == f"2026-11-0{number + 2}"]
        assert record["flagged"] == sum(row["verdict"] == "hallucinated" for row in rows)
        flagged = next((s for s in record["drift"]["shifts"] if s["metric"] == "flagged"), None)
        assert flagged is None or flagged["latest"] == pytest.approx(record["flagged"] / NIGHT)  # the verdicts in force
        assert f"{NIGHT // 2} by judge" in done.stdout
    before = by_key(output)
    check(output, before)
    requests = len(server.bodies)
    again = here("run", logs, output, "--config", config)
    assert again.returncode == 0 and "by judge" not in again.stdout and len(server.bodies) == requests
    assert by_key(output) == before and manifest(output)["runs"][-1]["escalation"] is None


def test_without_the_section_nothing_is_asked_and_nothing_changes(nights: tuple[Path, Path, Path, Server]) -> None:
    logs, output, path, server = nights
    assert here("run", logs, output, "--config", job_file(path, None)).returncode == 0
    assert not server.bodies and not (output / "escalated").exists() and manifest(output)["judge"] is None
    assert {row["decided_by"] for row in by_key(output).values()} == {"ensemble"}
    assert {row["judge_score"] for row in by_key(output).values()} == {None}
    before = by_key(output)
    job_file(path, server)  # a night that was finalised and not escalated is escalated by the next run
    done = here("run", logs, output, "--config", path)
    assert done.returncode == 0 and len(outcomes(output)) == NIGHT // 2, done.stdout + done.stderr
    check(output, before)


def test_a_night_that_broke_off_behind_its_verdicts_is_escalated_by_the_next_run(
    nights: tuple[Path, Path, Path, Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    logs, output, path, server = nights
    config = job_file(path, server)
    for step in ("read_candidates", "run_dataflow", "_make_record", "_rewrite_partitions"):
        with monkeypatch.context() as broken:
            broken.setattr(escalate_run, step, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
            assert here("run", logs, output, "--config", config).returncode == 130
    requests = asked(server)
    done = here("run", logs, output, "--config", config)
    assert done.returncode == 0 and asked(server) == requests > 0, done.stdout + done.stderr
    record = manifest(output)["runs"][-1]
    assert (record["escalation"]["sent"], record["escalation"]["decided"]) == (NIGHT // 2, NIGHT // 2) and record["drift"]
    check(output, by_key(output))


def test_more_logs_of_an_escalated_night(nights: tuple[Path, Path, Path, Server]) -> None:
    """The night is chosen from anew; what was answered stays decided, and is not asked again."""
    logs, output, path, server = nights
    config = job_file(path, server)
    assert here("run", logs, output, "--config", config).returncode == 0
    said = outcomes(output)
    write_logs(logs / "dt=2026-11-02" / "b.parquet", example_rows(NIGHT, start=NIGHT))
    done = here("run", logs, output, "--config", config)
    assert done.returncode == 0, done.stdout + done.stderr
    after = outcomes(output)
    assert NIGHT <= len(after) <= NIGHT + NIGHT // 2 and after.items() >= said.items()
    record = manifest(output)["runs"][-1]["escalation"]
    assert record["chosen"] == record["decided"] == len(after) and record["sent"] == len(after) - len(said)
    assert record["usage"]["prompts"] == sum(row["usage"]["prompts"] for key, row in after.items() if key not in said)
    check(output, by_key(output))


def test_a_judge_that_is_not_there_is_told_before_anything_is_scored(nights: tuple[Path, Path, Path, Server]) -> None:
    logs, output, path, server = nights
    server.reply = lambda _: (401, {"error": {"message": "no key"}})
    done = here("run", logs, output, "--config", job_file(path, server))
    fails(done, "server.refuses-key", 401)
    assert not (output / "raw").exists()


def test_score_and_finalize_ask_no_judge(nights: tuple[Path, Path, Path, Server]) -> None:
    logs, output, path, server = nights
    config = job_file(path, server)
    for command in (("score", logs, output), ("finalize", output)):
        assert here(*command, "--config", config).returncode == 0
    assert not asked(server) and not (output / "escalated").exists()
    assert here("escalate", output, "--config", config).returncode == 0 and len(outcomes(output)) == NIGHT // 2
    fresh = output.with_name("fresh")
    assert here("score", logs, fresh, "--config", config).returncode == 0
    done = here("escalate", fresh, "--config", config)
    fails(done, "output.no-verdicts")
