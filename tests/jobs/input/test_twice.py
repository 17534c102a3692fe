"""Hashes that come twice are found whatever part of them stands in memory."""

import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragassay.jobs.config.input import Columns
from ragassay.jobs.input import check_row_ids, check_values, find_logs, twice
from ragassay.jobs.input.twice import Twice
from tests.conftest import example_rows, write_logs
from tests.raises import raises

hashes = st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 9) | st.integers(2**64 - 5, 2**64 - 1), max_size=120)


@given(hashes, st.integers(1, 9), st.integers(0, 5), st.integers(0, 40))
def test_what_comes_twice_is_found_as_by_counting(values: list[int], step: int, power: int, more: int) -> None:
    with Twice(len(values) + more, in_memory=1 << power) as found:
        for start in range(0, len(values), step):
            found.add(np.array(values[start : start + step], np.uint64))
        again = sorted(value for value, count in Counter(values).items() if count > 1)
        assert found.found(len(values) + 1).tolist() == again
        assert len(found.found(1)) >= min(1, len(again))


def test_more_than_were_expected_are_taken() -> None:
    with Twice(1) as found:
        for _ in range(3):
            found.add(np.arange(5, dtype=np.uint64))
        assert found.found(9).tolist() == list(range(5))


@pytest.mark.parametrize("in_memory", [1, 4, 1 << 20])
def test_ids_are_checked_the_same_in_memory_and_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_memory: int
) -> None:
    monkeypatch.setattr(check_values, "Twice", lambda expected: twice.Twice(expected, in_memory))
    rows = [{**row, "row_id": f"id-{i}"} for i, row in enumerate(example_rows(40))]
    write_logs(tmp_path / "a.parquet", rows[:25], row_group_size=7)
    write_logs(tmp_path / "b.parquet", rows[25:])
    logs = find_logs(str(tmp_path))
    check_row_ids(logs, logs.files, Columns())
    write_logs(tmp_path / "c.parquet", [rows[3], rows[30], rows[30]])
    logs = find_logs(str(tmp_path))
    with raises("input.repeated-ids", ids=2, column="row_id"):
        check_row_ids(logs, logs.files, Columns())
    monkeypatch.setattr(check_values, "MOST_TWICE", 1)
    with raises("input.repeated-ids", least="at least ", ids=1, column="row_id"):
        check_row_ids(logs, logs.files, Columns())


def test_a_disk_without_room_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda: Path("/dev/full").open("r+b", buffering=0))  # noqa: SIM115
    with Twice(9, in_memory=4) as found, raises("input.no-room-for-ids", bytes=72):
        found.add(np.arange(9, dtype=np.uint64))


def test_attack_ids_that_are_texts_are_not_printed() -> None:
    text = "The patient of room 12 was told of the diagnosis on Monday, and of the treatment too."
    with raises("input.repeated-ids", ids=1, column="response") as error:
        check_values.check_ids("logs", [text, text, "a"], Columns(row_id="response", response="said"))
    assert "patient" not in str(error.value)
