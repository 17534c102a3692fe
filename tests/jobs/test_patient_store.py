"""An object store with temporary failures: requests are repeated, also in workers, and rows are never marked as unreadable."""

import gzip
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs as pafs

from ragassay.jobs.config.input import Columns
from ragassay.jobs.input import find_logs, formats, read
from ragassay.jobs.scoring import row_sample
from ragassay.jobs.storage.folder import open_atomic, open_folder, read_table
from ragassay.jobs.storage.store_retries import RetryingS3
from tests.conftest import OBJECT_STORE, example_rows, write_logs
from tests.raises import raises
from tests.soak.fault_store import BUCKET, Weather, s3_store

SLOW = "When reading information for key 'a' in bucket 'b': AWS Error SLOW_DOWN during HeadObject operation: slow down"


def test_a_worker_retries_as_often_as_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in OBJECT_STORE.items():
        monkeypatch.setenv(name, value)
    with s3_store() as store:
        folder = open_folder(store.uri("out"))
        folder.write("a", "text")
        worker_fs = pickle.loads(pickle.dumps(folder.fs))
        assert isinstance(worker_fs, RetryingS3) and worker_fs.equals(folder.fs) and worker_fs.type_name == "s3"
        store.weather = Weather(dropped=0.5, seed=3)  # pyarrow's default of 3 attempts fails in one of eight cases
        for _ in range(6):
            with worker_fs.open_input_stream(folder.path("a")) as stream:
                assert bytes(stream.read()) == b"text"
        assert store.weather.seen["dropped"] > 3


def test_a_short_range_is_retried_as_often_as_a_long_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A range that is shorter than an error response: a column of one value, a lock, a small manifest, a compressed file."""
    for name, value in OBJECT_STORE.items():
        monkeypatch.setenv(name, value)
    rows = [{"tenant": "a", "number": i} for i in range(50)]
    logs = write_logs(tmp_path / "a.parquet", rows, row_group_size=10)
    lines = gzip.compress(b"one\ntwo\n")
    with s3_store() as store:
        fs = open_folder(store.uri("in")).fs
        for name, content in (("a.parquet", logs.read_bytes()), ("b.jsonl.gz", lines), ("c.json", b"{}")):
            with fs.open_output_stream(f"{BUCKET}/in/{name}", compression=None) as put:
                put.write(content)
        store.weather = Weather(errors=0.25, seed=7)
        with pq.ParquetFile(f"{BUCKET}/in/a.parquet", filesystem=fs) as parquet:
            assert parquet.read().to_pylist() == rows
        assert pq.read_schema(f"{BUCKET}/in/a.parquet", filesystem=fs).names == ["tenant", "number"]
        assert open_folder(store.uri("in")).read("c.json") == "{}"
        for options in ({"compression": "gzip"}, {}):
            with fs.open_input_stream(f"{BUCKET}/in/b.jsonl.gz", **options) as unpacked:
                assert unpacked.read() == b"one\ntwo\n"
        with open_atomic(
            fs, f"{BUCKET}/in/d.jsonl.gz", "gzip"
        ) as stream:  # compressed once, although pyarrow would compress again by the file name
            stream.write(b"one\n")
        with fs.open_input_stream(f"{BUCKET}/in/d.jsonl.gz", compression=None) as packed:
            assert gzip.decompress(packed.read()) == b"one\n"
        for _ in range(3):
            assert read_table(fs, f"{BUCKET}/in/a.parquet", ["tenant"])["tenant"].to_pylist() == ["a"] * 50
        with fs.open_input_stream(f"{BUCKET}/in/b.jsonl.gz", compression=None) as packed:
            assert packed.read() == lines
        assert store.weather.seen["errors"] > 3
        with pytest.raises(FileNotFoundError):
            fs.open_input_file(f"{BUCKET}/in/d")
        file = fs.open_input_file(f"{BUCKET}/in/c.json")
        fs.delete_file(f"{BUCKET}/in/c.json")
        with pytest.raises(FileNotFoundError):  # at the second attempt, not after ten
            file.read()


class FailingReader:
    """Reader whose store fails in the second row group."""

    def __init__(self) -> None:
        self.row_group_sizes = [1, 1]

    def read_batches(self, group: int, rows: int, columns: Any = None) -> Iterator[pa.RecordBatch]:
        if group:
            raise OSError(SLOW)
        yield from pa.Table.from_pylist(example_rows(1)).to_batches()


def test_rows_are_not_unreadable_because_a_store_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    logs = find_logs(str(write_logs(tmp_path / "a.parquet", example_rows(2), row_group_size=1)))

    @contextmanager
    def failing(*_: object) -> Iterator[FailingReader]:
        yield FailingReader()

    monkeypatch.setattr(read, "open_log", failing)
    monkeypatch.setattr(row_sample, "open_log", failing)
    with raises("store.gave-way", where=f" at {logs.files[0].uri}"):  # nor are rows chosen without reading their ids
        row_sample.find_sample_keys(logs.fs, logs.files[0], 0, "response", 0.5)
    tables = read.read_logs(logs.fs, logs.files[0], 0, [0, 1], Columns(), pa.schema([]), keep_unreadable=True)
    assert next(tables).num_rows == 1
    with raises("store.gave-way", where=f" at {logs.files[0].uri}"):
        next(tables)


@pytest.mark.parametrize(("code", "skipped"), [("SLOW_DOWN", False), ("EXPIRED_TOKEN", False), ("ACCESS_DENIED", True)])
def test_a_file_is_not_bad_because_a_store_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, skipped: bool
) -> None:
    logs = find_logs(str(write_logs(tmp_path / "a.parquet", example_rows(1))))

    def inspect(*_: object) -> Any:
        raise OSError(SLOW.replace("SLOW_DOWN", code))

    monkeypatch.setattr(formats, "find_format", lambda _: type("FileFormat", (), {"inspect": staticmethod(inspect)}))
    if skipped:
        assert code in str(formats.inspect_files(pafs.LocalFileSystem(), logs.files)[0].error)
    else:
        with raises("store.gave-way"):
            formats.inspect_files(pafs.LocalFileSystem(), logs.files)
