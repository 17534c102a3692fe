"""Cases about tables of Delta, Iceberg and Lance: logs that come in by versions, and verdicts that are written into a table."""

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.golden.jobs import FINALIZE, RUN, novelty_job
from tests.golden.logs import shop_rows
from tests.golden.scene import Case, Command, Scene

ICEBERG = "iceberg://golden/rag.logs"


def _table(first: int, count: int = 5) -> pa.Table:
    rows = [{**row, "dt": f"2026-11-{1 + n // 5:02d}"} for n, row in enumerate(shop_rows(count, first), start=first)]
    return pa.Table.from_pylist(rows)


def _append_delta(scene: Scene, first: int) -> None:
    from deltalake import write_deltalake

    write_deltalake(str(scene.logs), _table(first), mode="append", partition_by=["dt"])


def _delta(scene: Scene) -> None:
    _append_delta(scene, 0)
    _append_delta(scene, 5)
    novelty_job(scene)
    novelty_job(scene, name="job-strict.yaml", verdict={"threshold": {"quantile": 0.6}})


def _more_delta(scene: Scene) -> None:
    """Rows are appended, and the table is compacted."""
    from deltalake import DeltaTable

    _append_delta(scene, 10)
    DeltaTable(str(scene.logs)).optimize.compact()


def _overwrite_delta(scene: Scene) -> None:
    """The table is overwritten."""
    from deltalake import write_deltalake

    write_deltalake(str(scene.logs), _table(20), mode="overwrite")


def _read_delta(scene: Scene) -> str:
    """The table of verdicts."""
    from deltalake import DeltaTable

    table = DeltaTable(str(scene.folder / "_verdicts"))
    pq.write_table(pa.table(table.to_pyarrow_table()), scene.folder / "verdicts.parquet")
    return f"version {table.version()}, partitioned by {table.metadata().partition_columns}"


def _catalog(scene: Scene) -> dict[str, Any]:
    return {"type": "sql", "uri": f"sqlite:///{scene.folder}/_catalog.db", "warehouse": f"file://{scene.folder}/_warehouse"}


def _iceberg(scene: Scene) -> None:
    from pyiceberg.catalog import load_catalog

    (scene.folder / "_warehouse").mkdir()
    catalog = load_catalog("golden", **_catalog(scene))
    catalog.create_namespace("rag")
    catalog.create_table("rag.logs", schema=_table(0).schema).append(_table(0))
    novelty_job(scene, input={"catalog": _catalog(scene)})


def _more_iceberg(scene: Scene) -> None:
    """Rows are appended."""
    from pyiceberg.catalog import load_catalog

    load_catalog("golden", **_catalog(scene)).load_table("rag.logs").append(_table(5))


def _read_iceberg(scene: Scene) -> str:
    """The table of verdicts."""
    from pyiceberg.catalog import load_catalog

    table = load_catalog("golden", **_catalog(scene)).load_table("rag.verdicts")
    pq.write_table(table.scan().to_arrow(), scene.folder / "verdicts.parquet")
    return f"{len(table.snapshots())} snapshots, partitioned by {[field.name for field in table.spec().fields]}"


def _lance(scene: Scene) -> None:
    import lance

    for first in (0, 5):
        mode = "append" if first else "create"
        lance.write_dataset(_table(first), str(scene.logs), mode=mode)
    novelty_job(scene, input={"version": 1})
    novelty_job(scene, name="job-latest.yaml")


def _deleted_lance(scene: Scene) -> None:
    """A row is deleted, and rows are appended."""
    import lance

    lance.dataset(str(scene.logs)).delete("row_id = 'shop-1'")
    lance.write_dataset(_table(10), str(scene.logs), mode="append")


CASES = (
    Case("delta", _delta, (
        RUN, "table {out} --table delta:{dir}/_verdicts --name audit", _more_delta, RUN,
        "table {out} --table delta:{dir}/_verdicts --name audit", "table {out} --table delta:{dir}/_verdicts --name audit",
        "finalize {out} --config {dir}/job-strict.yaml", "table {out} --table delta:{dir}/_verdicts --name audit", _read_delta,
        _overwrite_delta, Command(RUN, 1))),
    Case("iceberg", _iceberg, (
        f"run {ICEBERG} {{out}} --config {{job}}", _more_iceberg, f"run {ICEBERG} {{out}} --config {{job}}",
        "table {out} --table iceberg:golden/rag.verdicts --name audit --config {job}",
        "table {out} --table iceberg:golden/rag.verdicts --name audit --config {job}", _read_iceberg, FINALIZE)),
    Case("lance", _lance, (
        RUN, "run {logs} {out} --config {dir}/job-latest.yaml", _deleted_lance,
        "run {logs} {out} --config {dir}/job-latest.yaml",
        Command("table {out} --table lance:{dir}/_verdicts", 1))),
)  # fmt: skip
