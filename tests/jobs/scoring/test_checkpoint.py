"""Committed rows are counted and not read again; partially written files are deleted."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragassay.jobs.config.input import Columns
from ragassay.jobs.config.job import make_job
from ragassay.jobs.input import find_logs, read_logs
from ragassay.jobs.output.commits import discard_pending
from ragassay.jobs.runtime.tasks import local_session
from ragassay.jobs.scoring.checkpoint import CHECKPOINT, CommittedRowCounter, find_open_groups, remove_committed
from ragassay.jobs.scoring.selection import Selection
from ragassay.jobs.scoring.source import make_source
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
def test_only_row_groups_with_open_rows_are_read(
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
    groups = find_open_groups(output, logs.fs, files)
    for number, file in files.items():
        for group in range(file.row_groups):
            tables = list(read_logs(logs.fs, file, number, [group], Columns(row_id=None), logs.passthrough, False))
            all_keys = {key for table in tables for key in table["row_key"].to_pylist()}
            assert (group in groups[number]) == bool(all_keys - keys)
            if group in groups[number]:
                open_keys = [
                    key for table in remove_committed(tables, groups[number][group]) for key in table["row_key"].to_pylist()
                ]
                assert open_keys == sorted(all_keys - keys)
    assert CommittedRowCounter(output, files)() == len(keys)
    assert CommittedRowCounter(output, [])() == 0


def test_pending_commits_of_a_killed_run_are_deleted_with_their_data(tmp_path: Path) -> None:
    output = open_folder(str(tmp_path))
    for name in ("a_0.parquet", "b_0.pending.parquet", "b_1.pending.parquet"):
        commit(tmp_path, name, [1, 2])
    for name in ("a_0-0.parquet", "dt=1/b_0-0.parquet", "dt=2/b_0-0.parquet", "b_10-0.parquet"):
        write_logs(tmp_path / "raw" / name, example_rows(1))
    discard_pending(output, CHECKPOINT, "raw")
    assert {path.name for path in (tmp_path / CHECKPOINT).iterdir()} == {"a_0.parquet"}
    assert {path.name for path in (tmp_path / "raw").rglob("*.parquet")} == {"a_0-0.parquet", "b_10-0.parquet"}


def test_rows_that_are_committed_and_pending_are_scored_again(tmp_path: Path) -> None:
    output = open_folder(str(tmp_path))
    for name in ("a_0.parquet", "a_0.pending.parquet", "a_1.parquet"):
        commit(tmp_path, name, [1, 2])
    for name in ("a_0-0.parquet", "a_1-0.parquet"):
        write_logs(tmp_path / "raw" / name, example_rows(2))
    discard_pending(output, CHECKPOINT, "raw")
    assert [path.name for path in (tmp_path / CHECKPOINT).iterdir()] == ["a_1.parquet"]
    assert [path.name for path in (tmp_path / "raw").iterdir()] == ["a_1-0.parquet"]


def test_without_a_checkpoint_everything_is_read(tmp_path: Path) -> None:
    write_logs(tmp_path / "logs" / "a.parquet", example_rows(10), row_group_size=3)
    logs = find_logs(str(tmp_path / "logs"))
    output = open_folder(str(tmp_path / "out"))
    discard_pending(output, CHECKPOINT, "raw")
    groups = find_open_groups(output, logs.fs, {7: logs.files[0]})[7]
    assert {group: len(rows) for group, rows in groups.items()} == dict.fromkeys(range(4), 0)
    assert CommittedRowCounter(output, [7])() == 0


def test_the_open_row_of_a_large_row_group_is_read(tmp_path: Path) -> None:
    rows, open_row = 300_000, 123_456
    write_logs(tmp_path / "logs" / "a.parquet", example_rows(1) * rows, row_group_size=rows)
    commit(tmp_path / "out", "0.parquet", [(7 << 32) + row for row in range(rows) if row != open_row])
    logs, output = find_logs(str(tmp_path / "logs")), open_folder(str(tmp_path / "out"))
    files = {7: logs.files[0]}
    job = make_job({"input": {"columns": {"row_id": None}}})
    with local_session():
        source = make_source(job, Selection(logs, files), find_open_groups(output, logs.fs, files))
        keys = [key for part in source.parts for table in part.read() for key in table["row_key"].to_pylist()]
    assert keys == [(7 << 32) + open_row]
