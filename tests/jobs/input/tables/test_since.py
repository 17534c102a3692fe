"""Versions of a table: added rows are read once, even if their files are replaced."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragassay.jobs.config.input import InputConfig
from ragassay.jobs.input.files import LogFile
from ragassay.jobs.input.tables.since import AddedFiles, StartVersion, find_start_version
from ragassay.schemas.manifest import DeferredInput, Run
from ragassay.schemas.source import SourceTable
from tests.raises import raises


def make_file(path: str) -> LogFile:
    return LogFile(path, path, path, 0, ())


def make_run(version: int, since: int | None = None, *, ended: bool = True, skipped: bool = False, table: str = "t") -> Run:
    source = SourceTable("delta", table, version, since)
    return Run("r", "2026-11-01", rows={"in": 1} if ended else {}, files_skipped={"x": "bad"} if skipped else {}, source=source)


@pytest.mark.parametrize(
    ("runs", "source", "begin"),
    [
        ([], {}, StartVersion(9, 9)),
        ([make_run(4)], {}, StartVersion(None, 4, frozenset({4}))),
        ([make_run(4), make_run(6, 4)], {}, StartVersion(None, 6, frozenset({4, 6}))),
        ([make_run(4), make_run(6, 4, ended=False)], {}, StartVersion(None, 4, frozenset({4, 6}))),
        ([make_run(4), make_run(6, 4, skipped=True)], {}, StartVersion(None, 4, frozenset({4, 6}))),
        ([replace(make_run(4), deferred=DeferredInput(3, 1, 1, 0, 1))], {}, StartVersion(4, 4, frozenset({4}))),
        ([replace(make_run(4), skips={"outside": 3})], {}, StartVersion(4, 4, frozenset({4}))),
        ([replace(make_run(4), share=0.1)], {}, StartVersion(4, 4, frozenset({4}))),
        (
            [make_run(4), replace(make_run(6, 4), deferred=DeferredInput(3, 1, 1, 0, 1))],
            {},
            StartVersion(None, 4, frozenset({4, 6})),
        ),
        ([replace(make_run(4), share=0.1), make_run(6)], {}, StartVersion(None, 6, frozenset({4, 6}))),
        ([make_run(4, ended=False)], {}, StartVersion(4, 4, frozenset({4}))),
        ([make_run(4, 2, ended=False)], {}, StartVersion(None, 2, frozenset({4}))),
        ([make_run(4, table="other")], {}, StartVersion(9, 9)),
        ([make_run(4)], {"since": 7}, StartVersion(None, 7)),
        ([Run("r", "2026-11-01", rows={"in": 1})], {}, StartVersion(9, 9)),
    ],
)
def test_the_start_version_follows_the_last_complete_run(
    runs: Sequence[Run], source: dict[str, int], begin: StartVersion
) -> None:
    assert find_start_version("delta", "t", 9, InputConfig.model_validate(source), lambda: runs) == begin


@given(st.lists(st.tuples(st.sampled_from(["append", "compact", "registered"]), st.integers(0, 5)), max_size=12))
def test_compaction_neither_loses_nor_repeats_rows(steps: list[tuple[str, int]]) -> None:
    """Rows are numbers. After any compaction, the files that are read contain exactly the appended rows."""
    scored = {"old": {-1, -2}}
    live: dict[str, set[int]] = dict(scored)
    contents = dict(live)
    added_files, rows, registered = AddedFiles("t", "Delta"), 0, set[str]()
    for number, (operation, count) in enumerate(steps):
        if operation == "append":
            live[f"f{number}"] = contents[f"f{number}"] = set(range(rows, rows + count))
            added_files.apply_version(number, "WRITE", [make_file(f"f{number}")], [], new_rows=True)
            rows += count
        elif operation == "compact":
            removed = list(live)[-1 - count :]
            live[f"c{number}"] = contents[f"c{number}"] = {row for path in removed for row in live.pop(path)}
            added_files.apply_version(number, "OPTIMIZE", [make_file(f"c{number}")], removed, new_rows=False)
        else:
            added_files.keep_all_so_far()
            registered |= {file.path for file in added_files.files}
    read = [row for file in added_files.files for row in contents[file.path]]
    assert sorted(read) == list(range(rows))
    assert registered <= {file.path for file in added_files.files}  # an interrupted run finds its files again


def test_replaced_rows_are_refused_if_some_may_be_scored() -> None:
    added_files = AddedFiles("t", "Delta")
    added_files.apply_version(1, "WRITE", [make_file("a")], [], new_rows=True)
    added_files.apply_version(2, "MERGE", [make_file("b")], ["a"], new_rows=True)
    assert [file.path for file in added_files.files] == ["b"]
    with raises("input.replaced-files", version=3):
        added_files.apply_version(3, "MERGE", [make_file("c")], ["b", "scored"], new_rows=True)
    added_files.keep_all_so_far()
    with raises("input.replaced-files", version=4):
        added_files.apply_version(4, "WRITE", [make_file("c")], ["b"], new_rows=True)
    added_files.apply_version(5, "DELETE", [], ["b"], new_rows=False)
    assert [file.path for file in added_files.files] == ["b"]
