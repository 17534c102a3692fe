"""`escalate` with real Ray resumes after it was killed."""

import os
import signal
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml

from tests.chat_server import Reply
from tests.jobs.conftest import committed_rows, invoke, manifest, ragassay, start, wait_for, write_job
from tests.jobs.second_pass.escalate.conftest import (
    Judge,
    check_verdicts,
    get_question,
    read_escalated,
    read_scored,
    reply_honestly,
    select_doubtful,
)

pytestmark = pytest.mark.soak


def test_a_resumed_escalate_keeps_committed_answers(scored: Path, judge: Judge, tmp_path: Path) -> None:
    """The judge answers until rows are committed, then not until the driver is dead."""
    dead, silent = threading.Event(), threading.Event()
    answered: list[str] = []
    lost: list[str] = []

    def reply(body: dict[str, Any]) -> Reply:
        if silent.is_set() and not dead.is_set():
            lost.append(get_question(body))
            dead.wait(120)
            return 503, {"error": {"message": "gone"}}
        answered.append(get_question(body))
        return reply_honestly(body)

    _, config = judge(reply, engine={"concurrency": 1}, share=0.5)
    write_job(config, yaml.safe_load(config.read_text()), runtime={"block_mib": 0.002})
    before = read_scored(scored)
    wanted = select_doubtful(before.values(), 0.5)
    first = start("escalate", scored, "--config", config, log=tmp_path / "first.log")
    wait_for(lambda: committed_rows(scored, "_escalating") > 0, first)
    silent.set()
    wait_for(lambda: lost, first)
    os.killpg(first.pid, signal.SIGKILL)
    first.wait()
    keys = {
        key
        for file in (scored / "_escalating").glob("*.parquet")
        if ".pending." not in file.name
        for key in pq.read_table(file, partitioning=None)["row_key"].to_pylist()
    }
    assert 0 < len(keys) < len(wanted)
    asked_before = Counter(answered)
    dead.set()
    done = ragassay("escalate", scored, "--config", config)
    assert done.returncode == 0, done.stdout + done.stderr
    assert set(read_escalated(scored)) == wanted and {row["status"] for row in read_escalated(scored).values()} == {"ok"}
    check_verdicts(scored, before)
    # Committed answers are not requested again, unless another response to the same question has the same sentence.
    questions = {
        key: (before[key]["question"].splitlines()[0], [s["text"] for s in before[key]["sentences"]]) for key in wanted
    }
    open_texts = {f"{q} {text}" for key in wanted - keys for q, texts in [questions[key]] for text in texts}
    done_texts = {f"{q} {text}" for key in keys for q, texts in [questions[key]] for text in texts}
    again = Counter(answered) - asked_before
    assert set(again) <= open_texts and done_texts <= set(asked_before)
    (run,) = [run for run in manifest(scored)["runs"] if run["escalation"]]
    record = run["escalation"]
    assert (record["chosen"], record["decided"], record["sent"]) == (len(wanted),) * 3
    assert record["usage"]["prompts"] == sum(row["usage"]["prompts"] for row in read_escalated(scored).values())
    total = len(answered)
    assert invoke("escalate", scored, "--config", config).returncode == 0 and len(answered) == total
    assert not (scored / "_escalating").exists()
