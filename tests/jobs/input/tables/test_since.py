"""Versions of a table: rows that came in are read once, whatever became of their files."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragassay.jobs.config.input import InputConfig
from ragassay.jobs.input.files import LogFile
from ragassay.jobs.input.tables.since import Begin, Growth, begin_of
from ragassay.schemas.manifest import DeferredInput, Run
from ragassay.schemas.source import SourceTable
from tests.raises import raises


def file(path: str) -> LogFile:
    return LogFile(path, path, path, 0, ())


def ran(version: int, since: int | None = None, *, ended: bool = True, skipped: bool = False, table: str = "t") -> Run:
    source = SourceTable("delta", table, version, since)
    return Run("r", "2026-11-01", rows={"in": 1} if ended else {}, files_skipped={"x": "bad"} if skipped else {}, source=source)


@pytest.mark.parametrize(
    ("runs", "source", "begin"),
    [
        ([], {}, Begin(9, 9)),
        ([ran(4)], {}, Begin(None, 4, frozenset({4}))),
        ([ran(4), ran(6, 4)], {}, Begin(None, 6, frozenset({4, 6}))),
        ([ran(4), ran(6, 4, ended=False)], {}, Begin(None, 4, frozenset({4, 6}))),
        ([ran(4), ran(6, 4, skipped=True)], {}, Begin(None, 4, frozenset({4, 6}))),
        ([replace(ran(4), deferred=DeferredInput(3, 1, 1, 0, 1))], {}, Begin(4, 4, frozenset({4}))),
        ([replace(ran(4), skips={"outside": 3})], {}, Begin(4, 4, frozenset({4}))),
        ([replace(ran(4), share=0.1)], {}, Begin(4, 4, frozenset({4}))),
        ([ran(4), replace(ran(6, 4), deferred=DeferredInput(3, 1, 1, 0, 1))], {}, Begin(None, 4, frozenset({4, 6}))),
        ([replace(ran(4), share=0.1), ran(6)], {}, Begin(None, 6, frozenset({4, 6}))),
        ([ran(4, ended=False)], {}, Begin(4, 4, frozenset({4}))),
        ([ran(4, 2, ended=False)], {}, Begin(None, 2, frozenset({4}))),
        ([ran(4, table="other")], {}, Begin(9, 9)),
        ([ran(4)], {"since": 7}, Begin(None, 7)),
        ([Run("r", "2026-11-01", rows={"in": 1})], {}, Begin(9, 9)),
    ],
)
def test_where_a_run_begins(runs: Sequence[Run], source: dict[str, int], begin: Begin) -> None:
    assert begin_of("delta", "t", 9, InputConfig.model_validate(source), lambda: runs) == begin


@given(st.lists(st.tuples(st.sampled_from(["append", "compact", "registered"]), st.integers(0, 5)), max_size=12))
def test_compaction_loses_no_row_and_doubles_none(steps: list[tuple[str, int]]) -> None:
    """Rows are numbers; a file holds some. Whatever is compacted, the rows of what is read are those that were appended."""
    scored = {"old": {-1, -2}}
    live: dict[str, set[int]] = dict(scored)
    contents = dict(live)
    grown, rows, registered = Growth("t", "Delta"), 0, set[str]()
    for number, (what, count) in enumerate(steps):
        if what == "append":
            live[f"f{number}"] = contents[f"f{number}"] = set(range(rows, rows + count))
            grown.step(number, "WRITE", [file(f"f{number}")], [], new_rows=True)
            rows += count
        elif what == "compact":
            gone = list(live)[-1 - count :]
            live[f"c{number}"] = contents[f"c{number}"] = {row for path in gone for row in live.pop(path)}
            grown.step(number, "OPTIMIZE", [file(f"c{number}")], gone, new_rows=False)
        else:
            grown.keep()
            registered |= {file.path for file in grown.files}
    read = [row for one in grown.files for row in contents[one.path]]
    assert sorted(read) == list(range(rows))
    assert registered <= {one.path for one in grown.files}  # a run that broke off finds its files again


def test_rows_that_are_replaced_are_refused_unless_none_is_scored() -> None:
    grown = Growth("t", "Delta")
    grown.step(1, "WRITE", [file("a")], [], new_rows=True)
    grown.step(2, "MERGE", [file("b")], ["a"], new_rows=True)
    assert [one.path for one in grown.files] == ["b"]
    with raises("input.replaced-files", version=3):
        grown.step(3, "MERGE", [file("c")], ["b", "scored"], new_rows=True)
    grown.keep()
    with raises("input.replaced-files", version=4):
        grown.step(4, "WRITE", [file("c")], ["b"], new_rows=True)
    grown.step(5, "DELETE", [], ["b"], new_rows=False)
    assert [one.path for one in grown.files] == ["b"]
