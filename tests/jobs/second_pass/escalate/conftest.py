"""A scored output, a scripted judge that knows who signed, and the plan in this process."""

import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.chat_server import Reply, Serve, Server, completion
from tests.jobs.conftest import manifest, read_rows, write_job
from tests.jobs.evaluation.conftest import job, labeled_days, write_output

ROWS = 60
"""Scored responses a day: the conftest of `decide` makes twenty items of three."""

MEMBERS = [{"name": "a"}, {"name": "b"}]

Judge = Callable[..., tuple[Server, Path]]


@pytest.fixture(scope="session")
def scored_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three days, 180 responses of two sentences with a score, three without; 30 % flagged."""
    days = dict(list(labeled_days().items())[:3])
    return write_output(tmp_path_factory.mktemp("escalate") / "out", days, job())


@pytest.fixture
def scored(scored_once: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(scored_once, tmp_path / "out"))


def asked(body: dict[str, Any]) -> str:
    """The sentence that a request is about, made different from those of other responses by the question."""
    text = body["messages"][-1]["content"]
    question, sentence = re.search(r"Question: (.*?)\n", text), re.search(r"Statement: (.*?)\n", text)
    assert question and sentence
    return f"{question[1]} {sentence[1]}"


def judges(body: dict[str, Any]) -> Reply:
    """An honest judge: what was signed by correct hands stands, and so does every rule."""
    wrong = "signed by" in asked(body) and "correct" not in asked(body)
    return completion({"No": 0.9, "Yes": 0.05} if wrong else {"Yes": 0.8, "No": 0.1})


def questions(server: Server) -> Counter[str]:
    """How often it was asked about what."""
    return Counter(asked(body) for body in server.bodies if "Statement:" in body["messages"][-1]["content"])


@pytest.fixture
def judge(serve: Serve, tmp_path: Path) -> Judge:
    """Start a scripted judge, and write a job file whose cascade names it."""

    def start(reply: Callable[[dict[str, Any]], Reply] = judges, engine: Any = (), **more: Any) -> tuple[Server, Path]:
        server = serve(reply)
        engine_settings = {"kind": "server", "base_url": server.url, "retries": 0, "concurrency": 2, **dict(engine)}
        escalation: dict[str, Any] = {"judge": {"name": "judge", "model": "m", "engine": engine_settings}, **more}
        if "share" not in escalation and "threshold" not in escalation:
            escalation["share"] = 0.4
        settings = {"members": {"slms": MEMBERS}, "verdict": {"threshold": {"quantile": 0.3}}}
        return server, write_job(tmp_path / "job.yaml", settings, escalation=escalation)

    return start


def outcomes(output: Path) -> dict[int, dict[str, Any]]:
    """`row_key` -> its row in `escalated/`; a row that stands twice is a fault."""
    found: dict[int, dict[str, Any]] = {}
    for row in read_rows(output, "escalated") if (output / "escalated").exists() else []:
        assert row["row_key"] not in found
        assert (row["judge"] is None) == (row["status"] != "ok")
        found[row["row_key"]] = row
    return found


def by_key(output: Path) -> dict[int, dict[str, Any]]:
    return {row["row_key"]: row for row in read_rows(output)}


def doubtful(rows: Iterable[dict[str, Any]], share: float) -> set[int]:
    """`row_key`s of the share of scored rows that lie nearest to the threshold."""
    found = [(abs(row["score"] - row["threshold"]), row["row_key"]) for row in rows if row["status"] == "ok"]
    return {key for _, key in sorted(found)[: int(share * len(found))]}


def check(output: Path, before: dict[int, dict[str, Any]]) -> None:
    """Where the judge decided its verdict stands, elsewhere the ensemble's; and nothing else has changed."""
    after, said = by_key(output), outcomes(output)
    assert after.keys() == before.keys()
    for key, row in after.items():
        old = before[key]
        kept = set(row) - {"verdict", "decided_by", "judge_score", "sentences", "flagged_sentences", "run_id"}
        assert {name: row[name] for name in kept} == {name: old[name] for name in kept}
        if row["status"] == "ok" and key in said and said[key]["status"] == "ok":
            values = np.array(said[key]["judge"]["sentence_scores"], dtype=np.float32)
            assert (row["decided_by"], row["judge_score"]) == ("judge", values.min())
            assert [s["flagged"] for s in row["sentences"]] == (values < 0).tolist()
            assert row["verdict"] == ("hallucinated" if values.min() < 0 else "supported")
        else:
            alone = None if row["score"] is None else "supported" if row["score"] > row["threshold"] else "hallucinated"
            assert row["verdict"] == alone and row["judge_score"] is None
            assert row["decided_by"] == (None if alone is None else "ensemble") and row["sentences"] == old["sentences"]
    for place, verdicts in manifest(output)["finalized"].items():
        rows = [row for row in after.values() if f"dt={row['dt']}" == place]
        assert verdicts["flagged"] == sum(row["verdict"] == "hallucinated" for row in rows)


def rewrite(output: Path, change: Callable[[pa.Table], pa.Table]) -> None:
    """Change every file of `scored/`."""
    for path in (output / "scored").rglob("*.parquet"):
        pq.write_table(change(pq.read_table(path, partitioning=None)), path)
