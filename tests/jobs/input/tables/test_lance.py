"""Lance datasets: a version's rows, and those that came in since another."""

from pathlib import Path

import lance

from ragassay.jobs.input.formats import open_log
from tests.jobs.input.tables.conftest import ids, load, ran, table
from tests.raises import raises


def append(path: Path, first: int) -> None:
    lance.write_dataset(table(first), str(path), mode="append" if path.exists() else "create")


def test_versions_and_what_came_in_between(tmp_path: Path) -> None:
    path = tmp_path / "logs.lance"
    for first in (0, 6, 12):
        append(path, first)
    assert ids(load(path, version=2)) == list(range(12)) and ids(load(path, version=2, since=1)) == list(range(6, 12))
    begun = load(path, version=1)
    later = load(path, [ran(begun)])
    assert ids(later) == list(range(6, 18)) and later.source is not None and later.source.since == 1
    assert load(path, [ran(begun), ran(later)]).files == []
    with open_log(later.fs, later.files[0]) as log:
        assert [batch.num_rows for batch in log.batches(0, 4, ["row_id", "none"])] == [4, 2]
    with raises("input.unreadable-lance", at=" at version 9 (cleaned up?)"):
        load(path, version=9)


def test_deleted_and_compacted_rows(tmp_path: Path) -> None:
    path = tmp_path / "logs.lance"
    append(path, 0)
    scored = ran(load(path))
    append(path, 6)
    lance.dataset(str(path)).delete("row_id in ('r1', 'r7')")
    assert ids(load(path)) == [0, *range(2, 7), *range(8, 12)]
    broken = load(path, [scored])
    assert ids(broken) == [6, *range(8, 12)]
    lance.dataset(str(path)).delete("row_id = 'r8'")
    lance.dataset(str(path)).optimize.compact_files()
    assert ids(load(path, [scored])) == [6, *range(9, 12)]
    assert ids(load(path, [scored, ran(broken, ended=False)])) == [6, *range(8, 12)]  # with the rows that it had


def test_changed_rows_are_refused_unless_none_is_scored(tmp_path: Path) -> None:
    path = tmp_path / "logs.lance"
    append(path, 0)
    scored = ran(load(path))
    append(path, 6)
    rows = table(10, 4, tenant="new")
    lance.dataset(str(path)).merge_insert("row_id").when_matched_update_all().when_not_matched_insert_all().execute(rows)
    assert ids(load(path, [scored])) == list(range(6, 14))
    lance.dataset(str(path)).update({"tenant": "'x'"}, where="row_id = 'r0'")
    with raises("input.replaced-files", version=4):
        load(path, [scored])
    lance.write_dataset(table(0), str(path), mode="overwrite")
    with raises("input.replaced-files", version=5):
        load(path, [scored], since=4)
