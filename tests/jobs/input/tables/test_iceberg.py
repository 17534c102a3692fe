"""Iceberg tables in a catalog on sqlite: a snapshot's rows, and those that came in since another."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.table import Table
from pyiceberg.transforms import DayTransform
from pyiceberg.typedef import Record
from pyiceberg.types import NestedField, StringType

from ragassay.jobs.input import Logs, find_logs
from ragassay.jobs.input.tables.iceberg import Scan
from ragassay.schemas.manifest import Run
from tests.jobs.input.tables.conftest import ids, load, ran, rows_of, table
from tests.raises import raises

URI = "iceberg://test/rag.logs"
Find = Callable[..., Logs]


@pytest.fixture
def properties(tmp_path: Path) -> dict[str, str]:
    return {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"file://{tmp_path}/warehouse"}


@pytest.fixture
def catalog(properties: dict[str, str]) -> Catalog:
    made = load_catalog("test", **properties)
    made.create_namespace("rag")
    return made


@pytest.fixture
def find(properties: dict[str, str]) -> Find:
    def found(runs: list[Run] | None = None, **source: Any) -> Logs:
        return load(URI, runs, catalog=properties, **source)

    return found


@pytest.fixture
def logs(catalog: Catalog) -> Table:
    return catalog.create_table("rag.logs", schema=table(0).schema)


def current(logs: Table) -> int:
    snapshot = logs.current_snapshot()
    assert snapshot is not None
    return snapshot.snapshot_id


def test_snapshots_and_what_came_in_between(logs: Table, find: Find) -> None:
    snapshots = []
    for first in (0, 6, 12):
        logs.append(table(first))
        snapshots.append(current(logs))
    assert ids(find(version=snapshots[1])) == list(range(12))
    assert ids(find(version=snapshots[1], since=snapshots[0])) == list(range(6, 12))
    begun = find(version=snapshots[0])
    later = find([ran(begun)])
    assert ids(later) == list(range(6, 18)) and later.source is not None and later.source.since == snapshots[0]
    assert find([ran(begun), ran(later)]).files == []
    assert ids(load(logs.metadata_location)) == list(range(18))
    with raises("input.no-snapshot", snapshot=7):
        find(version=7)
    with raises("input.snapshot-gone", since=7):
        find(since=7)


def test_partitions_by_values_and_by_transforms(catalog: Catalog, find: Find) -> None:
    import datetime as dt

    days = pa.array([dt.datetime(2026, 11, 1 + n // 3, 5) for n in range(6)], pa.timestamp("us"))
    rows = table(0).append_column("at", days).append_column("team", pa.array(["a/b", None] * 3))
    logs = catalog.create_table("rag.logs", schema=rows.schema)
    with logs.update_spec() as spec:
        spec.add_field("at", DayTransform(), "day")
        spec.add_identity("team")
    logs.append(rows)
    found = rows_of(find())
    assert [row["day"] for row in found] == ["2026-11-01"] * 3 + ["2026-11-02"] * 3
    assert [row["team"] for row in found] == ["a/b", "__HIVE_DEFAULT_PARTITION__"] * 3 and found[0]["at"] == days[0].as_py()


def test_another_partitioning_than_before_loses_no_value(logs: Table, find: Find) -> None:
    logs.append(table(0))
    with logs.update_spec() as spec:
        spec.add_identity("tenant")
    logs.append(table(6))
    whole = find()
    assert ids(whole) == list(range(12)) and {row["tenant"] for row in rows_of(whole)} == {f"tenant-{n}" for n in range(3)}
    assert whole.source is not None and whole.source.partitioned_by == []


def test_columns_renamed_added_and_dropped(logs: Table, find: Find) -> None:
    logs.append(table(0))
    with logs.update_schema() as update:
        update.rename_column("tenant", "customer")
        update.add_column("region", StringType())
    later = table(6, region="eu").rename_columns(
        ["customer" if n == "tenant" else n for n in table(0).column_names] + ["region"]
    )
    logs.append(later)
    rows = rows_of(find())
    assert [row["customer"] for row in rows] == [row["tenant"] for row in table(0, 12).to_pylist()]
    assert [row["region"] for row in rows] == [None] * 6 + ["eu"] * 6
    with logs.update_schema() as update:
        update.delete_column("customer")
        update.add_column("customer", StringType())  # another one
    assert {row["customer"] for row in rows_of(find())} == {None}


def test_fields_renamed_inside_are_read_by_the_library(catalog: Catalog, find: Find) -> None:
    rows = table(0).append_column("meta", pa.array([{"lang": "en"}] * 6))
    logs = catalog.create_table("rag.logs", schema=rows.schema)
    logs.append(rows)
    with logs.update_schema() as update:
        update.rename_column("meta.lang", "language")
    found = find()
    assert isinstance(found.files[0].view, Scan) and rows_of(found)[0]["meta"] == {"language": "en"}


def test_what_brings_no_rows_in_and_what_is_refused(logs: Table, find: Find) -> None:
    logs.append(table(0))
    first = ran(find())
    logs.append(table(6))
    second = ran(find([first]))
    logs.delete("row_id in ('r6', 'r7', 'r8', 'r9', 'r10', 'r11')")  # a whole file: a snapshot of deletes alone
    assert find([first, second]).files == [] and ids(find([first])) == []
    logs.delete("row_id = 'r1'")  # a part of a file, which is written anew
    with raises("input.replaced-files"):
        find([first, second])
    assert find([first, second], since=current(logs)).files == []
    assert ids(find()) == [0, *range(2, 6)]


def test_deletes_by_position_are_applied_and_by_equality_refused(logs: Table, find: Find, tmp_path: Path) -> None:
    logs.append(table(0))
    before = find()
    (data,) = [task.file for task in logs.scan().plan_files()]
    add_deletes(logs, tmp_path / "deletes.parquet", data, [1, 4])
    after = find()
    assert ids(after) == [0, 2, 3, 5] and isinstance(after.files[0].view, Scan)
    assert ids(find([ran(before, ended=False)])) == list(range(6))  # a run that broke off goes on with the rows it had
    add_deletes(logs, tmp_path / "equality.parquet", data, None)
    with raises("input.equality-deletes"):
        find()


def add_deletes(logs: Table, path: Path, data: DataFile, positions: list[int] | None) -> None:
    """A file of deletes, as other engines write them: by position, or by values of row_id."""
    if positions is None:
        deletes = pa.table({"row_id": pa.array(["r0"])})
    else:
        ids_of = [(b"2147483546", pa.string()), (b"2147483545", pa.int64())]
        fields = [
            pa.field(n, k, False, {b"PARQUET:field_id": i}) for n, (i, k) in zip(("file_path", "pos"), ids_of, strict=True)
        ]
        deletes = pa.table([[data.file_path] * len(positions), positions], schema=pa.schema(fields))
    pq.write_table(deletes, path)
    content = DataFileContent.EQUALITY_DELETES if positions is None else DataFileContent.POSITION_DELETES
    file = DataFile.from_args(
        content=content, file_path=f"file://{path}", file_format=FileFormat.PARQUET, partition=Record(),
        record_count=deletes.num_rows, file_size_in_bytes=path.stat().st_size, column_sizes={}, value_counts={},
        null_value_counts={}, nan_value_counts={}, lower_bounds={}, upper_bounds={}, key_metadata=None, split_offsets=None,
        equality_ids=[5] if positions is None else None, sort_order_id=None, spec_id=logs.spec().spec_id,
    )  # fmt: skip
    commit_deletes(logs, file)


def commit_deletes(logs: Table, file: DataFile) -> None:
    """A snapshot with a manifest of deletes more, of the library's own pieces: it reads such, and writes none itself."""
    import uuid

    from pyiceberg.manifest import (
        ManifestContent,
        ManifestEntry,
        ManifestEntryStatus,
        ManifestWriterV2,
        write_manifest_list,
    )  # fmt: skip
    from pyiceberg.table.snapshots import Operation, Snapshot, Summary
    from pyiceberg.table.update import AddSnapshotUpdate, SetSnapshotRefUpdate

    class Deletes(ManifestWriterV2):
        def content(self) -> ManifestContent:
            return ManifestContent.DELETES

        @property
        def _meta(self) -> dict[str, str]:
            return {**super()._meta, "content": "deletes"}

    last = logs.current_snapshot()
    assert last is not None and last.sequence_number is not None
    number, sequence = uuid.uuid4().int >> 66, last.sequence_number + 1
    place = f"{logs.location()}/metadata/{uuid.uuid4()}"
    with Deletes(logs.spec(), logs.schema(), logs.io.new_output(f"{place}-m0.avro"), number, "null") as writer:
        entry = ManifestEntry.from_args(status=ManifestEntryStatus.ADDED, snapshot_id=number, data_file=file)
        writer.add_entry(entry)
    manifests = [*last.manifests(logs.io), writer.to_manifest_file()]
    with write_manifest_list(2, logs.io.new_output(f"{place}.avro"), number, last.snapshot_id, sequence, "null") as listed:
        listed.add_manifests(manifests)
    snapshot = Snapshot(
        snapshot_id=number, parent_snapshot_id=last.snapshot_id, sequence_number=sequence, timestamp_ms=last.timestamp_ms + 1,
        manifest_list=f"{place}.avro", summary=Summary(Operation.DELETE), schema_id=logs.schema().schema_id,
    )  # fmt: skip
    branch = SetSnapshotRefUpdate(
        snapshot_id=number,
        ref_name="main",
        type="branch",
        max_ref_age_ms=None,
        max_snapshot_age_ms=None,
        min_snapshots_to_keep=None,
    )
    with logs.transaction() as transaction:
        transaction._apply((AddSnapshotUpdate(snapshot=snapshot), branch))


def test_a_table_without_snapshots_and_names_that_mean_none(logs: Table, find: Find, properties: dict[str, str]) -> None:
    empty = find()
    assert empty.files == [] and empty.source is not None and empty.source.version is None
    for uri, code in (
        ("iceberg://test", "input.no-iceberg-name"),
        ("iceberg://test/rag.none", "input.unreadable-iceberg"),
        (str(logs.location()) + "/metadata/none.metadata.json", "input.unreadable-iceberg"),
    ):
        with raises(code):
            load(uri, catalog=properties)
    with raises("input.no-catalog", catalog="other"):
        load("iceberg://other/rag.logs", catalog={"type": "sql"})
    logs.append(table(0))
    with raises("input.holds-table"):
        find_logs(str(logs.location()).removeprefix("file://"))


def test_required_fields_and_large_types(catalog: Catalog, find: Find) -> None:
    from pyiceberg.schema import Schema

    names = table(0).column_names
    schema = Schema(
        *(NestedField(n, name, StringType(), required=False) for n, name in enumerate(names, 1) if name != "context")
    )
    logs = catalog.create_table("rag.logs", schema=schema)
    with logs.update_schema() as update:
        update.add_column("context", StringType())
    logs.append(table(0).drop(["context"]).append_column("context", pa.array(["One passage."] * 6)))
    assert {tuple(row["context"]) for row in rows_of(find())} == {("One passage.",)}
