"""`escalate` with a scripted judge: every chosen row has one outcome, and no question is sent twice."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import yaml

from tests.chat_server import Reply, Server, completion
from tests.jobs.conftest import invoke, manifest, read_rows, write_job
from tests.jobs.evaluation.conftest import job, labeled_days, raw_row, write_output
from tests.jobs.second_pass.escalate.conftest import (
    Judge,
    check_verdicts,
    count_questions,
    get_question,
    read_escalated,
    read_scored,
    reply_honestly,
    select_doubtful,
)
from tests.jobs.second_pass.explain.test_explain import finalize
from tests.pipeline.cascade.test_dynamic import algorithm_1
from tests.raises import fails

pytestmark = pytest.mark.usefixtures("without_ray")


def escalate(output: Path, config: Path) -> dict[str, Any]:
    """Run the command, and return its record."""
    done = invoke("escalate", output, "--config", config)
    assert done.returncode == 0, done.stdout + done.stderr
    run: dict[str, Any] = manifest(output)["runs"][-1]
    assert "escalated" in done.stdout
    return {**run["escalation"], "run_id": run["run_id"], "stdout": done.stdout}


def test_the_doubtful_share_is_decided_by_the_judge(scored: Path, judge: Judge) -> None:
    server, config = judge(price={"input": 10.0, "output": 1000.0})
    before = read_scored(scored)
    run = escalate(scored, config)
    assert set(read_escalated(scored)) == select_doubtful(before.values(), 0.4) and len(read_escalated(scored)) == 72
    check_verdicts(scored, before)
    after = read_scored(scored)
    changed = sum(after[key]["verdict"] != before[key]["verdict"] for key in after)
    assert (run["scored"], run["chosen"], run["decided"], run["changed"]) == (180, 72, 72, changed) and changed > 5
    assert run["failed"] == {} and run["sent"] == 72 and run["usage"]["prompts"] == len(server.bodies) <= 144
    assert max(count_questions(server).values()) == 1  # responses to a question may share a sentence
    requests = len(server.bodies)
    assert run["usage"]["tokens_computed"] == 41 * requests and run["dollars"] == pytest.approx(requests * 1400 / 1e6)
    assert f"72 by judge, {changed} verdicts changed" in run["stdout"] and run["partitions"] == sorted(
        manifest(scored)["finalized"]
    )
    assert not (scored / "_escalating").exists()

    again = escalate(scored, config)
    assert len(server.bodies) == requests and (again["scored"], again["chosen"], again["sent"]) == (0, 0, 0)
    assert read_scored(scored) == after


def test_a_share_of_none_and_of_all(scored: Path, judge: Judge) -> None:
    before = read_scored(scored)
    server, config = judge(share=0)
    assert escalate(scored, config)["chosen"] == 0 and read_scored(scored) == before and not server.bodies
    server, config = judge(share=1)
    assert escalate(scored, config)["decided"] == 180 and max(count_questions(server).values()) == 1
    check_verdicts(scored, before)
    labels = Counter((row["label"] == "correct", row["verdict"]) for row in read_scored(scored).values() if row["decided_by"])
    assert set(labels) == {(True, "supported"), (False, "hallucinated")}


def test_a_larger_share_asks_only_about_new_responses(scored: Path, judge: Judge) -> None:
    before = read_scored(scored)
    server, config = judge(share=0.1)
    escalate(scored, config)
    config.write_text(config.read_text().replace("share: 0.1", "share: 0.5"))
    run = escalate(scored, config)
    assert set(read_escalated(scored)) == select_doubtful(before.values(), 0.5)
    assert (run["scored"], run["chosen"], run["sent"]) == (180, 90, 72) and run["usage"]["prompts"] < len(server.bodies)
    check_verdicts(scored, before)
    config.write_text(config.read_text().replace("share: 0.5", "share: 0.2"))
    requests = len(server.bodies)
    assert escalate(scored, config)["decided"] == 90 and len(server.bodies) == requests


def test_a_member_can_select_the_doubtful_responses(scored: Path, judge: Judge) -> None:
    _, config = judge(when="a", share=0.25)
    escalate(scored, config)
    lowest = sorted(
        (min(row["members"][0]["sentence_scores"]), key) for key, row in read_scored(scored).items() if row["members"]
    )
    assert set(read_escalated(scored)) == {key for _, key in lowest[:45]}


@pytest.mark.parametrize("order", [None, "item", "dt"])
def test_the_dynamic_threshold_equals_the_papers_algorithm(scored: Path, judge: Judge, order: str | None) -> None:
    _, config = judge(when="b", threshold="dynamic", **({"order": order} if order else {}))
    run = escalate(scored, config)
    rows = [row for row in read_scored(scored).values() if row["status"] == "ok"]
    rows.sort(key=lambda row: ((str(row[order]) if order else ""), row["row_key"]))
    expected = algorithm_1([-min(row["members"][1]["sentence_scores"]) for row in rows])
    assert set(read_escalated(scored)) == {row["row_key"] for row, chosen in zip(rows, expected, strict=True) if chosen}
    assert run["share"] is None and 60 < run["chosen"] < 120


def test_the_dynamic_threshold_includes_earlier_partitions(tmp_path: Path, judge: Judge) -> None:
    """One run per partition chooses the same rows as one run over all."""
    days = dict(list(labeled_days().items())[:3])
    _, config = judge(when="a", threshold="dynamic")
    whole = write_output(tmp_path / "whole", days, job())
    escalate(whole, config)
    output = write_output(tmp_path / "daily", days, job())
    partitions = sorted((output / "scored").iterdir())
    for partition in partitions[1:]:
        partition.rename(tmp_path / partition.name)
    for number, partition in enumerate(partitions):
        if number:
            (tmp_path / partition.name).rename(partition)
        assert escalate(output, config)["partitions"] == [partition.name]
    assert set(read_escalated(output)) == set(read_escalated(whole)) and read_scored(output).keys() == read_scored(whole).keys()
    assert {k: r["verdict"] for k, r in read_scored(output).items()} == {k: r["verdict"] for k, r in read_scored(whole).items()}


def test_undecided_responses_keep_the_ensembles_verdict(scored: Path, judge: Judge) -> None:
    """The next escalation retries errors, but not responses without an answer."""
    is_repaired: list[bool] = []

    def reply(body: dict[str, Any]) -> Reply:
        kind = sum(map(ord, get_question(body).split()[3])) % 8
        if kind == 1:
            return completion({"Perhaps": 0.9})
        if kind == 2:
            return 400, {"error": {"message": "too long"}}
        if kind == 3 and not is_repaired:
            return 503, {"error": {"message": "down"}}
        return reply_honestly(body)

    server, config = judge(reply, engine={"concurrency": 8})
    before = read_scored(scored)
    run = escalate(scored, config)
    check_verdicts(scored, before)
    statuses = Counter(row["status"] for row in read_escalated(scored).values())
    assert run["failed"] == {name: n for name, n in statuses.items() if name != "ok"} and set(run["failed"]) == {
        "no_answer",
        "error",
    }
    assert run["decided"] == statuses["ok"] and sum(statuses.values()) == run["chosen"] == 72
    assert "keep the ensemble's" in run["stdout"]
    is_repaired.append(True)
    asked_before = count_questions(server)
    again = escalate(scored, config)
    check_verdicts(scored, before)
    after = Counter(row["status"] for row in read_escalated(scored).values())
    assert after == Counter({"ok": statuses["ok"] + statuses["error"], "no_answer": statuses["no_answer"]})
    assert again["chosen"] == again["sent"] == again["decided"] == statuses["error"]
    errors = {sentence for sentence, n in (count_questions(server) - asked_before).items() if n}
    assert all(sum(map(ord, sentence.split()[3])) % 8 == 3 for sentence in errors)


def test_a_server_that_keeps_failing_ends_the_run(scored: Path, judge: Judge) -> None:
    server, config = judge(lambda _: (503, {"error": {"message": "down"}}))
    before = read_scored(scored)
    done = invoke("escalate", scored, "--config", config)
    fails(done, "server.in-trouble", "HTTP 503")
    assert read_scored(scored) == before and not manifest(scored)["escalated"]
    server.reply = reply_honestly
    assert escalate(scored, config)["decided"] == 72
    check_verdicts(scored, before)


def test_another_threshold_keeps_the_judges_decisions(scored: Path, judge: Judge) -> None:
    server, config = judge()
    escalate(scored, config)
    requests = len(server.bodies)
    answers = read_escalated(scored)
    finalize(scored, job(verdict={"threshold": {"quantile": 0.6}}))  # this job has no section `escalation`
    check_verdicts(scored, read_scored(scored))
    after = read_scored(scored)
    assert sum(row["decided_by"] == "judge" for row in after.values()) == 72
    escalate(scored, config)
    assert read_escalated(scored) == answers and len(server.bodies) == requests and read_scored(scored) == after


def test_another_judge_is_refused_until_finalize_restores_the_ensembles_verdicts(
    scored: Path, judge: Judge, tmp_path: Path
) -> None:
    _, config = judge()
    escalate(scored, config)
    before = read_scored(scored)
    config.write_text(config.read_text().replace("model: m", "model: other"))
    done = invoke("escalate", scored, "--config", config)
    fails(done, "output.other-second-pass", "model: was 'm', is 'other'")
    (scored / "escalated").rename(tmp_path / "moved")
    done = invoke("escalate", scored, "--config", config)
    fails(done, "escalate.answers-gone", 72)
    assert read_scored(scored) == before
    finalize(scored, job())
    assert {row["decided_by"] for row in read_scored(scored).values()} == {"ensemble", None}
    assert escalate(scored, config)["decided"] == 72
    check_verdicts(scored, before)


def test_the_next_run_completes_an_interrupted_one(scored: Path, judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    from ragassay.jobs.second_pass.escalate import command

    server, config = judge()
    before = read_scored(scored)
    for step in ("_rewrite_partitions", "_make_record"):
        with monkeypatch.context() as broken:
            broken.setattr(command, step, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
            assert invoke("escalate", scored, "--config", config).returncode == 130
        assert max(count_questions(server).values()) == 1 and len(read_escalated(scored)) == 72
    record = escalate(scored, config)
    assert (record["chosen"], record["sent"], record["usage"]["prompts"]) == (72, 72, len(server.bodies))
    assert max(count_questions(server).values()) == 1
    check_verdicts(scored, before)


def test_errors_with_a_later_outcome_are_dropped(scored: Path, judge: Judge) -> None:
    """An interrupted run can leave both."""
    import pyarrow.parquet as pq

    _, config = judge()
    escalate(scored, config)
    answers = read_escalated(scored)
    path = next((scored / "escalated").rglob("*.parquet"))
    table = pq.read_table(path, partitioning=None)
    rows = [{**row, "judge": None, "usage": None, "status": "error", "error": "trouble"} for row in table.to_pylist()]
    pq.write_table(pa.Table.from_pylist(rows, table.schema), path.with_name("0-earlier.parquet"))
    escalate(scored, config)
    assert read_escalated(scored) == answers


@pytest.mark.parametrize("paths", [[""], ["model=a%20b/judge=x", "model=__HIVE_DEFAULT_PARTITION__/judge=y"]])
def test_hive_paths_with_special_names(tmp_path: Path, judge: Judge, paths: list[str]) -> None:
    days = list(labeled_days().values())
    output = write_output(tmp_path / "out", dict(zip(paths, days, strict=False)), job())
    _, config = judge()
    assert escalate(output, config)["decided"] == 24 * len(paths)
    assert Counter(row["decided_by"] for row in read_rows(output))["judge"] == 24 * len(paths)
    finalize(output, job(verdict={"threshold": {"quantile": 0.5}}))
    assert Counter(row["decided_by"] for row in read_rows(output))["judge"] == 24 * len(paths)


def test_a_local_slm_can_be_the_judge(scored: Path, judge: Judge, tiny_model: str) -> None:
    _, config = judge()
    local = {"name": "judge", "model": tiny_model, "engine": "transformers", "max_model_len": 1024}
    write_job(config, yaml.safe_load(config.read_text()), escalation={"judge": local, "share": 0.05})
    before = read_scored(scored)
    run = escalate(scored, config)
    assert run["decided"] == 9 and run["usage"]["tokens_computed"] > 1000
    check_verdicts(scored, before)
    assert {row["context_windows"] for row in read_escalated(scored).values()} == {1}


@pytest.mark.parametrize(
    ("section", "code", "text"),
    [
        ({"order": "no_such", "when": "a", "threshold": "dynamic"}, "output.no-column", "no_such"),
        ({"order": "spans", "when": "a", "threshold": "dynamic"}, "escalate.unsortable-column", "spans"),
        ({"share": 1.5}, "config.invalid", "escalation.share"),
    ],
)
def test_an_invalid_section_is_refused(scored: Path, judge: Judge, section: dict[str, Any], code: str, text: str) -> None:
    server, config = judge(**section)
    done = invoke("escalate", scored, "--config", config)
    fails(done, code, text)
    assert not server.bodies


def test_a_job_without_a_judge_is_refused(scored: Path) -> None:
    fails(invoke("escalate", scored), "config.no-judge")


def test_the_values_of_the_fixture_are_not_exact_in_float32() -> None:
    """Parquet stores float32 values, so the tests above cover rounding."""
    row = raw_row(1, 1, "correct", np.random.default_rng(0))
    assert float(np.float32(row["members"][0]["sentence_scores"][0])) != row["members"][0]["sentence_scores"][0]


def test_requests_contain_the_judges_prompt(scored: Path, judge: Judge) -> None:
    server, config = judge(share=0.01)
    escalate(scored, config)
    (first,) = [body for body in server.bodies][:1]
    assert (
        isinstance(server, Server) and first["model"] == "m" and "Reply with Yes or No only" in first["messages"][-1]["content"]
    )
