"""Odd rows, files and folders through whole jobs: no traceback, no row lost, every row scored or with a reason."""

import os
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from ragassay.jobs.cli.main import app
from tests.corpus import rows as odd
from tests.corpus.inputs import ALONE, REFUSED
from tests.corpus.job import AGGREGATE, DETECTORS
from tests.corpus.layouts import BESIDE, CARRIED, DIFFER
from tests.corpus.tally import check_row, column_of, raw_controls, raw_keys, scored_rows, table
from tests.jobs.conftest import here, manifest, write_job

ODD = "odd rows"
LABELS = {0: "correct", 2: "wrong", 5: "partial"}
ESCAPED = ["red", "\x1b[31mred", "\x9b2J", "[bold]x[/]", "\ufeff", None]


def write_rows(folder: Path, classes: Mapping[str, list[odd.Odd]] = odd.ROWS) -> None:
    """A file a class of odd rows."""
    folder.mkdir(parents=True)
    for kind, rows in classes.items():
        count = len(rows)
        data = odd.table(rows)
        for name, values in {
            "row_id": [f"{kind} #{i}" for i in range(count)],
            "label": [LABELS.get(i % 8) for i in range(count)],
            "tenant": [ESCAPED[i % len(ESCAPED)] for i in range(count)],
        }.items():
            data = data.append_column(name, pa.array(values, pa.string()))
        pq.write_table(data, folder / f"{kind}.parquet", row_group_size=64)


@dataclass
class Night:
    """A run over the whole corpus."""

    logs: Path
    output: Path
    job: Path
    printed: str
    rows: list[dict[str, Any]]
    tried: int


@pytest.fixture(scope="module")
def night(one_ray: None, tmp_path_factory: pytest.TempPathFactory) -> Night:
    folder = tmp_path_factory.mktemp("corpus")
    logs, output = folder / "logs", folder / "out"
    write_rows(logs / f"layout={ODD}")
    for layout in BESIDE:
        layout.write(logs / f"layout={layout.place}")
    settings = {"verdict": {"aggregate": AGGREGATE}, "input": {"on_bad_file": "skip"}, "splitting": {"languages": "any"}}
    job = write_job(folder / "job.yaml", settings, members={"slms": [], "detectors": DETECTORS})
    done = here("run", logs, output, "--config", job)
    assert done.returncode == 0, done.stderr
    tried = sum(map(len, odd.ROWS.values())) + sum(layout.rows for layout in BESIDE)
    return Night(logs, output, job, done.stdout + done.stderr, scored_rows(output), tried)


def check_classes(
    rows: list[dict[str, Any]], tried: Mapping[str, int], capsys: pytest.CaptureFixture[str]
) -> dict[str, list[dict[str, Any]]]:
    """Every row of every class has come out once, with scores or a reason; prints what became of them."""
    by_class = defaultdict(list)
    for row in rows:
        check_row(row)
        by_class[row["row_id"].rpartition(" #")[0]].append(row)
    with capsys.disabled():
        print("\n" + table(tried, by_class))
    assert Counter(row["row_id"] for row in rows) == {f"{k} #{i}": 1 for k, n in tried.items() for i in range(n)}
    return by_class


@pytest.mark.slow
def test_every_odd_row_is_scored_or_has_a_reason(night: Night, capsys: pytest.CaptureFixture[str]) -> None:
    tried = {kind: len(rows) for kind, rows in odd.ROWS.items()}
    assert len(tried) >= 25 and sum(tried.values()) >= 330
    by_class = check_classes([row for row in night.rows if row["layout"] == ODD], tried, capsys)
    assert not [row["row_id"] for row in by_class["empty altogether"] + by_class["empty response"] if row["status"] == "ok"]


@pytest.mark.slow
def test_every_odd_layout_comes_out_whole(night: Night, capsys: pytest.CaptureFixture[str]) -> None:
    found = defaultdict(list)
    for row in night.rows:
        check_row(row)
        found[row["layout"]].append(row)
    kinds = [layout.kind for layouts in (BESIDE, ALONE, REFUSED) for layout in layouts]
    assert len(kinds) >= 60 and len(set(kinds)) >= 12
    assert len(found) == sum(layout.rows > 0 for layout in BESIDE) + 1
    by_class: dict[str, list[Any]] = defaultdict(list)
    tried = Counter[str]()
    for layout in BESIDE:
        by_class[layout.kind] += found[layout.value]
        tried[layout.kind] += layout.rows
    with capsys.disabled():
        print("\n" + table(tried, by_class))
        print(f"{len(BESIDE)} layouts, beside {len(ALONE)} inputs that are scored alone and {len(REFUSED)} that are refused")
    for layout in BESIDE:
        rows = found[layout.value]
        wanted = layout.rows if layout.scored is None else layout.scored
        assert (len(rows), sum(row["status"] == "ok" for row in rows)) == (layout.rows, wanted), layout[:2]


@pytest.mark.slow
def test_columns_that_are_carried_come_out_as_they_were(night: Night) -> None:
    for name, values in CARRIED.items():
        found = column_of(night.output, "layout", name, f"carried {name}")
        assert repr(found.to_pylist()) == repr(values.to_pylist()), name
    for name, both in DIFFER.items():
        found = column_of(night.output, "layout", name, name)
        wanted = pa.array([value for part in both for value in part.to_pylist()], found.type)
        assert Counter(map(repr, found.to_pylist())) == Counter(map(repr, wanted.to_pylist())), name


@pytest.mark.slow
def test_rows_in_are_rows_out(night: Night) -> None:
    run = manifest(night.output)["runs"][-1]
    scored = sum(row["status"] == "ok" for row in night.rows)
    assert run["rows"] == {"in": night.tried, "scored": scored, "failed": night.tried - scored, "skipped": 0}
    assert len(night.rows) == night.tried and f"{night.tried:,} in = {scored:,} scored" in night.printed
    keys = raw_keys(night.output)
    assert len(keys) == len(set(keys)) == night.tried
    files = manifest(night.output)["files"]
    assert Counter(key >> 32 for key in keys) == {n: file["rows"] for n, file in enumerate(files) if file["rows"]}
    assert not raw_controls("\n".join(line for line in night.printed.splitlines() if "(raylet)" not in line))
    assert "error" not in run["statuses"]


@pytest.mark.slow
def test_a_second_run_skips_all_however_the_input_is_spelled(night: Night, tmp_path: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in (night.output / "raw").rglob("*")}
    done = here("run", night.logs, night.output, "--config", night.job)
    assert done.returncode == 0 and f"{night.tried:,} skipped" in done.stdout, done.stdout + done.stderr
    (tmp_path / "link").symlink_to(night.logs)
    for spelled in (f"{night.logs}/../logs", tmp_path / "link", night.logs.as_uri(), f"{night.logs}/."):
        run = CliRunner().invoke(app, ["run", str(spelled), str(night.output), "--config", str(night.job)])
        assert run.exit_code == 0 and f"{night.tried:,} skipped" in run.output, run.output
    assert {path: path.stat().st_mtime_ns for path in (night.output / "raw").rglob("*")} == before


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        ["evaluate", "--label", "label", "--slice", "tenant", "--resamples", "20"],
        ["calibrate", "--label", "label", "--target", "f1", "--threshold-only"],
        ["compare", "--last", "400", "--label", "label"],
        ["compare", "--order-by", "tenant"],
        ["drift"],
        ["report", "--label", "label", "--slice", "tenant", "--resamples", "20", "--to", "page.html"],
        *(["export", f"{form}.out", "--format", form] for form in ("messages", "parquet", "dpo", "flagged")),
        ["finalize"],
    ],
    ids=" ".join,
)
def test_whatever_is_done_with_it_then(
    night: Night, command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    name, *rest = command
    config = [] if name in {"calibrate", "export"} else ["--config", str(night.job)]
    run = CliRunner().invoke(app, [name, str(night.output), *rest, *config])
    assert run.exit_code == 0 or (run.exit_code == 1 and "\nerror[" in f"\n{run.output}"), run.output or run.exception
    assert not raw_controls(run.output) and "Traceback" not in run.output
    for path in tmp_path.iterdir():
        if path.suffix == ".html":
            assert not raw_controls(path.read_text())


@pytest.mark.slow
def test_a_log_that_changed_is_noticed(night: Night) -> None:
    path = night.logs / "layout=codec none" / "a.parquet"
    old, then = path.read_bytes(), path.stat()
    path.write_bytes(old.replace(b"Shop 0", b"Shop 9"))
    assert pq.read_table(path, partitioning=None) != pq.read_table(pa.BufferReader(old))
    run = CliRunner().invoke(app, ["run", str(night.logs), str(night.output), "--config", str(night.job)])
    path.write_bytes(old)
    os.utime(path, ns=(then.st_atime_ns, then.st_mtime_ns))
    assert run.exit_code == 1 and "layout=codec none/a.parquet" in run.output, run.output
