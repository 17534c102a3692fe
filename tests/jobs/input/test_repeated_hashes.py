"""Duplicates are found with any number of hashes in memory."""

import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragassay.jobs.config.input import Columns
from ragassay.jobs.input import check_row_ids, check_values, find_logs, repeated_hashes
from ragassay.jobs.input.repeated_hashes import DuplicateFinder
from tests.conftest import example_rows, write_logs
from tests.raises import raises

hashes = st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 9) | st.integers(2**64 - 5, 2**64 - 1), max_size=120)


@given(hashes, st.integers(1, 9), st.integers(0, 5), st.integers(0, 40))
def test_duplicates_are_those_that_counting_finds(values: list[int], step: int, power: int, more: int) -> None:
    with DuplicateFinder(len(values) + more, in_memory=1 << power) as finder:
        for start in range(0, len(values), step):
            finder.add(np.array(values[start : start + step], np.uint64))
        again = sorted(value for value, count in Counter(values).items() if count > 1)
        assert finder.find_duplicates(len(values) + 1).tolist() == again
        assert len(finder.find_duplicates(1)) >= min(1, len(again))


def test_more_hashes_than_expected_are_accepted() -> None:
    with DuplicateFinder(1) as finder:
        for _ in range(3):
            finder.add(np.arange(5, dtype=np.uint64))
        assert finder.find_duplicates(9).tolist() == list(range(5))


@pytest.mark.parametrize("in_memory", [1, 4, 1 << 20])
def test_the_check_of_ids_is_the_same_in_memory_and_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_memory: int
) -> None:
    monkeypatch.setattr(check_values, "DuplicateFinder", lambda expected: repeated_hashes.DuplicateFinder(expected, in_memory))
    rows = [{**row, "row_id": f"id-{i}"} for i, row in enumerate(example_rows(40))]
    write_logs(tmp_path / "a.parquet", rows[:25], row_group_size=7)
    write_logs(tmp_path / "b.parquet", rows[25:])
    logs = find_logs(str(tmp_path))
    check_row_ids(logs, logs.files, Columns())
    write_logs(tmp_path / "c.parquet", [rows[3], rows[30], rows[30]])
    logs = find_logs(str(tmp_path))
    with raises("input.repeated-ids", ids=2, column="row_id"):
        check_row_ids(logs, logs.files, Columns())
    monkeypatch.setattr(check_values, "MAX_REPEATED_IDS", 1)
    with raises("input.repeated-ids", at_least="at least ", ids=1, column="row_id"):
        check_row_ids(logs, logs.files, Columns())


def test_a_full_disk_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda: Path("/dev/full").open("r+b", buffering=0))  # noqa: SIM115
    with DuplicateFinder(9, in_memory=4) as finder, raises("input.no-room-for-ids", bytes=72):
        finder.add(np.arange(9, dtype=np.uint64))


def test_attack_ids_that_contain_log_text_are_not_printed() -> None:
    text = "The patient of room 12 was informed of the diagnosis on Monday, and of the treatment too."
    with raises("input.repeated-ids", ids=1, column="response") as error:
        check_values.check_ids("logs", [text, text, "a"], Columns(row_id="response", response="answer"))
    assert "patient" not in str(error.value)
