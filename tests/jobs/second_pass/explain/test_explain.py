"""`explain` against scripted servers: every flagged sentence has one outcome, and no answer is asked for twice."""

import json
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.chat_server import Reply, Server
from tests.jobs.conftest import here, manifest
from tests.jobs.evaluation.conftest import job, labeled_days, write_output
from tests.jobs.second_pass.explain.conftest import SENTENCE, asked, explains, flags, outcomes, questions, told
from tests.raises import fails

pytestmark = pytest.mark.usefixtures("without_ray")
Model = Callable[..., tuple[Server, Path]]
TIMEOUT = 3


@pytest.mark.parametrize("strategy", ["vanilla", "fallback", "categorized"])
def test_every_flagged_sentence_has_one_outcome(flagged: Path, model: Model, strategy: str) -> None:
    server, config = model()
    done = here("explain", flagged, "--config", config, "--strategy", strategy)
    assert done.returncode == 0, done.stdout + done.stderr
    found = outcomes(flagged, strategy)
    assert set(found) == flags(flagged) and len(found) > 50
    assert {entry["status"] for entry in found.values()} == {"ok"} and {entry["model"] for entry in found.values()} == {"m"}
    signed = Counter("signed" in entry["answer"] or entry["sentence"] == 1 for entry in found.values())
    agreed = Counter(entry["consistent"] for entry in found.values())
    if strategy == "vanilla":
        assert set(agreed) == {None}
    else:
        assert agreed[True] == signed[True] and agreed[False] == signed[False] > 0
    quoted = [entry for entry in found.values() if entry["sentence"] == 0]
    assert quoted and all(entry["evidence"]["passage"] == 0 and entry["evidence"]["start"] == 0 for entry in quoted)
    assert sorted(path.name for path in (flagged / "explanations" / f"strategy={strategy}").iterdir()) == sorted(
        path.name for path in (flagged / "scored").iterdir()
    )
    (run,) = manifest(flagged)["explained"]
    assert run["chosen"] == run["flagged"] and run["statuses"] == {"ok": len(found)}
    assert (run["questions"], run["prompt_tokens"], run["completion_tokens"]) == (
        len(server.bodies), 900 * len(server.bodies), 60 * len(server.bodies),
    )  # fmt: skip
    assert max(questions(server).values()) == 1

    before = len(server.bodies)
    again = here("explain", flagged, "--config", config, "--strategy", strategy)
    assert again.returncode == 0 and len(server.bodies) == before and outcomes(flagged, strategy) == found
    assert manifest(flagged)["explained"][-1]["questions"] == 0


def test_other_verdicts_ask_only_what_is_new(flagged: Path, model: Model) -> None:
    server, config = model()
    first = here("explain", flagged, "--config", config)
    assert first.returncode == 0, first.stdout + first.stderr
    few, more = flags(flagged), job(verdict={"threshold": {"quantile": 0.6}})
    before = outcomes(flagged, "categorized")
    finalize(flagged, more)
    assert flags(flagged) > few
    assert here("explain", flagged, "--config", config).returncode == 0
    assert set(outcomes(flagged, "categorized")) == flags(flagged) and max(questions(server).values()) == 1
    finalize(flagged, job())
    asked_before = len(server.bodies)
    assert here("explain", flagged, "--config", config).returncode == 0 and len(server.bodies) == asked_before
    after = outcomes(flagged, "categorized")
    assert set(after) == few and {k: v["answer"] for k, v in after.items()} == {k: v["answer"] for k, v in before.items()}
    finalize(flagged, more)  # what no row needed meanwhile was paid for, too
    assert here("explain", flagged, "--config", config).returncode == 0 and len(server.bodies) == asked_before
    runs = manifest(flagged)["explained"]
    assert sum(run["questions"] for run in runs) == len(server.bodies) and runs[-1]["prompt_tokens"] == 0


def finalize(output: Path, settings: Any) -> None:
    from rich.console import Console

    from ragassay.jobs.run import finalize_job

    finalize_job(settings, str(output), Console(quiet=True))


def test_a_server_that_misbehaves(flagged: Path, model: Model) -> None:
    """Every kind of fault is an outcome; what may pass is asked again by the next run, and nothing else."""
    tries: Counter[str] = Counter()
    well: list[bool] = []

    def reply(body: dict[str, Any]) -> Reply:
        about = asked(body)
        key = about["response"] + about[SENTENCE]
        tries[key] += 1
        kind = int.from_bytes(key.encode()[5:9].ljust(4), "big") + len(key) + sum(map(ord, key))
        said = explains(body)
        text = said[1]["choices"][0]["message"]["content"]
        own, nowhere = {"category": "my_own_kind"}, {"evidence": "words that stand nowhere at all"}
        faults: list[Reply | None] = [
            (429, {"error": {"message": "slow down"}}) if tries[key] == 1 else None,
            (500, {"error": {"message": "oops"}}) if tries[key] <= 2 else None,
            (503, {"error": {"message": "down"}}) if not well else None,
            told(text[: len(text) // 2], finish="length"),
            told("It is wrong because it is wrong."),
            told(json.dumps({**json.loads(text), **own})),
            told(json.dumps({**json.loads(text), **nowhere})),
            (400, {"error": {"message": "content policy"}}),
            told(""),
        ]
        if kind % 10 == 9 and tries[key] == 1:
            time.sleep(TIMEOUT + 1)
        return (faults[kind % 10] if kind % 10 < len(faults) else None) or said

    server, config = model(reply, engine={"concurrency": 8, "retries": 3, "timeout_seconds": TIMEOUT})
    done = here("explain", flagged, "--config", config)
    assert done.returncode == 0, done.stdout + done.stderr
    found = outcomes(flagged, "categorized")
    assert set(found) == flags(flagged)
    statuses = Counter(entry["status"] for entry in found.values())
    assert set(statuses) == {"ok", "unreadable", "refused", "no_answer", "error"}, statuses
    errors = {entry["error"] for entry in found.values() if entry["status"] == "unreadable"}
    assert errors == {
        "the answer was cut off after 400 tokens", "the answer is no JSON", "the category 'my_own_kind' is not in the list",
    }  # fmt: skip
    for entry in found.values():
        assert (entry["reason"] is None) == (entry["status"] != "ok")
        if entry["status"] == "ok" and "nowhere" in entry["answer"]:
            assert entry["evidence"] is None and "in no passage" in entry["error"]
    assert "unreadable" in done.stdout and manifest(flagged)["explained"][-1]["statuses"] == dict(statuses)

    well.append(True)
    before = questions(server)
    again = here("explain", flagged, "--config", config)
    assert again.returncode == 0, again.stdout + again.stderr
    assert len(server.bodies) - before.total() == statuses["error"]
    after = Counter(entry["status"] for entry in outcomes(flagged, "categorized").values())
    assert after == Counter({**statuses, "ok": statuses["ok"] + statuses["error"], "error": 0})


def test_a_server_in_lasting_trouble_ends_the_run_and_keeps_what_came(flagged: Path, model: Model) -> None:
    answered: list[str] = []
    well: list[bool] = []

    def reply(body: dict[str, Any]) -> Reply:
        if len(answered) >= 20 and not well:
            return 503, {"error": {"message": "down"}}
        answered.append(json.dumps(body["messages"]))
        return explains(body)

    _, config = model(reply, engine={"concurrency": 2, "retries": 0})
    done = here("explain", flagged, "--config", config)
    fails(done, "server.in-trouble", "HTTP 503")
    well.append(True)
    assert here("explain", flagged, "--config", config).returncode == 0
    assert set(outcomes(flagged, "categorized")) == flags(flagged)
    assert len(answered) == len(set(answered)) == manifest(flagged)["explained"][-1]["questions"]


@pytest.mark.parametrize("dollars", [0.0, 0.002, 0.02])
def test_a_budget_in_money_is_never_overdrawn(flagged: Path, model: Model, dollars: float) -> None:
    """A token of the prompt costs a millionth of a dollar here, one of the answer two."""
    server, config = model(price={"input": 1.0, "output": 2.0})
    done = here("explain", flagged, "--config", config, "--budget-usd", str(dollars))
    assert done.returncode == 0, done.stdout + done.stderr
    cost = len(server.bodies) * (900 + 2 * 60) / 1_000_000
    (run,) = manifest(flagged)["explained"]
    assert cost <= dollars and run["dollars"] == pytest.approx(cost)
    found = outcomes(flagged, "categorized")
    assert set(found) == flags(flagged) and run["statuses"].get("over_budget", 0) == len(found) - len(server.bodies) > 0
    assert here("explain", flagged, "--config", config).returncode == 0
    assert max(questions(server).values()) == 1 and len(server.bodies) == len(found)


def test_half_a_row_that_is_asked_again_keeps_its_other_half(flagged: Path, model: Model) -> None:
    """A refusal is an answer too: a row that has to be written anew for its neighbour asks nothing of it again."""
    finalize(flagged, job(verdict={"threshold": {"quantile": 0.9}}))
    well: list[bool] = []

    def reply(body: dict[str, Any]) -> Reply:
        if "signed" not in asked(body)[SENTENCE]:
            return 400, {"error": {"message": "content policy"}}
        return explains(body) if well or sum(map(ord, asked(body)["question"])) % 4 else (503, {"error": {"message": "down"}})

    server, config = model(reply, engine={"concurrency": 8, "retries": 0})
    done = here("explain", flagged, "--config", config, "--sample", "60")
    assert done.returncode == 0, done.stdout + done.stderr
    well.append(True)
    first = Counter(entry["status"] for entry in outcomes(flagged, "categorized").values())
    assert first["refused"] and first["error"], first
    before = len(server.bodies)
    assert here("explain", flagged, "--config", config, "--sample", "60").returncode == 0
    assert len(server.bodies) == before + first["error"]
    assert Counter(entry["status"] for entry in outcomes(flagged, "categorized").values())["refused"] == first["refused"]


def test_a_question_that_comes_back_on_another_night_is_not_asked_again(tmp_path: Path, model: Model) -> None:
    rows = next(iter(labeled_days().values()))
    output = write_output(tmp_path / "out", {"dt=1": rows, "dt=2": rows}, job())
    server, config = model()
    for sentences in ("1", "2", "3", "20", "21", "1000"):  # twins have equal scores, and are told apart by a budget
        here("explain", output, "--config", config, "--sample", sentences)
    assert set(outcomes(output, "categorized")) == flags(output) and len(server.bodies) == len(flags(output)) / 2
    runs = manifest(output)["explained"]
    assert sum(run["questions"] for run in runs) == len(server.bodies) and max(questions(server).values()) == 1


def test_a_server_that_refuses_everything_is_no_rows_fault(flagged: Path, model: Model) -> None:
    server, config = model(lambda _: (400, {"error": {"message": "unknown field response_format"}}))
    done = here("explain", flagged, "--config", config)
    fails(done, "server.refuses-every-prompt")
    assert len(server.bodies) < 30
    assert not outcomes(flagged, "categorized")


def test_half_a_surrogate_pair_is_written_as_a_question_mark(flagged: Path, model: Model) -> None:
    said = {"evidence": "", "reason": "a \ud800 b", "category": "added"}
    _, config = model(lambda _: told(json.dumps(said)))
    done = here("explain", flagged, "--config", config, "--sample", "5")
    assert done.returncode == 0, done.stdout + done.stderr
    assert {entry["reason"] for entry in outcomes(flagged, "categorized").values()} == {"a ? b"}


def test_a_number_of_sentences_takes_the_worst_responses(flagged: Path, model: Model) -> None:
    server, config = model()
    assert here("explain", flagged, "--config", config, "--sample", "20").returncode == 0
    some = outcomes(flagged, "categorized")
    assert 19 <= len(some) <= 20 and len(server.bodies) == len(some)
    assert here("explain", flagged, "--config", config, "--sample", "20").returncode == 0
    assert len(server.bodies) == len(some)
    assert here("explain", flagged, "--config", config, "--sample", "40", "--stratify", "item").returncode == 0
    assert max(questions(server).values()) == 1 and len(outcomes(flagged, "categorized")) >= 40


@pytest.mark.parametrize(
    ("arguments", "settings", "code"),
    [
        (["--budget-usd", "1"], {}, "explain.no-price"),
        (["--stratify", "item"], {}, "options.stratify-without-sample"),
        (["--sample", "5", "--stratify", "zzz"], {}, "output.no-column"),
        ([], {"categories": [{"name": "a", "meaning": "b"}]}, "config.invalid"),
        ([], {"model": "embedded"}, "config.invalid"),
    ],
)
def test_what_is_wrong_is_named(flagged: Path, model: Model, arguments: list[str], settings: dict[str, Any], code: str) -> None:
    server, config = model(**settings) if "model" not in settings else model()
    if "model" in settings:
        config.write_text(config.read_text().replace("model: m", "model: embedded"))
    done = here("explain", flagged, "--config", config, *arguments)
    fails(done, code)
    assert not server.bodies


def test_a_job_without_a_reasoner_says_how_to_name_one(flagged: Path) -> None:
    fails(here("explain", flagged), "explain.no-reasoner")


def test_another_model_is_refused(flagged: Path, model: Model) -> None:
    _, config = model()
    assert here("explain", flagged, "--config", config).returncode == 0
    config.write_text(config.read_text().replace("model: m", "model: other"))
    done = here("explain", flagged, "--config", config)
    fails(done, "output.other-second-pass", "model: was 'm', is 'other'")
    assert here("explain", flagged, "--config", config, "--strategy", "vanilla").returncode == 0


@pytest.mark.parametrize("places", [[""], ["model=a%20b/strategy=x", "model=__HIVE_DEFAULT_PARTITION__/strategy=y"]])
def test_odd_partitions(tmp_path: Path, model: Model, places: list[str]) -> None:
    days = list(labeled_days().values())
    output = write_output(tmp_path / "out", dict(zip(places, days, strict=False)), job())
    _, config = model()
    done = here("explain", output, "--config", config)
    assert done.returncode == 0, done.stdout + done.stderr
    assert set(outcomes(output, "categorized")) == flags(output)
    found = {str(p.parent.relative_to(output / "explanations")) for p in (output / "explanations").rglob("*.parquet")}
    renamed = [place.replace("model", "input_model").replace("strategy", "input_strategy") for place in places]
    assert found == {f"strategy=categorized/{place}".rstrip("/") for place in renamed}
    page = here("report", output)
    assert page.returncode == 0 and "Nobody signs" in (output / "report.html").read_text()


def test_nothing_is_flagged(flagged: Path, model: Model) -> None:
    finalize(flagged, job(verdict={"threshold": {"value": -9.0}}))
    server, config = model()
    done = here("explain", flagged, "--config", config)
    assert done.returncode == 0 and "0 sentences of 0 responses" in done.stdout and not server.bodies, done.stdout + done.stderr


def test_attack_a_run_gives_other_verdicts_while_sentences_are_explained(flagged: Path, model: Model) -> None:
    """Neither waits for the other, and in the end exactly what is flagged is explained."""
    before = flags(flagged)

    def reply(body: dict[str, Any]) -> Reply:
        if len(manifest(flagged)["runs"]) == 1:
            finalize(flagged, job(verdict={"threshold": {"quantile": 0.6}}))
        return explains(body)

    server, config = model(reply, engine={"concurrency": 1})
    done = here("explain", flagged, "--config", config)
    assert done.returncode == 0, done.stdout + done.stderr
    assert flags(flagged) > before
    assert here("explain", flagged, "--config", config).returncode == 0
    assert set(outcomes(flagged, "categorized")) == flags(flagged) and max(questions(server).values()) == 1
    found = manifest(flagged)
    assert len(found["runs"]) == 2 and sum(run["questions"] for run in found["explained"]) == len(server.bodies)


def test_what_a_killed_explain_has_spent_is_counted_once(flagged: Path, model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    from ragassay.jobs.second_pass.explain import run

    server, config = model()

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(run, "count_results", killed)
        assert here("explain", flagged, "--config", config).returncode == 130
    asked_before = len(server.bodies)
    assert [here("explain", flagged, "--config", config).returncode for _ in range(3)] == [0, 0, 0]
    assert [run["questions"] for run in manifest(flagged)["explained"]] == [asked_before, 0, 0]
    assert len(server.bodies) == asked_before > 0


def test_two_explain_at_once_exclude_each_other(flagged: Path, model: Model) -> None:
    from ragassay.jobs.output.lock import lock_output
    from ragassay.jobs.second_pass.explain.run import LOCK
    from ragassay.jobs.storage.folder import open_folder

    server, config = model()
    with lock_output(open_folder(str(flagged)), "explain", name=LOCK):
        done = here("explain", flagged, "--config", config)
    fails(done, "output.locked", "`ragassay explain`")
    assert not server.bodies
