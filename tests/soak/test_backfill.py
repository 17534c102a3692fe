"""A backfill on the real engine: whatever the budgets, partitions, orders and samples, the rows end as those of one run."""

import re
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from ragassay.jobs.scoring import plan
from ragassay.jobs.scoring.stages import make_stages
from ragassay.pipeline.slm.config import Replicas
from ragassay.pipeline.stages.stage import Stage
from tests.conftest import example_rows, write_logs
from tests.jobs.conftest import here, manifest, read_rows, write_job
from tests.jobs.scoring.test_private import read_all_text
from tests.soak.results import Result, record

pytestmark = [pytest.mark.soak, pytest.mark.usefixtures("one_ray")]

DAYS, FILES, ROWS = 6, 2, 100
TOTAL = DAYS * FILES * ROWS
SCORED = ("score", "verdict", "threshold", "run_id", "probability")
"""What is of a night: tau is a quantile of the night's responses."""


def logs_of(folder: Path) -> Path:
    for day in range(DAYS):
        for number in range(FILES):
            start = (day * FILES + number) * ROWS
            rows = [{**row, "row_id": f"r{start + i}"} for i, row in enumerate(example_rows(ROWS, start=start))]
            write_logs(folder / f"dt=2026-11-{day + 1:02d}" / f"part-{number}.parquet", rows, row_group_size=30)
    return folder


def job_of(folder: Path) -> Path:
    detectors = [{"name": kind, "kind": kind} for kind in ("entities", "attribution", "novelty")]
    return write_job(folder / "job.yaml", members={"slms": [], "detectors": detectors}, runtime={"block_mib": 0.02})


def raw_of(output: Path) -> dict[str, Any]:
    return {row["row_id"]: {**row, "usage": None, "row_key": None} for row in read_rows(output, "raw")}


def nights(logs: Path, output: Path, job: Path, options: list[str], most: int = 60) -> int:
    """The same command until nothing is left; how often."""
    for night in range(1, most):
        done = here("run", logs, output, "--config", job, *options)
        assert done.returncode == 0, done.stdout + done.stderr
        told = re.search(r"([\d,]+) in = ([\d,]+) scored \+ ([\d,]+) failed \+ ([\d,]+) skipped", done.stdout)
        assert told is not None
        rows_in, *parts = (int(part.replace(",", "")) for part in told.groups())
        assert rows_in == TOTAL == sum(parts)
        if manifest(output)["runs"][-1]["deferred"] is None:
            return night
    raise AssertionError("it does not end")


def compared(name: str, output: Path, whole: Mapping[str, Any], note: str) -> None:
    rows = read_rows(output, "raw")
    times = Counter(row["row_id"] for row in rows)
    mine = raw_of(output)
    assert mine == whole
    scored = Counter(row["row_id"] for row in read_rows(output))
    lost, twice = len(whole.keys() - times.keys()), sum(count > 1 for count in times.values())
    assert scored == times
    assert not (output / "_checkpoint").exists()
    record(Result("inputs", name, TOTAL, len(mine), lost, twice, note))


def test_any_budgets_end_in_the_rows_of_one_run(tmp_path: Path) -> None:
    logs, job = logs_of(tmp_path / "logs"), job_of(tmp_path)
    done = here("run", logs, tmp_path / "whole", "--config", job)
    assert done.returncode == 0, done.stdout + done.stderr
    whole = raw_of(tmp_path / "whole")
    assert len(whole) == TOTAL

    many = nights(logs, tmp_path / "rows", job, ["--budget-rows", "230", "--order", "newest"])
    assert many == DAYS * FILES // 2
    compared("a backfill by --budget-rows, newest first", tmp_path / "rows", whole, f"{many} nights")

    many = nights(logs, tmp_path / "small", job, ["--budget-rows", "45"])
    assert many == DAYS * FILES * 3
    compared("a backfill whose budget is smaller than a file", tmp_path / "small", whole, f"{many} nights")

    output = tmp_path / "mixed"
    nights(logs, output, job, ["--partitions", "dt>=2026-11-04", "--order", "oldest"])
    assert {str(row["dt"]) for row in read_rows(output)} == {f"2026-11-0{day}" for day in (4, 5, 6)}
    here("run", logs, output, "--config", job, "--budget-rows", "45", "--partitions", "dt<2026-11-03 and dt!=2026-11-01")
    nights(logs, output, job, ["--fraction", "0.2", "--budget-rows", "100"])
    nights(logs, output, job, ["--fraction", "0.5"])
    some = raw_of(output)
    assert 600 + 0.35 * 600 < len(some) < 600 + 0.65 * 600
    assert {name: whole[name] for name in some} == some
    assert here("finalize", output, "--config", job).returncode == 0
    nights(logs, output, job, [])
    compared("a backfill by partitions, then samples of 0.2 and 0.5, then all", output, whole, "4 commands")


@dataclass
class SlowModel(Stage):
    """What a model is to a plan: a pool that takes its time, behind a queue of blocks."""

    seconds_a_row: float

    name = "slow"
    columns_in = ()
    columns_out = pa.schema([])
    replicas = Replicas()

    def __call__(self, table: pa.Table) -> pa.Table:
        time.sleep(self.seconds_a_row * table.num_rows)
        return table


def test_hours_end_in_the_rows_of_one_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks that wait for a model when the time is over are dropped, and read again."""
    logs, job, output = logs_of(tmp_path / "logs"), job_of(tmp_path), tmp_path / "out"
    assert here("run", logs, tmp_path / "whole", "--config", job).returncode == 0

    def with_a_model(*arguments: Any) -> list[Stage]:
        split, *others = make_stages(*arguments)
        return [split, SlowModel(0.04), *others]

    monkeypatch.setattr(plan, "make_stages", with_a_model)
    seconds, cut, over = 15.0, 0, 0.0
    for _ in range(40):
        start = time.monotonic()
        done = here("run", logs, output, "--config", job, "--budget-hours", str(seconds / 3600), "--order", "newest")
        took = time.monotonic() - start
        assert done.returncode == 0, done.stdout + done.stderr
        left = manifest(output)["runs"][-1]["deferred"]
        if left is None:
            break
        cut, over = cut + 1, max(over, took - seconds)
        seconds = seconds if left["runs"] else 2 * seconds
    assert cut, "no night was cut"
    compared("a backfill by --budget-hours", output, raw_of(tmp_path / "whole"), f"{cut + 1} nights")
    print(f"{over:.1f} s over the budget at most, verdicts included")


HIDE = "import re\nMAIL = re.compile(r'[\\w.]+@[\\w.]+\\w')\n\ndef hide(text):\n    return MAIL.sub('[mail]', text)\n"


def test_no_text_and_no_address_comes_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [
        {**row, "row_id": f"r{i}", "response": f"{row['response']} Mail Zyxwvut{i}@shop.example.", "comment": "Zyxwvut"}
        for i, row in enumerate(example_rows(1000))
    ]
    write_logs(tmp_path / "logs" / "dt=1" / "a.parquet", rows, row_group_size=100)
    (tmp_path / "hide_soak.py").write_text(HIDE)
    monkeypatch.chdir(tmp_path)
    detectors = [{"name": kind, "kind": kind} for kind in ("entities", "attribution", "novelty")]
    for name, more, banned in (
        ("drop_text", {"output": {"drop_text": True}}, ("Zyxwvut", "shop.example", "Staff")),
        (
            "redact",
            {"input": {"redact": "hide_soak:hide"}, "output": {"drop_text": {"keep": []}}},
            ("Zyxwvut", "shop.example", "Staff"),
        ),
        ("redact, with text", {"input": {"redact": "hide_soak:hide"}}, ("shop.example",)),
    ):
        output = tmp_path / name.replace(",", "").replace(" ", "_")
        job = write_job(tmp_path / "job.yaml", more, members={"slms": [], "detectors": detectors}, runtime={"block_mib": 0.05})
        done = here("run", tmp_path / "logs", output, "--config", job)
        assert done.returncode == 0, done.stdout + done.stderr
        held = read_all_text(output)
        assert not [word for word in banned if word in held]
        times = Counter(row["row_id"] for row in read_rows(output))
        twice = sum(count > 1 for count in times.values())
        assert {row["status"] for row in read_rows(output)} == {"ok"}
        record(Result("inputs", f"{name}: every byte searched", 1000, len(times), 1000 - len(times), twice))
