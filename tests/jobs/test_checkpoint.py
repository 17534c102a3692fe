"""What is committed is counted, and not read again."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.checkpoint import CHECKPOINT, CommittedRows, clear_moved, groups_to_read
from jobs.config import Columns
from jobs.logs import find_logs, read_logs
from jobs.storage import open_folder
from tests.conftest import example_rows, write_logs


def commit(output: Path, name: str, keys: list[int]) -> None:
    folder = output / CHECKPOINT
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"row_key": pa.array(keys, pa.int64())}), folder / name)


@settings(max_examples=25, deadline=None)
@given(
    sizes=st.lists(st.tuples(st.integers(1, 40), st.integers(1, 9)), min_size=1, max_size=3),
    committed=st.sets(st.tuples(st.integers(0, 2), st.integers(0, 39))),
)
def test_row_groups_with_open_rows_are_read_and_no_others(
    tmp_path_factory: object, sizes: list[tuple[int, int]], committed: set[tuple[int, int]]
) -> None:
    folder: Path = tmp_path_factory.mktemp("checkpoint")  # type: ignore[attr-defined]
    for number, (rows, group) in enumerate(sizes):
        write_logs(folder / "logs" / f"{number}.parquet", example_rows(rows), row_group_size=group)
    keys = {(number << 32) + row for number, row in committed if number < len(sizes) and row < sizes[number][0]}
    commit(folder / "out", "0.parquet", sorted(keys)[::2])
    commit(folder / "out", "1.parquet", sorted(keys)[1::2])
    commit(folder / "out", "2.pending.parquet", list(range(40)))
    logs, output = find_logs(str(folder / "logs")), open_folder(str(folder / "out"))
    files = dict(enumerate(logs.files))
    groups = groups_to_read(output, logs.fs, files)
    read = {
        number: [
            set(table["row_key"].to_pylist())
            for group in range(file.row_groups)
            for table in read_logs(logs.fs, file, number, [group], Columns(row_id=None), logs.passthrough, False)
        ]
        for number, file in files.items()
    }
    assert groups == {number: [i for i, rows in enumerate(found) if rows - keys] for number, found in read.items()}
    assert CommittedRows(output, files)() == len(keys)
    assert CommittedRows(output, [])() == 0


def test_a_commit_that_was_killed_half_way_keeps_its_rows(tmp_path: Path) -> None:
    output = open_folder(str(tmp_path))
    for name in ("0.parquet", "0.pending.parquet", "1.pending.parquet"):
        commit(tmp_path, name, [1, 2])
    clear_moved(output)
    assert {path.name for path in (tmp_path / CHECKPOINT).iterdir()} == {"0.parquet", "1.pending.parquet"}


def test_without_a_checkpoint_everything_is_read(tmp_path: Path) -> None:
    write_logs(tmp_path / "logs" / "a.parquet", example_rows(10), row_group_size=3)
    logs = find_logs(str(tmp_path / "logs"))
    output = open_folder(str(tmp_path / "out"))
    assert groups_to_read(output, logs.fs, {7: logs.files[0]}) == {7: [0, 1, 2, 3]}
    assert CommittedRows(output, [7])() == 0
