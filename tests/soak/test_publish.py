"""Verdicts of 1,200 rows are published to real tools exactly once, also after faults."""

import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from ragassay.jobs.integrations.publish import http
from ragassay.jobs.run import finalize_job
from tests.jobs.conftest import invoke, read_rows, start, write_job
from tests.jobs.evaluation.conftest import MIXED, job, raw_row, write_output
from tests.soak.results import Result, record
from tests.soak.tool_processes import get, post, run_mlflow, run_phoenix, send_traces
from tests.tool_servers import DROP, DROP_AFTER, Tool, proxy_tool, serve_tool
from tests.without_ray import without_ray

pytestmark = pytest.mark.soak

DAYS, ROWS = 3, 400
UNSCORED = 20
"""Rows of each day without a verdict."""

PublishedScores = dict[str, list[dict[str, Any]]]
"""Trace -> published scores with label, score and explanation."""


def hash_hex(text: str, digits: int) -> str:
    return hashlib.blake2b(text.encode(), digest_size=digits // 2).hexdigest()


def make_days() -> dict[str, list[dict[str, Any]]]:
    """Make rows whose id is a trace id of OpenTelemetry, with the id of the root span in the column `item`."""
    rng = np.random.default_rng(5)
    days: dict[str, list[dict[str, Any]]] = {}
    for day in range(DAYS):
        rows = days[f"dt=2026-11-{day + 2:02d}"] = []
        for i in range(ROWS):
            key = day * ROWS + i
            row = raw_row(key, key, list(MIXED)[key % 3], rng)
            row |= {"row_id": hash_hex(f"trace {key}", 32), "item": hash_hex(f"span {key}", 16)}
            if i < UNSCORED:
                row |= {"status": "no_context", "members": None, "sentences": None, "context": None}
            rows.append(row)
    return days


@dataclass
class RealTool:
    """Real tool with the traces of all rows, except some of the last day.

    Attributes:
        name: Value of --tool.
        url: Address.
        settings: Settings of `integrations.publish`.
        read: Reads the published scores with a name.
        output: Scored output; each test takes a copy.
        unknown: Ids of rows without a trace in the tool.
    """

    name: str
    url: str
    settings: dict[str, Any]
    read: Callable[[str], PublishedScores]
    output: Path
    unknown: set[str]

    def publish(self, output: Path, name: str, *more: str, url: str = "") -> Any:
        return invoke(*self.command(output, name, url=url), *more)

    def command(self, output: Path, name: str, url: str = "", **settings: Any) -> list[str | Path]:
        publishing = {"name": name, **self.settings, **settings}
        config = write_job(output.parent / f"{name}.yaml", integrations={"publish": publishing})
        return ["publish", output, "--tool", self.name, "--url", url or self.url, "--config", config]


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_output(tmp_path_factory.mktemp("publish") / "audit", make_days(), job())


@pytest.fixture(params=["phoenix", "mlflow"], scope="module")
def tool(request: pytest.FixtureRequest, output: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealTool]:
    rows = read_rows(output)
    unknown = {row["row_id"] for row in rows if row["verdict"]} & {row["row_id"] for row in rows[-15:]}
    ids = [(row["row_id"], row["item"]) for row in rows if row["row_id"] not in unknown]
    assert len(unknown) == 15 and len(ids) == DAYS * ROWS - 15
    folder = tmp_path_factory.mktemp(request.param)
    starts = {"phoenix": fill_phoenix, "mlflow": fill_mlflow}
    with starts[request.param](folder, ids) as (url, read):
        settings = {"span_column": "item"} if request.param == "phoenix" else {}
        yield RealTool(request.param, url, settings, read, output, unknown)


FilledTool = tuple[str, Callable[[str], PublishedScores]]


@contextmanager
def fill_phoenix(folder: Path, ids: list[tuple[str, str]]) -> Iterator[FilledTool]:
    with run_phoenix(folder) as url:
        send_traces(url, ids)
        by_span = {span: trace for trace, span in ids}

        def read(name: str) -> PublishedScores:
            scores: PublishedScores = {}
            spans = list(by_span)
            for first in range(0, len(spans), 100):
                cursor = None
                while True:
                    params: dict[str, Any] = {"span_ids": spans[first : first + 100], "limit": 1000}
                    page = get(
                        f"{url}/v1/projects/default/span_annotations", **params, **({"cursor": cursor} if cursor else {})
                    )
                    for annotation in page["data"]:
                        if annotation["name"] == name:
                            result = {key: annotation["result"].get(key) for key in ("label", "score", "explanation")}
                            scores.setdefault(by_span[annotation["span_id"]], []).append(result)
                    cursor = page.get("next_cursor")
                    if not cursor:
                        break
            return scores

        wait_until(lambda: count_phoenix_spans(url) == len(ids), 120)
        yield url, read


def count_phoenix_spans(url: str) -> int:
    count, cursor = 0, None
    while True:
        page = get(f"{url}/v1/projects/default/spans", limit=1000, **({"cursor": cursor} if cursor else {}))
        count, cursor = count + len(page["data"]), page.get("next_cursor")
        if not cursor:
            return count


@contextmanager
def fill_mlflow(folder: Path, ids: list[tuple[str, str]]) -> Iterator[FilledTool]:
    with run_mlflow(folder) as url:
        send_traces(url, ids, **{"x-mlflow-experiment-id": "0"})

        def read(name: str) -> PublishedScores:
            scores: PublishedScores = {}
            for trace in list_mlflow_traces(url):
                for assessment in trace.get("assessments", []):
                    if assessment["assessment_name"] == name:
                        score = json.loads(assessment["metadata"]["ragassay.score"])
                        result = {
                            "label": assessment["feedback"]["value"],
                            "score": score,
                            "explanation": assessment["rationale"],
                        }
                        scores.setdefault(trace["trace_id"].removeprefix("tr-"), []).append(result)
            return scores

        wait_until(lambda: len(list_mlflow_traces(url)) == len(ids), 120)
        yield url, read


def list_mlflow_traces(url: str) -> list[dict[str, Any]]:
    traces, token = [], None
    location = {"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": {"experiment_id": "0"}}
    while True:
        body = {"locations": [location], "max_results": 500, **({"page_token": token} if token else {})}
        page = post(f"{url}/api/3.0/mlflow/traces/search", body)
        traces += page.get("traces", [])
        token = page.get("next_page_token")
        if not token:
            return traces


def wait_until(condition: Callable[[], Any], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"the condition was still false after {seconds} s"
        time.sleep(0.5)


def list_expected(tool: RealTool, output: Path) -> dict[str, tuple[str, float]]:
    """Map each trace to the label and score that the tool must have."""
    return {
        row["row_id"]: (row["verdict"], row["score"])
        for row in read_rows(output)
        if row["verdict"] is not None and row["row_id"] not in tool.unknown
    }


def count_lost_and_twice(published: PublishedScores, expected: dict[str, tuple[str, float]]) -> tuple[int, int]:
    """Count rows without the expected score, and duplicate scores."""
    right = {
        trace for trace, results in published.items() if (results[-1]["label"], results[-1]["score"]) == expected.get(trace)
    }
    assert published.keys() <= expected.keys(), "the tool has scores that were not sent"
    return len(expected.keys() - right), sum(len(results) - 1 for results in published.values())


def has_sent_more(proxy: Tool, requests: int, process: subprocess.Popen[bytes]) -> bool:
    """Return whether the proxy got more requests, or the process ended."""
    return proxy.count > requests or process.poll() is not None


def copy_output(output: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(output, tmp_path / "audit"))


def test_publishing_again_sends_only_changed_verdicts(tool: RealTool, tmp_path: Path) -> None:
    output = copy_output(tool.output, tmp_path)
    with serve_tool(proxy_tool(tool.url)) as proxy:
        result = tool.publish(output, "twice", url=proxy.url)
        assert result.returncode == 0 and "15 rows whose trace or span does not exist" in result.stdout, (
            result.stdout + result.stderr
        )
        expected, first = list_expected(tool, output), tool.read("twice")
        lost, twice = count_lost_and_twice(first, expected)
        requests = proxy.count
        assert f"{len(expected):,} verdicts" in result.stdout and len(expected) > 1000
        again = tool.publish(output, "twice", url=proxy.url)
        assert again.returncode == 0 and proxy.count == requests and "0 requests" in again.stdout
        assert tool.read("twice") == first
        with without_ray():
            finalize_job(job(verdict={"threshold": {"quantile": 0.5}}), str(output), Console(quiet=True))
        newer = list_expected(tool, output)
        changed = sum(newer[trace][0] != expected[trace][0] for trace in newer)
        assert changed > 100
        assert tool.publish(output, "twice", url=proxy.url).returncode == 0
        published = tool.read("twice")
        more_lost, more_twice = count_lost_and_twice(published, newer)
    assert (lost, twice, more_lost, more_twice) == (0, 0, 0, 0)
    assert all("not supported" in published[t][0]["explanation"] for t, (label, _) in newer.items() if label == "hallucinated")
    note = f"{requests:,} requests, then 0 and the same state; after a new finalize {changed:,} verdicts turned, each in place"
    record(
        Result(
            "publish",
            f"{tool.name}: published twice",
            len(expected),
            len(published),
            lost + more_lost,
            twice + more_twice,
            note,
        )
    )


def test_a_killed_publish_resumes_without_duplicates(tool: RealTool, tmp_path: Path) -> None:
    output, rng = copy_output(tool.output, tmp_path), random.Random(3)
    kills, published_counts = 0, []
    with serve_tool(proxy_tool(tool.url)) as proxy:
        share = 1 if tool.name == "phoenix" else 200  # requests per second; a request to Phoenix has a hundred verdicts
        for _ in range(6):
            requests_before = proxy.count
            process = start(*tool.command(output, "killed", proxy.url, per_second=share), log=tmp_path / "log")
            wait_until(partial(has_sent_more, proxy, requests_before, process), 120)
            time.sleep(rng.uniform(0.5, 7.0))
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                kills += 1
            process.wait()
            published_counts.append(sum(map(len, tool.read("killed").values())))
        result = tool.publish(output, "killed", url=proxy.url)
        assert result.returncode == 0, result.stdout + result.stderr
        assert "0 requests" in tool.publish(output, "killed", url=proxy.url).stdout
    expected = list_expected(tool, output)
    lost, twice = count_lost_and_twice(tool.read("killed"), expected)
    assert kills and (lost, twice) == (0, 0) and any(0 < rows < len(expected) for rows in published_counts), published_counts
    note = f"kill -9; {published_counts[0]:,} to {published_counts[-1]:,} of {len(expected):,} rows were there"
    record(Result("publish", f"{tool.name}: killed in the middle", kills, kills, lost, twice, note))


def test_faults_and_dropped_connections_cause_no_lost_or_duplicate_scores(
    tool: RealTool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "FIRST_WAIT", 0.01)
    output = copy_output(tool.output, tmp_path)
    faults: Counter[str] = Counter()
    kinds: list[Any] = [(429, {"message": "slow down"}), DROP, DROP_AFTER, (503, {}), (500, {})]
    rng, share = random.Random(11), 0.5 if tool.name == "phoenix" else 0.2  # a request to Phoenix has a hundred verdicts

    def fault(_: int) -> Any:
        fault_reply = rng.choice(kinds) if rng.random() < share else None
        faults.update([str(fault_reply)] if fault_reply else [])
        return fault_reply

    with serve_tool(proxy_tool(tool.url)) as proxy:
        proxy.fault, proxy.headers = fault, {"Retry-After": "0"}
        for _ in range(3):  # a verdict that got a 500 four times counts as refused; the same command sends it again
            result = tool.publish(output, "faults", url=proxy.url)
            if result.returncode == 0:
                break
    assert result.returncode == 0, result.stdout + result.stderr
    expected = list_expected(tool, output)
    lost, twice = count_lost_and_twice(tool.read("faults"), expected)
    assert (lost, twice) == (0, 0) and faults.total() >= 3
    note = f"{faults.total():,} of {proxy.count:,} requests: 429, 500, 503, dropped before and behind the work"
    record(Result("publish", f"{tool.name}: 429, 5xx, dropped connections", faults.total(), faults.total(), lost, twice, note))
