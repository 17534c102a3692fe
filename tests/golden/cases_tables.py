"""Cases about Delta, Iceberg and Lance tables: versioned logs, and verdicts written to a table."""

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tests.golden.jobs import FINALIZE, RUN, write_novelty_job
from tests.golden.logs import make_shop_rows
from tests.golden.scene import Case, Command, Scene

ICEBERG = "iceberg://golden/rag.logs"


def _make_table(first: int, count: int = 5) -> pa.Table:
    rows = [{**row, "dt": f"2026-11-{1 + n // 5:02d}"} for n, row in enumerate(make_shop_rows(count, first), start=first)]
    return pa.Table.from_pylist(rows)


def _append_delta(scene: Scene, first: int) -> None:
    from deltalake import write_deltalake

    write_deltalake(str(scene.logs), _make_table(first), mode="append", partition_by=["dt"])


def _prepare_delta(scene: Scene) -> None:
    _append_delta(scene, 0)
    _append_delta(scene, 5)
    write_novelty_job(scene)
    write_novelty_job(scene, name="job-strict.yaml", verdict={"threshold": {"quantile": 0.6}})


def _append_and_compact_delta(scene: Scene) -> None:
    """Append rows and compact the table."""
    from deltalake import DeltaTable

    _append_delta(scene, 10)
    DeltaTable(str(scene.logs)).optimize.compact()


def _overwrite_delta(scene: Scene) -> None:
    """Overwrite the table."""
    from deltalake import write_deltalake

    write_deltalake(str(scene.logs), _make_table(20), mode="overwrite")


def _read_delta(scene: Scene) -> str:
    """Read the table of verdicts."""
    from deltalake import DeltaTable

    table = DeltaTable(str(scene.folder / "_verdicts"))
    pq.write_table(pa.table(table.to_pyarrow_table()), scene.folder / "verdicts.parquet")
    return f"version {table.version()}, partitioned by {table.metadata().partition_columns}"


def _build_catalog(scene: Scene) -> dict[str, Any]:
    return {"type": "sql", "uri": f"sqlite:///{scene.folder}/_catalog.db", "warehouse": f"file://{scene.folder}/_warehouse"}


def _prepare_iceberg(scene: Scene) -> None:
    from pyiceberg.catalog import load_catalog

    (scene.folder / "_warehouse").mkdir()
    catalog = load_catalog("golden", **_build_catalog(scene))
    catalog.create_namespace("rag")
    catalog.create_table("rag.logs", schema=_make_table(0).schema).append(_make_table(0))
    write_novelty_job(scene, input={"catalog": _build_catalog(scene)})


def _append_iceberg(scene: Scene) -> None:
    """Append rows."""
    from pyiceberg.catalog import load_catalog

    load_catalog("golden", **_build_catalog(scene)).load_table("rag.logs").append(_make_table(5))


def _read_iceberg(scene: Scene) -> str:
    """Read the table of verdicts."""
    from pyiceberg.catalog import load_catalog

    table = load_catalog("golden", **_build_catalog(scene)).load_table("rag.verdicts")
    pq.write_table(table.scan().to_arrow(), scene.folder / "verdicts.parquet")
    return f"{len(table.snapshots())} snapshots, partitioned by {[field.name for field in table.spec().fields]}"


def _prepare_lance(scene: Scene) -> None:
    import lance

    for first in (0, 5):
        mode = "append" if first else "create"
        lance.write_dataset(_make_table(first), str(scene.logs), mode=mode)
    write_novelty_job(scene, input={"version": 1})
    write_novelty_job(scene, name="job-latest.yaml")


def _change_lance(scene: Scene) -> None:
    """Delete a row and append rows."""
    import lance

    lance.dataset(str(scene.logs)).delete("row_id = 'shop-1'")
    lance.write_dataset(_make_table(10), str(scene.logs), mode="append")


CASES = (
    Case("delta", _prepare_delta, (
        RUN, "table {out} --table delta:{dir}/_verdicts --name audit", _append_and_compact_delta, RUN,
        "table {out} --table delta:{dir}/_verdicts --name audit", "table {out} --table delta:{dir}/_verdicts --name audit",
        "finalize {out} --config {dir}/job-strict.yaml", "table {out} --table delta:{dir}/_verdicts --name audit", _read_delta,
        _overwrite_delta, Command(RUN, 1))),
    Case("iceberg", _prepare_iceberg, (
        f"run {ICEBERG} {{out}} --config {{job}}", _append_iceberg, f"run {ICEBERG} {{out}} --config {{job}}",
        "table {out} --table iceberg:golden/rag.verdicts --name audit --config {job}",
        "table {out} --table iceberg:golden/rag.verdicts --name audit --config {job}", _read_iceberg, FINALIZE)),
    Case("lance", _prepare_lance, (
        RUN, "run {logs} {out} --config {dir}/job-latest.yaml", _change_lance,
        "run {logs} {out} --config {dir}/job-latest.yaml",
        Command("table {out} --table lance:{dir}/_verdicts", 1))),
)  # fmt: skip
