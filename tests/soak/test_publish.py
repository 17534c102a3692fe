"""Verdicts of 1,200 rows in real tools: once, whatever breaks off, and nothing the second time."""

import hashlib
import json
import os
import random
import shutil
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from ragassay.jobs.integrations.publish import http
from ragassay.jobs.run import finalize_job
from tests.jobs.conftest import here, read_rows, start, write_job
from tests.jobs.evaluation.conftest import MIXED, job, raw_row, write_output
from tests.soak.results import Result, record
from tests.soak.tool_processes import get, mlflow, phoenix, post, send_traces
from tests.tool_servers import DROP, DROP_BEHIND, before, serving
from tests.without_ray import without_ray

pytestmark = pytest.mark.soak

DAYS, ROWS = 3, 400
UNSCORED = 20
"""Of the rows of each day, so many have no verdict."""

Found = dict[str, list[dict[str, Any]]]
"""Trace -> what stands there of ours, each as label, score, explanation."""


def hexadecimal(text: str, digits: int) -> str:
    return hashlib.blake2b(text.encode(), digest_size=digits // 2).hexdigest()


def logged_days() -> dict[str, list[dict[str, Any]]]:
    """Rows whose id is that of a trace of OpenTelemetry, with its root span beside it (in the column `item`)."""
    rng = np.random.default_rng(5)
    days: dict[str, list[dict[str, Any]]] = {}
    for day in range(DAYS):
        rows = days[f"dt=2026-11-{day + 2:02d}"] = []
        for i in range(ROWS):
            key = day * ROWS + i
            one = raw_row(key, key, list(MIXED)[key % 3], rng)
            one |= {"row_id": hexadecimal(f"trace {key}", 32), "item": hexadecimal(f"span {key}", 16)}
            if i < UNSCORED:
                one |= {"status": "no_context", "members": None, "sentences": None, "context": None}
            rows.append(one)
    return days


@dataclass
class Real:
    """A real tool with the traces of all rows, but for some of the last day.

    Attributes:
        name: As --tool names it.
        url: Where it is.
        settings: Settings of `integrations.publish`.
        read: From the name of a score to what stands there.
        output: The scored output whose rows it has traces of; a test takes a copy.
        unknown: Ids of rows whose traces it does not have.
    """

    name: str
    url: str
    settings: dict[str, Any]
    read: Callable[[str], Found]
    output: Path
    unknown: set[str]

    def publish(self, output: Path, name: str, *more: str, url: str = "") -> Any:
        return here(*self.command(output, name, url=url), *more)

    def command(self, output: Path, name: str, url: str = "", **settings: Any) -> list[str | Path]:
        publishing = {"name": name, **self.settings, **settings}
        config = write_job(output.parent / f"{name}.yaml", integrations={"publish": publishing})
        return ["publish", output, "--tool", self.name, "--url", url or self.url, "--config", config]


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_output(tmp_path_factory.mktemp("publish") / "audit", logged_days(), job())


@pytest.fixture(params=["phoenix", "mlflow"], scope="module")
def tool(request: pytest.FixtureRequest, output: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Real]:
    rows = read_rows(output)
    unknown = {row["row_id"] for row in rows if row["verdict"]} & {row["row_id"] for row in rows[-15:]}
    ids = [(row["row_id"], row["item"]) for row in rows if row["row_id"] not in unknown]
    assert len(unknown) == 15 and len(ids) == DAYS * ROWS - 15
    folder = tmp_path_factory.mktemp(request.param)
    starts = {"phoenix": in_phoenix, "mlflow": in_mlflow}
    with starts[request.param](folder, ids) as (url, read):
        settings = {"span_column": "item"} if request.param == "phoenix" else {}
        yield Real(request.param, url, settings, read, output, unknown)


Place = tuple[str, Callable[[str], Found]]


@contextmanager
def in_phoenix(folder: Path, ids: list[tuple[str, str]]) -> Iterator[Place]:
    with phoenix(folder) as url:
        send_traces(url, ids)
        by_span = {span: trace for trace, span in ids}

        def read(name: str) -> Found:
            found: Found = {}
            spans = list(by_span)
            for first in range(0, len(spans), 100):
                cursor = None
                while True:
                    params: dict[str, Any] = {"span_ids": spans[first : first + 100], "limit": 1000}
                    page = get(
                        f"{url}/v1/projects/default/span_annotations", **params, **({"cursor": cursor} if cursor else {})
                    )
                    for one in page["data"]:
                        if one["name"] == name:
                            result = {key: one["result"].get(key) for key in ("label", "score", "explanation")}
                            found.setdefault(by_span[one["span_id"]], []).append(result)
                    cursor = page.get("next_cursor")
                    if not cursor:
                        break
            return found

        wait_until(lambda: phoenix_spans(url) == len(ids), 120)
        yield url, read


def phoenix_spans(url: str) -> int:
    count, cursor = 0, None
    while True:
        page = get(f"{url}/v1/projects/default/spans", limit=1000, **({"cursor": cursor} if cursor else {}))
        count, cursor = count + len(page["data"]), page.get("next_cursor")
        if not cursor:
            return count


@contextmanager
def in_mlflow(folder: Path, ids: list[tuple[str, str]]) -> Iterator[Place]:
    with mlflow(folder) as url:
        send_traces(url, ids, **{"x-mlflow-experiment-id": "0"})

        def read(name: str) -> Found:
            found: Found = {}
            for trace in mlflow_traces(url):
                for one in trace.get("assessments", []):
                    if one["assessment_name"] == name:
                        score = json.loads(one["metadata"]["ragassay.score"])
                        said = {"label": one["feedback"]["value"], "score": score, "explanation": one["rationale"]}
                        found.setdefault(trace["trace_id"].removeprefix("tr-"), []).append(said)
            return found

        wait_until(lambda: len(mlflow_traces(url)) == len(ids), 120)
        yield url, read


def mlflow_traces(url: str) -> list[dict[str, Any]]:
    found, token = [], None
    place = {"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": {"experiment_id": "0"}}
    while True:
        body = {"locations": [place], "max_results": 500, **({"page_token": token} if token else {})}
        page = post(f"{url}/api/3.0/mlflow/traces/search", body)
        found += page.get("traces", [])
        token = page.get("next_page_token")
        if not token:
            return found


def wait_until(condition: Callable[[], Any], seconds: float) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.5)


def expected(tool: Real, output: Path) -> dict[str, tuple[str, float]]:
    """Trace -> label and score that must stand in the tool."""
    return {
        row["row_id"]: (row["verdict"], row["score"])
        for row in read_rows(output)
        if row["verdict"] is not None and row["row_id"] not in tool.unknown
    }


def lost_and_twice(found: Found, wanted: dict[str, tuple[str, float]]) -> tuple[int, int]:
    """Rows that don't stand there as they should, and rows that stand there more than once."""
    right = {trace for trace, said in found.items() if (said[-1]["label"], said[-1]["score"]) == wanted.get(trace)}
    assert found.keys() <= wanted.keys(), "something stands where nothing was sent"
    return len(wanted.keys() - right), sum(len(said) - 1 for said in found.values())


def copy(output: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(output, tmp_path / "audit"))


def test_twice_changes_nothing_and_a_new_finalize_what_it_says(tool: Real, tmp_path: Path) -> None:
    output = copy(tool.output, tmp_path)
    with serving(before(tool.url)) as between:
        done = tool.publish(output, "twice", url=between.url)
        assert done.returncode == 0 and "15 rows whose trace or span is not there" in done.stdout, done.stdout + done.stderr
        wanted, first = expected(tool, output), tool.read("twice")
        lost, twice = lost_and_twice(first, wanted)
        requests = between.count
        assert f"{len(wanted):,} verdicts" in done.stdout and len(wanted) > 1000
        again = tool.publish(output, "twice", url=between.url)
        assert again.returncode == 0 and between.count == requests and "0 requests" in again.stdout
        assert tool.read("twice") == first
        with without_ray():
            finalize_job(job(verdict={"threshold": {"quantile": 0.5}}), str(output), Console(quiet=True))
        newer = expected(tool, output)
        changed = sum(newer[trace][0] != wanted[trace][0] for trace in newer)
        assert changed > 100
        assert tool.publish(output, "twice", url=between.url).returncode == 0
        found = tool.read("twice")
        more_lost, more_twice = lost_and_twice(found, newer)
    assert (lost, twice, more_lost, more_twice) == (0, 0, 0, 0)
    assert all("not supported" in found[t][0]["explanation"] for t, (label, _) in newer.items() if label == "hallucinated")
    note = f"{requests:,} requests, then 0 and the same state; after a new finalize {changed:,} verdicts turned, each in place"
    record(
        Result("publish", f"{tool.name}: published twice", len(wanted), len(found), lost + more_lost, twice + more_twice, note)
    )


def test_killed_in_the_middle_it_goes_on_and_nothing_is_twice(tool: Real, tmp_path: Path) -> None:
    output, rng = copy(tool.output, tmp_path), random.Random(3)
    kills, reached = 0, []
    with serving(before(tool.url)) as between:
        share = 1 if tool.name == "phoenix" else 200  # requests: Phoenix takes a hundred verdicts in one
        for _ in range(6):
            was = between.count
            process = start(*tool.command(output, "killed", between.url, per_second=share), log=tmp_path / "log")
            wait_until(lambda was=was, p=process: between.count > was or p.poll() is not None, 120)  # type: ignore[misc]
            time.sleep(rng.uniform(0.5, 7.0))
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                kills += 1
            process.wait()
            reached.append(sum(map(len, tool.read("killed").values())))
        done = tool.publish(output, "killed", url=between.url)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "0 requests" in tool.publish(output, "killed", url=between.url).stdout
    wanted = expected(tool, output)
    lost, twice = lost_and_twice(tool.read("killed"), wanted)
    assert kills and (lost, twice) == (0, 0) and any(0 < rows < len(wanted) for rows in reached), reached
    note = f"kill -9; {reached[0]:,} to {reached[-1]:,} of {len(wanted):,} rows were there"
    record(Result("publish", f"{tool.name}: killed in the middle", kills, kills, lost, twice, note))


def test_429_faults_and_dropped_connections(tool: Real, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "FIRST_WAIT", 0.01)
    output = copy(tool.output, tmp_path)
    said: Counter[str] = Counter()
    kinds: list[Any] = [(429, {"message": "slow down"}), DROP, DROP_BEHIND, (503, {}), (500, {})]
    rng, share = random.Random(11), 0.5 if tool.name == "phoenix" else 0.2  # it takes a hundred verdicts in a request

    def fault(_: int) -> Any:
        wrong = rng.choice(kinds) if rng.random() < share else None
        said.update([str(wrong)] if wrong else [])
        return wrong

    with serving(before(tool.url)) as between:
        between.fault, between.headers = fault, {"Retry-After": "0"}
        for _ in range(3):  # what met a 500 four times counts as refused, and is tried again by the same command
            done = tool.publish(output, "faults", url=between.url)
            if done.returncode == 0:
                break
    assert done.returncode == 0, done.stdout + done.stderr
    wanted = expected(tool, output)
    lost, twice = lost_and_twice(tool.read("faults"), wanted)
    assert (lost, twice) == (0, 0) and said.total() >= 3
    note = f"{said.total():,} of {between.count:,} requests: 429, 500, 503, dropped before and behind the work"
    record(Result("publish", f"{tool.name}: 429, 5xx, dropped connections", said.total(), said.total(), lost, twice, note))
