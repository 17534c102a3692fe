"""What stands in `escalated/`: one outcome a row, whatever runs that were killed have left; and what is asked about."""

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

from ragassay.jobs.output.scored_dataset import DataFile, ScoredDataset
from ragassay.jobs.second_pass.escalate.candidates import Candidates
from ragassay.jobs.second_pass.escalate.outcomes import Outcomes, drop_superseded, read_outcomes
from ragassay.jobs.second_pass.escalate.run import select_unanswered
from ragassay.jobs.storage.folder import open_folder
from ragassay.schemas.escalated import escalated_schema

OUTCOME = st.tuples(st.integers(0, 8), st.sampled_from(["ok", "error", "no_answer"]))
FILES = st.lists(st.lists(OUTCOME, min_size=1, max_size=6), max_size=4)


def rows_of(keys: list[tuple[int, str]]) -> pa.Table:
    rows = [{"row_key": key, "row_id": f"r{key}", "status": status, "run_id": "r"} for key, status in keys]
    return pa.Table.from_pylist(rows, escalated_schema([]))


@given(FILES)
def test_one_outcome_stays_and_it_is_no_error_if_there_is_another(files: list[list[tuple[int, str]]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        output = open_folder(folder)
        for number, rows in enumerate(files):
            path = Path(folder) / "escalated" / f"dt={number % 2}" / f"{number}.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(rows_of(rows), path)
        drop_superseded(output)
        found = read_outcomes(output)
        everything = [outcome for rows in files for outcome in rows]
        assert sorted(found.keys.tolist()) == sorted({key for key, _ in everything})
        errors = {key for key, _ in everything} - {key for key, status in everything if status != "error"}
        assert set(found.keys[found.is_error].tolist()) == errors
        before = found.keys.tolist()
        drop_superseded(output)
        assert read_outcomes(output).keys.tolist() == before


@given(st.integers(0, 12), st.sets(st.integers(0, 11)), st.dictionaries(st.integers(0, 19), st.booleans()), st.integers(0, 9))
def test_every_chosen_row_is_answered_or_asked_about_and_never_both(
    rows: int, chosen: set[int], known: dict[int, bool], cut: int
) -> None:
    """Of 20 rows the first are at hand, in two files; the others are of another night."""
    keys = np.arange(rows)
    files = [DataFile("a", "1"), DataFile("a", "2")]
    numbers = (keys >= cut).astype(np.int64)
    found = Candidates(files, numbers, keys, keys.astype(np.float64), np.zeros(rows, bool), None)
    places = np.array([key for key in sorted(chosen) if key < rows], dtype=np.int64)
    there = np.array(sorted(known), dtype=np.int64)
    failed = np.array([known[key] for key in there.tolist()], dtype=bool)
    outcome = Outcomes(there, failed, (there >= rows).astype(np.int64), ["a", "b"])
    wanted = select_unanswered(found, places, outcome, ScoredDataset(None, (DataFile("b", "3"),)))
    asked = [key for file in wanted.values() for key in file.tolist()]
    answered = {key for key, bad in known.items() if not bad}
    assert len(asked) == len(set(asked)) and not set(asked) & answered
    assert set(places.tolist()) <= set(asked) | answered
    assert set(asked) == (set(places.tolist()) - set(known)) | {key for key, bad in known.items() if bad}
    for file, found_keys in wanted.items():
        for key in found_keys.tolist():
            assert file == (DataFile("b", "3") if key >= rows else files[key >= cut])
