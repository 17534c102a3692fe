"""`escalated/` has one outcome per row after interrupted runs, and only unanswered rows are asked about."""

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

from ragassay.jobs.output.scored_dataset import DataFile, ScoredDataset
from ragassay.jobs.second_pass.escalate.candidates import Candidates
from ragassay.jobs.second_pass.escalate.command import select_unanswered
from ragassay.jobs.second_pass.escalate.outcomes import Outcomes, drop_superseded, read_outcomes
from ragassay.jobs.storage.folder import open_folder
from ragassay.schemas.escalated_columns import escalated_schema

OUTCOME = st.tuples(st.integers(0, 8), st.sampled_from(["ok", "error", "no_answer"]))
FILES = st.lists(st.lists(OUTCOME, min_size=1, max_size=6), max_size=4)


def make_table(keys: list[tuple[int, str]]) -> pa.Table:
    rows = [{"row_key": key, "row_id": f"r{key}", "status": status, "run_id": "r"} for key, status in keys]
    return pa.Table.from_pylist(rows, escalated_schema([]))


@given(FILES)
def test_one_outcome_per_row_remains_and_errors_are_dropped_first(files: list[list[tuple[int, str]]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        output = open_folder(folder)
        for number, rows in enumerate(files):
            path = Path(folder) / "escalated" / f"dt={number % 2}" / f"{number}.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(make_table(rows), path)
        drop_superseded(output)
        remaining = read_outcomes(output)
        outcomes = [outcome for rows in files for outcome in rows]
        assert sorted(remaining.keys.tolist()) == sorted({key for key, _ in outcomes})
        errors = {key for key, _ in outcomes} - {key for key, status in outcomes if status != "error"}
        assert set(remaining.keys[remaining.is_error].tolist()) == errors
        before = remaining.keys.tolist()
        drop_superseded(output)
        assert read_outcomes(output).keys.tolist() == before


@given(st.integers(0, 12), st.sets(st.integers(0, 11)), st.dictionaries(st.integers(0, 19), st.booleans()), st.integers(0, 9))
def test_every_selected_row_is_either_answered_or_asked_about(
    rows: int, selected: set[int], known_errors: dict[int, bool], cut: int
) -> None:
    """The first of 20 rows are candidates in two files; the others are in an earlier partition."""
    keys = np.arange(rows)
    files = [DataFile("a", "1"), DataFile("a", "2")]
    file_numbers = (keys >= cut).astype(np.int64)
    candidates = Candidates(files, file_numbers, keys, keys.astype(np.float64), np.zeros(rows, bool), None)
    indices = np.array([key for key in sorted(selected) if key < rows], dtype=np.int64)
    known_keys = np.array(sorted(known_errors), dtype=np.int64)
    is_error = np.array([known_errors[key] for key in known_keys.tolist()], dtype=bool)
    outcomes = Outcomes(known_keys, is_error, (known_keys >= rows).astype(np.int64), ["a", "b"])
    earlier_file = DataFile("b", "3")
    unanswered = select_unanswered(candidates, indices, outcomes, ScoredDataset(None, (earlier_file,)))
    asked = [key for file_keys in unanswered.values() for key in file_keys.tolist()]
    answered = {key for key, failed in known_errors.items() if not failed}
    errors = set(known_errors) - answered
    assert len(asked) == len(set(asked)) and not set(asked) & answered
    assert set(indices.tolist()) <= set(asked) | answered
    assert set(asked) == (set(indices.tolist()) - set(known_errors)) | errors
    for file, file_keys in unanswered.items():
        for key in file_keys.tolist():
            assert file == (earlier_file if key >= rows else files[key >= cut])
