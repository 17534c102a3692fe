"""What is committed is counted, and not read again; what is half written is cleared away."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragassay.jobs.config.input import Columns
from ragassay.jobs.config.job import make_job
from ragassay.jobs.input import find_logs, read_logs
from ragassay.jobs.output.commits import clear_pending
from ragassay.jobs.scoring.checkpoint import CHECKPOINT, CommittedRows, open_groups, without_committed
from ragassay.jobs.scoring.datasource import open_rows
from ragassay.jobs.scoring.selection import Selection
from ragassay.jobs.storage.folder import open_folder
from tests.conftest import example_rows, write_logs


def commit(output: Path, name: str, keys: list[int]) -> None:
    folder = output / CHECKPOINT
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"row_key": pa.array(keys, pa.int64())}), folder / name)


@settings(max_examples=25)
@given(
    sizes=st.lists(st.tuples(st.integers(1, 40), st.integers(1, 9)), min_size=1, max_size=3),
    committed=st.sets(st.tuples(st.integers(0, 2), st.integers(0, 39))),
)
def test_open_rows_are_read_and_no_row_group_without_any(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[tuple[int, int]], committed: set[tuple[int, int]]
) -> None:
    folder = tmp_path_factory.mktemp("checkpoint")
    for number, (rows, group) in enumerate(sizes):
        write_logs(folder / "logs" / f"{number}.parquet", example_rows(rows), row_group_size=group)
    keys = {(number << 32) + row for number, row in committed if number < len(sizes) and row < sizes[number][0]}
    commit(folder / "out", "0.parquet", sorted(keys)[::2])
    commit(folder / "out", "1.parquet", sorted(keys)[1::2])
    commit(folder / "out", "2.pending.parquet", list(range(40)))
    logs, output = find_logs(str(folder / "logs")), open_folder(str(folder / "out"))
    files = dict(enumerate(logs.files))
    groups = open_groups(output, logs.fs, files)
    for number, file in files.items():
        for group in range(file.row_groups):
            tables = list(read_logs(logs.fs, file, number, [group], Columns(row_id=None), logs.passthrough, False))
            found = {key for table in tables for key in table["row_key"].to_pylist()}
            assert (group in groups[number]) == bool(found - keys)
            if group in groups[number]:
                left = [
                    key for table in without_committed(tables, groups[number][group]) for key in table["row_key"].to_pylist()
                ]
                assert left == sorted(found - keys)
    assert CommittedRows(output, files)() == len(keys)
    assert CommittedRows(output, [])() == 0


def test_what_a_killed_run_left_pending_is_deleted_with_its_data(tmp_path: Path) -> None:
    output = open_folder(str(tmp_path))
    for name in ("a_0.parquet", "b_0.pending.parquet", "b_1.pending.parquet"):
        commit(tmp_path, name, [1, 2])
    for name in ("a_0-0.parquet", "dt=1/b_0-0.parquet", "dt=2/b_0-0.parquet", "b_10-0.parquet"):
        write_logs(tmp_path / "raw" / name, example_rows(1))
    clear_pending(output, CHECKPOINT, "raw")
    assert {path.name for path in (tmp_path / CHECKPOINT).iterdir()} == {"a_0.parquet"}
    assert {path.name for path in (tmp_path / "raw").rglob("*.parquet")} == {"a_0-0.parquet", "b_10-0.parquet"}


def test_rows_that_are_committed_and_pending_are_scored_again(tmp_path: Path) -> None:
    output = open_folder(str(tmp_path))
    for name in ("a_0.parquet", "a_0.pending.parquet", "a_1.parquet"):
        commit(tmp_path, name, [1, 2])
    for name in ("a_0-0.parquet", "a_1-0.parquet"):
        write_logs(tmp_path / "raw" / name, example_rows(2))
    clear_pending(output, CHECKPOINT, "raw")
    assert [path.name for path in (tmp_path / CHECKPOINT).iterdir()] == ["a_1.parquet"]
    assert [path.name for path in (tmp_path / "raw").iterdir()] == ["a_1-0.parquet"]


def test_without_a_checkpoint_everything_is_read(tmp_path: Path) -> None:
    write_logs(tmp_path / "logs" / "a.parquet", example_rows(10), row_group_size=3)
    logs = find_logs(str(tmp_path / "logs"))
    output = open_folder(str(tmp_path / "out"))
    clear_pending(output, CHECKPOINT, "raw")
    groups = open_groups(output, logs.fs, {7: logs.files[0]})[7]
    assert {group: len(rows) for group, rows in groups.items()} == dict.fromkeys(range(4), 0)
    assert CommittedRows(output, [7])() == 0


@pytest.mark.slow
def test_a_row_group_with_very_many_committed_rows_is_read_on(one_ray: None, tmp_path: Path) -> None:
    import ray.data

    rows, open_row = 300_000, 123_456
    write_logs(tmp_path / "logs" / "a.parquet", example_rows(1) * rows, row_group_size=rows)
    commit(tmp_path / "out", "0.parquet", [(7 << 32) + row for row in range(rows) if row != open_row])
    logs, output = find_logs(str(tmp_path / "logs")), open_folder(str(tmp_path / "out"))
    files = {7: logs.files[0]}
    job = make_job({"input": {"columns": {"row_id": None}}})
    dataset = ray.data.read_datasource(open_rows(job, Selection(logs, files), open_groups(output, logs.fs, files)))
    assert [row["row_key"] for row in dataset.take_all()] == [(7 << 32) + open_row]
