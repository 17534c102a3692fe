"""Backfills over a Delta table, without Ray: the next run scores deferred rows, even if rows were added in between."""

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from rich.console import Console

from ragassay.jobs.config.job import make_job
from ragassay.jobs.output.partition_filter import parse_conditions
from ragassay.jobs.run import RunOptions, run_job
from ragassay.jobs.scoring.select_files import ScoringScope
from ragassay.schemas.manifest import Run
from tests.conftest import example_rows
from tests.jobs.conftest import read_rows
from tests.raises import raises

JOB = make_job({"members": {"slms": [], "detectors": [{"name": "novelty", "kind": "novelty"}]}})
ROWS = 10  # per version
SECOND_DAY = parse_conditions(["dt>=2026-11-02"])


def append(table: Path, day: int) -> None:
    rows = [{**row, "row_id": f"r{day}-{i}", "dt": f"2026-11-0{day}"} for i, row in enumerate(example_rows(ROWS, day * ROWS))]
    write_deltalake(table, pa.Table.from_pylist(rows), mode="append", partition_by=["dt"])


@pytest.fixture
def table(tmp_path: Path) -> Path:
    for day in (1, 2):
        append(tmp_path / "table", day)
    return tmp_path / "table"


def run_backfill(table: Path, backfill: ScoringScope) -> Run:
    return run_job(JOB, str(table), str(table.parent / "out"), Console(quiet=True), RunOptions(backfill))


@pytest.mark.parametrize(
    "first", [ScoringScope(max_rows=ROWS), ScoringScope(SECOND_DAY), ScoringScope(share=0.3), ScoringScope(max_hours=0.0)]
)
def test_the_next_run_scores_what_a_run_deferred(first: ScoringScope, table: Path, without_ray: None) -> None:
    assert run_backfill(table, first).rows["scored"] < 2 * ROWS
    append(table, 3)
    run_backfill(table, ScoringScope())
    rows = [row["row_id"] for row in read_rows(table.parent / "out")]
    assert len(rows) == len(set(rows)) == 3 * ROWS
    assert run_backfill(table, ScoringScope()).rows["in"] == 0  # the output now contains the last version


def test_conditions_on_a_table_without_new_rows(table: Path, without_ray: None) -> None:
    run_backfill(table, ScoringScope())
    assert run_backfill(table, ScoringScope(SECOND_DAY)).rows == {"in": 0, "scored": 0, "failed": 0, "skipped": 0}
    with raises("partitions.unknown-key", keys="'day'", partitioned_by="its hive keys are dt"):
        run_backfill(table, ScoringScope(parse_conditions(["day>1"])))
