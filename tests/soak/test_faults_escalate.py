"""`escalate` through real Ray: killed in the middle, and run again."""

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
from tests.jobs.conftest import committed_rows, here, manifest, ragassay, start, wait_for, write_job
from tests.jobs.second_pass.escalate.conftest import Judge, asked, by_key, check, doubtful, judges, outcomes

pytestmark = pytest.mark.soak


def test_killed_and_run_again_it_loses_nothing_and_asks_nothing_twice(scored: Path, judge: Judge, tmp_path: Path) -> None:
    """The judge answers until something is committed, and then holds its tongue until the driver is dead."""
    dead, silent = threading.Event(), threading.Event()
    answered: list[str] = []
    lost: list[str] = []

    def reply(body: dict[str, Any]) -> Reply:
        if silent.is_set() and not dead.is_set():
            lost.append(asked(body))
            dead.wait(120)
            return 503, {"error": {"message": "gone"}}
        answered.append(asked(body))
        return judges(body)

    _, config = judge(reply, engine={"concurrency": 1}, share=0.5)
    write_job(config, yaml.safe_load(config.read_text()), runtime={"block_mib": 0.002})
    before = by_key(scored)
    wanted = doubtful(before.values(), 0.5)
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
    assert set(outcomes(scored)) == wanted and {row["status"] for row in outcomes(scored).values()} == {"ok"}
    check(scored, before)
    # What was committed is not asked again. A sentence that another response to the same question has may be.
    questions = {
        key: (before[key]["question"].splitlines()[0], [s["text"] for s in before[key]["sentences"]]) for key in wanted
    }
    open_texts = {f"{q} {text}" for key in wanted - keys for q, texts in [questions[key]] for text in texts}
    done_texts = {f"{q} {text}" for key in keys for q, texts in [questions[key]] for text in texts}
    again = Counter(answered) - asked_before
    assert set(again) <= open_texts and done_texts <= set(asked_before)
    (run,) = [run for run in manifest(scored)["runs"] if run["escalation"]]
    found = run["escalation"]
    assert (found["chosen"], found["decided"], found["asked"]) == (len(wanted),) * 3
    assert found["usage"]["prompts"] == sum(row["usage"]["prompts"] for row in outcomes(scored).values())
    total = len(answered)
    assert here("escalate", scored, "--config", config).returncode == 0 and len(answered) == total
    assert not (scored / "_escalating").exists()
