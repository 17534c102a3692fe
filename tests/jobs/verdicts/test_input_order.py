"""Rows of a partition are read in the order of the input, independent of blocks and interrupted runs."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import fs as pafs

from ragassay.jobs.output.scored_dataset import DataFile, ScoredDataset
from ragassay.jobs.verdicts.input_order import read_in_input_order

FS = pafs.LocalFileSystem()


def raw_of(paths: list[str]) -> ScoredDataset:
    return ScoredDataset(FS, tuple(DataFile("", path) for path in paths))


@given(st.lists(st.lists(st.integers(0, 1 << 40), min_size=1), min_size=1), st.integers(1, 4))
def test_any_division_into_files_is_read_completely_and_in_order(blocks: list[list[int]], group: int) -> None:
    keys = [key for block in blocks for key in block]
    with TemporaryDirectory() as folder:
        files = []
        for number, block in enumerate(blocks):
            table = pa.table({"row_key": pa.array(block, pa.int64()), "text": [str(key) for key in block]})
            files.append(f"{folder}/{number}.parquet")
            pq.write_table(table, files[-1], row_group_size=group)
        rows = pa.Table.from_batches(read_in_input_order(raw_of(files), lambda batch: batch))
    assert rows["row_key"].to_pylist() == sorted(keys) and rows["text"].to_pylist() == [str(key) for key in sorted(keys)]


def test_a_block_with_a_gap_waits_for_the_rows_of_other_files(tmp_path: Path) -> None:
    for name, keys in {"a": [0, 1, 5, 6], "b": [2, 3], "c": [4], "d": [7]}.items():
        pq.write_table(pa.table({"row_key": keys}), tmp_path / f"{name}.parquet")
    files = [str(tmp_path / f"{name}.parquet") for name in "dcba"]
    batches = [batch["row_key"].to_pylist() for batch in read_in_input_order(raw_of(files), lambda batch: batch)]
    assert [key for keys in batches for key in keys] == list(range(8))
    assert max(map(len, batches)) < 4  # never all rows in one batch
