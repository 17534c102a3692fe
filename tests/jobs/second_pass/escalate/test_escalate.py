"""`escalate` against a scripted judge: every chosen row has one outcome, and no answer is asked for twice."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import yaml

from tests.chat_server import Reply, Server, completion
from tests.jobs.conftest import here, manifest, read_rows, write_job
from tests.jobs.evaluation.conftest import job, labeled_days, raw_row, write_output
from tests.jobs.second_pass.escalate.conftest import Judge, asked, by_key, check, doubtful, judges, outcomes, questions
from tests.jobs.second_pass.explain.test_explain import finalize
from tests.pipeline.cascade.test_dynamic import algorithm_1
from tests.raises import fails

pytestmark = pytest.mark.usefixtures("without_ray")


def escalate(output: Path, config: Path) -> dict[str, Any]:
    """Run the command; gives its record."""
    done = here("escalate", output, "--config", config)
    assert done.returncode == 0, done.stdout + done.stderr
    run: dict[str, Any] = manifest(output)["runs"][-1]
    assert "escalated" in done.stdout
    return {**run["escalation"], "run_id": run["run_id"], "stdout": done.stdout}


def test_the_doubtful_share_is_decided_by_the_judge(scored: Path, judge: Judge) -> None:
    server, config = judge(price={"input": 10.0, "output": 1000.0})
    before = by_key(scored)
    run = escalate(scored, config)
    assert set(outcomes(scored)) == doubtful(before.values(), 0.4) and len(outcomes(scored)) == 72
    check(scored, before)
    after = by_key(scored)
    changed = sum(after[key]["verdict"] != before[key]["verdict"] for key in after)
    assert (run["scored"], run["chosen"], run["decided"], run["changed"]) == (180, 72, 72, changed) and changed > 5
    assert run["failed"] == {} and run["sent"] == 72 and run["usage"]["prompts"] == len(server.bodies) <= 144
    assert max(questions(server).values()) == 1  # responses to a question may share a sentence
    requests = len(server.bodies)
    assert run["usage"]["tokens_computed"] == 41 * requests and run["dollars"] == pytest.approx(requests * 1400 / 1e6)
    assert f"72 by judge, {changed} verdicts changed" in run["stdout"] and run["partitions"] == sorted(
        manifest(scored)["finalized"]
    )
    assert not (scored / "_escalating").exists()

    again = escalate(scored, config)
    assert len(server.bodies) == requests and (again["scored"], again["chosen"], again["sent"]) == (0, 0, 0)
    assert by_key(scored) == after


def test_none_and_all(scored: Path, judge: Judge) -> None:
    before = by_key(scored)
    server, config = judge(share=0)
    assert escalate(scored, config)["chosen"] == 0 and by_key(scored) == before and not server.bodies
    server, config = judge(share=1)
    assert escalate(scored, config)["decided"] == 180 and max(questions(server).values()) == 1
    check(scored, before)
    labels = Counter((row["label"] == "correct", row["verdict"]) for row in by_key(scored).values() if row["decided_by"])
    assert set(labels) == {(True, "supported"), (False, "hallucinated")}


def test_a_larger_share_asks_only_about_what_is_new(scored: Path, judge: Judge) -> None:
    before = by_key(scored)
    server, config = judge(share=0.1)
    escalate(scored, config)
    config.write_text(config.read_text().replace("share: 0.1", "share: 0.5"))
    run = escalate(scored, config)
    assert set(outcomes(scored)) == doubtful(before.values(), 0.5)
    assert (run["scored"], run["chosen"], run["sent"]) == (180, 90, 72) and run["usage"]["prompts"] < len(server.bodies)
    check(scored, before)
    config.write_text(config.read_text().replace("share: 0.5", "share: 0.2"))
    requests = len(server.bodies)
    assert escalate(scored, config)["decided"] == 90 and len(server.bodies) == requests


def test_a_member_can_say_what_is_doubtful(scored: Path, judge: Judge) -> None:
    _, config = judge(when="a", share=0.25)
    escalate(scored, config)
    lowest = sorted((min(row["members"][0]["sentence_scores"]), key) for key, row in by_key(scored).items() if row["members"])
    assert set(outcomes(scored)) == {key for _, key in lowest[:45]}


@pytest.mark.parametrize("order", [None, "item", "dt"])
def test_the_dynamic_threshold_is_the_papers(scored: Path, judge: Judge, order: str | None) -> None:
    _, config = judge(when="b", threshold="dynamic", **({"order": order} if order else {}))
    run = escalate(scored, config)
    rows = [row for row in by_key(scored).values() if row["status"] == "ok"]
    rows.sort(key=lambda row: ((str(row[order]) if order else ""), row["row_key"]))
    expected = algorithm_1([-min(row["members"][1]["sentence_scores"]) for row in rows])
    assert set(outcomes(scored)) == {row["row_key"] for row, chosen in zip(rows, expected, strict=True) if chosen}
    assert run["share"] is None and 60 < run["chosen"] < 120


def test_the_dynamic_threshold_knows_the_nights_before(tmp_path: Path, judge: Judge) -> None:
    """Night by night the same rows are chosen as in one go: what was escalated before counts, and is not looked at again."""
    days = dict(list(labeled_days().items())[:3])
    _, config = judge(when="a", threshold="dynamic")
    whole = write_output(tmp_path / "whole", days, job())
    escalate(whole, config)
    output = write_output(tmp_path / "nights", days, job())
    nights = sorted((output / "scored").iterdir())
    for night in nights[1:]:
        night.rename(tmp_path / night.name)
    for number, night in enumerate(nights):
        if number:
            (tmp_path / night.name).rename(night)
        assert escalate(output, config)["partitions"] == [night.name]
    assert set(outcomes(output)) == set(outcomes(whole)) and by_key(output).keys() == by_key(whole).keys()
    assert {k: r["verdict"] for k, r in by_key(output).items()} == {k: r["verdict"] for k, r in by_key(whole).items()}


def test_what_it_could_not_decide_keeps_the_ensembles_verdict(scored: Path, judge: Judge) -> None:
    """Trouble is asked again by the next escalation, in whatever partition; what is no answer is left."""
    well: list[bool] = []

    def reply(body: dict[str, Any]) -> Reply:
        kind = sum(map(ord, asked(body).split()[3])) % 8
        if kind == 1:
            return completion({"Perhaps": 0.9})
        if kind == 2:
            return 400, {"error": {"message": "too long"}}
        if kind == 3 and not well:
            return 503, {"error": {"message": "down"}}
        return judges(body)

    server, config = judge(reply, engine={"concurrency": 8})
    before = by_key(scored)
    run = escalate(scored, config)
    check(scored, before)
    statuses = Counter(row["status"] for row in outcomes(scored).values())
    assert run["failed"] == {name: n for name, n in statuses.items() if name != "ok"} and set(run["failed"]) == {
        "no_answer",
        "error",
    }
    assert run["decided"] == statuses["ok"] and sum(statuses.values()) == run["chosen"] == 72
    assert "keep the ensemble's" in run["stdout"]
    well.append(True)
    asked_before = questions(server)
    again = escalate(scored, config)
    check(scored, before)
    after = Counter(row["status"] for row in outcomes(scored).values())
    assert after == Counter({"ok": statuses["ok"] + statuses["error"], "no_answer": statuses["no_answer"]})
    assert again["chosen"] == again["sent"] == again["decided"] == statuses["error"]
    errors = {sentence for sentence, n in (questions(server) - asked_before).items() if n}
    assert all(sum(map(ord, sentence.split()[3])) % 8 == 3 for sentence in errors)


def test_a_server_in_lasting_trouble_ends_the_run_and_what_came_is_kept(scored: Path, judge: Judge) -> None:
    server, config = judge(lambda _: (503, {"error": {"message": "down"}}))
    before = by_key(scored)
    done = here("escalate", scored, "--config", config)
    fails(done, "server.in-trouble", "HTTP 503")
    assert by_key(scored) == before and not manifest(scored)["escalated"]
    server.reply = judges
    assert escalate(scored, config)["decided"] == 72
    check(scored, before)


def test_another_threshold_keeps_the_judges_decisions(scored: Path, judge: Judge) -> None:
    server, config = judge()
    escalate(scored, config)
    requests = len(server.bodies)
    said = outcomes(scored)
    finalize(scored, job(verdict={"threshold": {"quantile": 0.6}}))  # without the section, even
    check(scored, by_key(scored))
    after = by_key(scored)
    assert sum(row["decided_by"] == "judge" for row in after.values()) == 72
    escalate(scored, config)
    assert outcomes(scored) == said and len(server.bodies) == requests and by_key(scored) == after


def test_another_judge_is_refused_until_the_old_ones_answers_are_gone(scored: Path, judge: Judge, tmp_path: Path) -> None:
    _, config = judge()
    escalate(scored, config)
    before = by_key(scored)
    config.write_text(config.read_text().replace("model: m", "model: other"))
    done = here("escalate", scored, "--config", config)
    fails(done, "output.other-second-pass", "model: was 'm', is 'other'")
    (scored / "escalated").rename(tmp_path / "moved")
    done = here("escalate", scored, "--config", config)
    fails(done, "escalate.answers-gone", 72)
    assert by_key(scored) == before
    finalize(scored, job())
    assert {row["decided_by"] for row in by_key(scored).values()} == {"ensemble", None}
    assert escalate(scored, config)["decided"] == 72
    check(scored, before)


def test_a_crash_between_the_steps_is_mended_by_the_next_run(
    scored: Path, judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ragassay.jobs.second_pass.escalate import run

    server, config = judge()
    before = by_key(scored)
    for step in ("_rewrite_partitions", "_make_record"):
        with monkeypatch.context() as broken:
            broken.setattr(run, step, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
            assert here("escalate", scored, "--config", config).returncode == 130
        assert max(questions(server).values()) == 1 and len(outcomes(scored)) == 72
    found = escalate(scored, config)
    assert (found["chosen"], found["sent"], found["usage"]["prompts"]) == (72, 72, len(server.bodies))
    assert max(questions(server).values()) == 1
    check(scored, before)


def test_errors_that_stand_beside_their_later_outcome_are_dropped(scored: Path, judge: Judge) -> None:
    """As a run leaves them that was killed before it came to it."""
    import pyarrow.parquet as pq

    _, config = judge()
    escalate(scored, config)
    said = outcomes(scored)
    path = next((scored / "escalated").rglob("*.parquet"))
    table = pq.read_table(path, partitioning=None)
    rows = [{**row, "judge": None, "usage": None, "status": "error", "error": "trouble"} for row in table.to_pylist()]
    pq.write_table(pa.Table.from_pylist(rows, table.schema), path.with_name("0-earlier.parquet"))
    escalate(scored, config)
    assert outcomes(scored) == said


@pytest.mark.parametrize("places", [[""], ["model=a%20b/judge=x", "model=__HIVE_DEFAULT_PARTITION__/judge=y"]])
def test_odd_partitions(tmp_path: Path, judge: Judge, places: list[str]) -> None:
    days = list(labeled_days().values())
    output = write_output(tmp_path / "out", dict(zip(places, days, strict=False)), job())
    _, config = judge()
    assert escalate(output, config)["decided"] == 24 * len(places)
    assert Counter(row["decided_by"] for row in read_rows(output))["judge"] == 24 * len(places)
    finalize(output, job(verdict={"threshold": {"quantile": 0.5}}))
    assert Counter(row["decided_by"] for row in read_rows(output))["judge"] == 24 * len(places)


def test_a_judge_of_the_machine_is_any_slm(scored: Path, judge: Judge, tiny_model: str) -> None:
    _, config = judge()
    local = {"name": "judge", "model": tiny_model, "engine": "transformers", "max_model_len": 1024}
    write_job(config, yaml.safe_load(config.read_text()), escalation={"judge": local, "share": 0.05})
    before = by_key(scored)
    run = escalate(scored, config)
    assert run["decided"] == 9 and run["usage"]["tokens_computed"] > 1000
    check(scored, before)
    assert {row["context_windows"] for row in outcomes(scored).values()} == {1}


@pytest.mark.parametrize(
    ("section", "code", "named"),
    [
        ({"order": "no_such", "when": "a", "threshold": "dynamic"}, "output.no-column", "no_such"),
        ({"order": "spans", "when": "a", "threshold": "dynamic"}, "escalate.unsortable-column", "spans"),
        ({"share": 1.5}, "config.invalid", "escalation.share"),
    ],
)
def test_what_is_wrong_is_named(scored: Path, judge: Judge, section: dict[str, Any], code: str, named: str) -> None:
    server, config = judge(**section)
    done = here("escalate", scored, "--config", config)
    fails(done, code, named)
    assert not server.bodies


def test_a_job_without_a_judge_says_how_to_name_one(scored: Path) -> None:
    fails(here("escalate", scored), "config.no-judge")


def test_values_of_float32_are_what_is_compared() -> None:
    """A row's values come out of Parquet as float32; in doubles they would tie elsewhere."""
    row = raw_row(1, 1, "correct", np.random.default_rng(0))
    assert float(np.float32(row["members"][0]["sentence_scores"][0])) != row["members"][0]["sentence_scores"][0]


def test_servers_are_asked_by_the_judges_prompt(scored: Path, judge: Judge) -> None:
    server, config = judge(share=0.01)
    escalate(scored, config)
    (first,) = [body for body in server.bodies][:1]
    assert (
        isinstance(server, Server) and first["model"] == "m" and "Reply with Yes or No only" in first["messages"][-1]["content"]
    )
