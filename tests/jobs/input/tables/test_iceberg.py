"""Iceberg tables in a SQLite catalog: rows of a snapshot, and rows added since another snapshot."""

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
from ragassay.jobs.input.tables.iceberg import IcebergScan
from ragassay.schemas.manifest import Run
from tests.jobs.input.tables.conftest import load_table, make_run, make_table, read_ids, read_rows
from tests.raises import raises

URI = "iceberg://test/rag.logs"
Find = Callable[..., Logs]


@pytest.fixture
def properties(tmp_path: Path) -> dict[str, str]:
    return {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"file://{tmp_path}/warehouse"}


@pytest.fixture
def catalog(properties: dict[str, str]) -> Catalog:
    created = load_catalog("test", **properties)
    created.create_namespace("rag")
    return created


@pytest.fixture
def find(properties: dict[str, str]) -> Find:
    def find_table(runs: list[Run] | None = None, **source: Any) -> Logs:
        return load_table(URI, runs, catalog=properties, **source)

    return find_table


@pytest.fixture
def logs(catalog: Catalog) -> Table:
    return catalog.create_table("rag.logs", schema=make_table(0).schema)


def current_snapshot_id(logs: Table) -> int:
    snapshot = logs.current_snapshot()
    assert snapshot is not None
    return snapshot.snapshot_id


def test_a_snapshot_is_read_whole_or_since_another(logs: Table, find: Find) -> None:
    snapshots = []
    for first in (0, 6, 12):
        logs.append(make_table(first))
        snapshots.append(current_snapshot_id(logs))
    assert read_ids(find(version=snapshots[1])) == list(range(12))
    assert read_ids(find(version=snapshots[1], since=snapshots[0])) == list(range(6, 12))
    initial = find(version=snapshots[0])
    later = find([make_run(initial)])
    assert read_ids(later) == list(range(6, 18)) and later.source is not None and later.source.since == snapshots[0]
    assert find([make_run(initial), make_run(later)]).files == []
    assert read_ids(load_table(logs.metadata_location)) == list(range(18))
    with raises("input.no-snapshot", snapshot=7):
        find(version=7)
    with raises("input.snapshot-gone", since=7):
        find(since=7)


def test_partitions_by_identity_and_by_transform_are_read(catalog: Catalog, find: Find) -> None:
    import datetime as dt

    days = pa.array([dt.datetime(2026, 11, 1 + n // 3, 5) for n in range(6)], pa.timestamp("us"))
    rows = make_table(0).append_column("at", days).append_column("team", pa.array(["a/b", None] * 3))
    logs = catalog.create_table("rag.logs", schema=rows.schema)
    with logs.update_spec() as spec:
        spec.add_field("at", DayTransform(), "day")
        spec.add_identity("team")
    logs.append(rows)
    rows_read = read_rows(find())
    assert [row["day"] for row in rows_read] == ["2026-11-01"] * 3 + ["2026-11-02"] * 3
    assert [row["team"] for row in rows_read] == ["a/b", "__HIVE_DEFAULT_PARTITION__"] * 3
    assert rows_read[0]["at"] == days[0].as_py()


def test_a_changed_partitioning_keeps_all_values(logs: Table, find: Find) -> None:
    logs.append(make_table(0))
    with logs.update_spec() as spec:
        spec.add_identity("tenant")
    logs.append(make_table(6))
    whole = find()
    assert read_ids(whole) == list(range(12)) and {row["tenant"] for row in read_rows(whole)} == {
        f"tenant-{n}" for n in range(3)
    }
    assert whole.source is not None and whole.source.partitioned_by == []


def test_renamed_added_and_dropped_columns_are_read(logs: Table, find: Find) -> None:
    logs.append(make_table(0))
    with logs.update_schema() as update:
        update.rename_column("tenant", "customer")
        update.add_column("region", StringType())
    later = make_table(6, region="eu").rename_columns(
        ["customer" if n == "tenant" else n for n in make_table(0).column_names] + ["region"]
    )
    logs.append(later)
    rows = read_rows(find())
    assert [row["customer"] for row in rows] == [row["tenant"] for row in make_table(0, 12).to_pylist()]
    assert [row["region"] for row in rows] == [None] * 6 + ["eu"] * 6
    with logs.update_schema() as update:
        update.delete_column("customer")
        update.add_column("customer", StringType())  # a new column with the old name
    assert {row["customer"] for row in read_rows(find())} == {None}


def test_renamed_nested_fields_are_read_by_the_library(catalog: Catalog, find: Find) -> None:
    rows = make_table(0).append_column("meta", pa.array([{"lang": "en"}] * 6))
    logs = catalog.create_table("rag.logs", schema=rows.schema)
    logs.append(rows)
    with logs.update_schema() as update:
        update.rename_column("meta.lang", "language")
    found_logs = find()
    assert isinstance(found_logs.files[0].view, IcebergScan) and read_rows(found_logs)[0]["meta"] == {"language": "en"}


def test_deletes_add_no_rows_and_rewrites_are_refused(logs: Table, find: Find) -> None:
    logs.append(make_table(0))
    first = make_run(find())
    logs.append(make_table(6))
    second = make_run(find([first]))
    logs.delete("row_id in ('r6', 'r7', 'r8', 'r9', 'r10', 'r11')")  # a whole file: the snapshot contains only deletes
    assert find([first, second]).files == [] and read_ids(find([first])) == []
    logs.delete("row_id = 'r1'")  # part of a file, which is rewritten
    with raises("input.replaced-files"):
        find([first, second])
    assert find([first, second], since=current_snapshot_id(logs)).files == []
    assert read_ids(find()) == [0, *range(2, 6)]


def test_position_deletes_are_applied_and_equality_deletes_refused(logs: Table, find: Find, tmp_path: Path) -> None:
    logs.append(make_table(0))
    before = find()
    (data,) = [task.file for task in logs.scan().plan_files()]
    add_deletes(logs, tmp_path / "deletes.parquet", data, [1, 4])
    after = find()
    assert read_ids(after) == [0, 2, 3, 5] and isinstance(after.files[0].view, IcebergScan)
    assert read_ids(find([make_run(before, ended=False)])) == list(range(6))  # an interrupted run resumes with its rows
    add_deletes(logs, tmp_path / "equality.parquet", data, None)
    with raises("input.equality-deletes"):
        find()


def add_deletes(logs: Table, path: Path, data: DataFile, positions: list[int] | None) -> None:
    """Add a file of deletes, as other engines write them: by position, or by values of row_id."""
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
    """Commit a snapshot with a manifest of deletes, which the library can read but not write."""
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
    prefix = f"{logs.location()}/metadata/{uuid.uuid4()}"
    with Deletes(logs.spec(), logs.schema(), logs.io.new_output(f"{prefix}-m0.avro"), number, "null") as writer:
        entry = ManifestEntry.from_args(status=ManifestEntryStatus.ADDED, snapshot_id=number, data_file=file)
        writer.add_entry(entry)
    manifests = [*last.manifests(logs.io), writer.to_manifest_file()]
    with write_manifest_list(2, logs.io.new_output(f"{prefix}.avro"), number, last.snapshot_id, sequence, "null") as listed:
        listed.add_manifests(manifests)
    snapshot = Snapshot(
        snapshot_id=number, parent_snapshot_id=last.snapshot_id, sequence_number=sequence, timestamp_ms=last.timestamp_ms + 1,
        manifest_list=f"{prefix}.avro", summary=Summary(Operation.DELETE), schema_id=logs.schema().schema_id,
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


def test_a_table_without_snapshots_is_empty_and_unknown_tables_are_refused(
    logs: Table, find: Find, properties: dict[str, str]
) -> None:
    empty = find()
    assert empty.files == [] and empty.source is not None and empty.source.version is None
    for uri, code in (
        ("iceberg://test", "input.no-iceberg-name"),
        ("iceberg://test/rag.none", "input.unreadable-iceberg"),
        (str(logs.location()) + "/metadata/none.metadata.json", "input.unreadable-iceberg"),
    ):
        with raises(code):
            load_table(uri, catalog=properties)
    with raises("input.no-catalog", catalog="other"):
        load_table("iceberg://other/rag.logs", catalog={"type": "sql"})
    logs.append(make_table(0))
    with raises("input.holds-table"):
        find_logs(str(logs.location()).removeprefix("file://"))


def test_optional_fields_and_text_contexts_are_read(catalog: Catalog, find: Find) -> None:
    from pyiceberg.schema import Schema

    names = make_table(0).column_names
    schema = Schema(
        *(NestedField(n, name, StringType(), required=False) for n, name in enumerate(names, 1) if name != "context")
    )
    logs = catalog.create_table("rag.logs", schema=schema)
    with logs.update_schema() as update:
        update.add_column("context", StringType())
    logs.append(make_table(0).drop(["context"]).append_column("context", pa.array(["One passage."] * 6)))
    assert {tuple(row["context"]) for row in read_rows(find())} == {("One passage.",)}
