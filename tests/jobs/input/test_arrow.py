"""Arrow files and Hugging Face datasets: exactly the rows of the dataset are read."""

from pathlib import Path

import pyarrow as pa
import pytest

from ragassay.jobs.input import find_logs
from ragassay.jobs.input.formats import open_log
from tests.conftest import example_rows
from tests.jobs.input.test_logs import load_logs, read_rows
from tests.raises import raises


def questions(count: int, start: int = 0) -> list[str]:
    return [row["question"] for row in example_rows(count, start)]


@pytest.mark.parametrize("has_footer", [False, True])
@pytest.mark.parametrize("dictionaries", [False, True])
def test_a_file_is_read_by_row_group(tmp_path: Path, has_footer: bool, dictionaries: bool) -> None:
    table = pa.Table.from_pylist(example_rows(50))
    if dictionaries:
        position = table.schema.get_field_index("tenant")
        table = table.set_column(position, "tenant", table["tenant"].combine_chunks().dictionary_encode())
    with (pa.ipc.new_file if has_footer else pa.ipc.new_stream)(tmp_path / "a.arrow", table.schema) as writer:
        writer.write_table(table, max_chunksize=20)
    logs = load_logs(tmp_path)
    (file,) = logs.files
    assert file.rows == 50 and file.row_groups == (1 if dictionaries and not has_footer else 3)
    with open_log(logs.fs, file) as log:
        last = [batch.to_pydict() for batch in log.read_batches(file.row_groups - 1, 4, ["question"])]
    assert [question for batch in last for question in batch["question"]][-1] == questions(50)[-1]
    rows = read_rows(logs)
    assert [row["question"] for row in rows] == questions(50) and {row["tenant"] for row in rows} == {
        f"tenant-{i}" for i in range(3)
    }


def test_splits_are_partitions_and_caches_are_skipped(tmp_path: Path) -> None:
    from datasets import Dataset, DatasetDict, load_from_disk

    parts = {"train": Dataset.from_list(example_rows(9)), "test": Dataset.from_list(example_rows(4, 9))}
    DatasetDict(parts).save_to_disk(tmp_path / "data", num_shards={"train": 2, "test": 1})
    train = load_from_disk(tmp_path / "data")["train"]
    train.filter(
        lambda row: row["tenant"] == "tenant-1", load_from_cache_file=False
    )  # writes an indices mapping next to the data
    caches = list((tmp_path / "data" / "train").glob("cache-*.arrow"))
    assert caches
    logs = load_logs(tmp_path / "data")
    assert sorted((row["split"], row["question"]) for row in read_rows(logs)) == sorted(
        [("train", q) for q in questions(9)] + [("test", q) for q in questions(4, 9)]
    )
    (bad,) = find_logs(str(caches[0])).unreadable
    assert "indices mapping" in str(bad.error) and "flatten_indices" in str(bad.error)


def test_a_saved_shuffled_dataset_is_read_in_its_order(tmp_path: Path) -> None:
    from datasets import Dataset

    shuffled = Dataset.from_list(example_rows(20)).shuffle(seed=3).select(range(15))
    shuffled.save_to_disk(tmp_path / "data")
    assert [row["question"] for row in read_rows(load_logs(tmp_path / "data"))] == shuffled["question"][:]


def test_an_indices_mapping_is_refused(tmp_path: Path) -> None:
    from datasets import Dataset

    Dataset.from_list(example_rows(3)).save_to_disk(tmp_path / "data")
    state = tmp_path / "data" / "state.json"
    state.write_text(
        state.read_text().replace('"_data_files"', '"_indices_data_files": [{"filename": "i.arrow"}], "_data_files"')
    )
    with raises("input.indices-mapping"):
        find_logs(str(tmp_path / "data"))
    state.write_text("{}")  # of another program
    assert len(find_logs(str(tmp_path / "data")).files) == 1


def test_a_truncated_file_is_unreadable(tmp_path: Path) -> None:
    table = pa.Table.from_pylist(example_rows(50))
    with pa.ipc.new_stream(tmp_path / "a.arrow", table.schema) as writer:
        writer.write_table(table)
    data = (tmp_path / "a.arrow").read_bytes()
    (tmp_path / "b.arrow").write_bytes(data[: len(data) // 2])
    logs = find_logs(str(tmp_path))
    assert [file.path for file in logs.unreadable] == ["b.arrow"] and [file.path for file in logs.files] == ["a.arrow"]
