"""A scored output, and a scripted judge that knows the correct signature."""

import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.chat_server import Reply, Serve, Server, completion
from tests.jobs.conftest import manifest, read_rows, write_job
from tests.jobs.evaluation.conftest import job, labeled_days, write_output

ROWS = 60
"""Scored responses per day: twenty items with three responses each."""

MEMBERS = [{"name": "a"}, {"name": "b"}]

Judge = Callable[..., tuple[Server, Path]]


@pytest.fixture(scope="session")
def scored_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three days: 180 scored responses of two sentences, three without a score; 30% are flagged."""
    days = dict(list(labeled_days().items())[:3])
    return write_output(tmp_path_factory.mktemp("escalate") / "out", days, job())


@pytest.fixture
def scored(scored_once: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(scored_once, tmp_path / "out"))


def get_question(body: dict[str, Any]) -> str:
    """Return the question and the sentence of a request; together they are unique for each sentence."""
    text = body["messages"][-1]["content"]
    question, sentence = re.search(r"Question: (.*?)\n", text), re.search(r"Statement: (.*?)\n", text)
    assert question and sentence
    return f"{question[1]} {sentence[1]}"


def reply_honestly(body: dict[str, Any]) -> Reply:
    """Reply as an honest judge: only sentences with a signature that is not the correct one are unsupported."""
    is_wrong = "signed by" in get_question(body) and "correct" not in get_question(body)
    return completion({"No": 0.9, "Yes": 0.05} if is_wrong else {"Yes": 0.8, "No": 0.1})


def count_questions(server: Server) -> Counter[str]:
    """Count the requests about each sentence."""
    return Counter(get_question(body) for body in server.bodies if "Statement:" in body["messages"][-1]["content"])


@pytest.fixture
def judge(serve: Serve, tmp_path: Path) -> Judge:
    """Start a scripted judge, and write a job file that escalates to it."""

    def start(reply: Callable[[dict[str, Any]], Reply] = reply_honestly, engine: Any = (), **more: Any) -> tuple[Server, Path]:
        server = serve(reply)
        engine_settings = {"kind": "server", "base_url": server.url, "retries": 0, "concurrency": 2, **dict(engine)}
        escalation: dict[str, Any] = {"judge": {"name": "judge", "model": "m", "engine": engine_settings}, **more}
        if "share" not in escalation and "threshold" not in escalation:
            escalation["share"] = 0.4
        settings = {"members": {"slms": MEMBERS}, "verdict": {"threshold": {"quantile": 0.3}}}
        return server, write_job(tmp_path / "job.yaml", settings, escalation=escalation)

    return start


def read_escalated(output: Path) -> dict[int, dict[str, Any]]:
    """Read `escalated/`: `row_key` -> row. Fails if a row occurs twice."""
    rows: dict[int, dict[str, Any]] = {}
    for row in read_rows(output, "escalated") if (output / "escalated").exists() else []:
        assert row["row_key"] not in rows
        assert (row["judge"] is None) == (row["status"] != "ok")
        rows[row["row_key"]] = row
    return rows


def read_scored(output: Path) -> dict[int, dict[str, Any]]:
    return {row["row_key"]: row for row in read_rows(output)}


def select_doubtful(rows: Iterable[dict[str, Any]], share: float) -> set[int]:
    """Select the share of scored rows with scores nearest to the threshold; return their `row_key`s."""
    distances = [(abs(row["score"] - row["threshold"]), row["row_key"]) for row in rows if row["status"] == "ok"]
    return {key for _, key in sorted(distances)[: int(share * len(distances))]}


def check_verdicts(output: Path, before: dict[int, dict[str, Any]]) -> None:
    """Check that decided rows have the judge's verdict, others the ensemble's, and that nothing else changed."""
    after, answers = read_scored(output), read_escalated(output)
    assert after.keys() == before.keys()
    for key, row in after.items():
        old = before[key]
        unchanged = set(row) - {"verdict", "decided_by", "judge_score", "sentences", "flagged_sentences", "run_id"}
        assert {name: row[name] for name in unchanged} == {name: old[name] for name in unchanged}
        if row["status"] == "ok" and key in answers and answers[key]["status"] == "ok":
            values = np.array(answers[key]["judge"]["sentence_scores"], dtype=np.float32)
            assert (row["decided_by"], row["judge_score"]) == ("judge", values.min())
            assert [s["state"] == "flagged" for s in row["sentences"]] == (values < 0).tolist()
            assert row["verdict"] == ("hallucinated" if values.min() < 0 else "supported")
        else:
            verdict = None if row["score"] is None else "supported" if row["score"] > row["threshold"] else "hallucinated"
            assert row["verdict"] == verdict and row["judge_score"] is None
            assert row["decided_by"] == (None if verdict is None else "ensemble") and row["sentences"] == old["sentences"]
    for path, verdicts in manifest(output)["finalized"].items():
        rows = [row for row in after.values() if f"dt={row['dt']}" == path]
        assert verdicts["flagged"] == sum(row["verdict"] == "hallucinated" for row in rows)
