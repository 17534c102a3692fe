"""Cases about tables: Delta, Iceberg and Lance as input, Delta and Iceberg as the place where verdicts go."""

from typing import Any

import pyarrow as pa

from tests.golden.jobs import FINALIZE, RUN, novelty_job
from tests.golden.logs import shop_rows, write_days
from tests.golden.scene import Case, Command, Scene
from tests.golden.tables import Rows, rows_text


def _rows(day: int) -> pa.Table:
    return pa.Table.from_pylist([{**row, "dt": f"2026-11-{day:02d}"} for row in shop_rows(4, 4 * day)])


def _append_delta(day: int) -> Any:
    def append(scene: Scene) -> None:
        from deltalake import write_deltalake

        write_deltalake(str(scene.folder / "_delta"), _rows(day), mode="append", partition_by=["dt"])

    return append


def _delta(scene: Scene) -> None:
    _append_delta(1)(scene)
    _append_delta(2)(scene)
    novelty_job(scene)
    novelty_job(scene, name="job-first.yaml", input={"version": 0})


def _append_lance(day: int) -> Any:
    def append(scene: Scene) -> None:
        import lance

        path = scene.folder / "_logs.lance"
        lance.write_dataset(_rows(day), str(path), mode="append" if path.exists() else "create")

    return append


def _lance(scene: Scene) -> None:
    _append_lance(1)(scene)
    novelty_job(scene)


def _catalog(scene: Scene) -> dict[str, str]:
    (scene.folder / "_warehouse").mkdir(exist_ok=True)
    places = {"uri": f"sqlite:///{scene.folder}/_catalog.db", "warehouse": f"file://{scene.folder}/_warehouse"}
    return {"type": "sql", **places}


def _append_iceberg(day: int) -> Any:
    def append(scene: Scene) -> None:
        from pyiceberg.catalog import load_catalog

        catalog = load_catalog("test", **_catalog(scene))
        catalog.create_namespace_if_not_exists("rag")
        catalog.create_table_if_not_exists("rag.logs", schema=_rows(day).schema).append(_rows(day))

    return append


def _iceberg(scene: Scene) -> None:
    _append_iceberg(1)(scene)
    novelty_job(scene, input={"catalog": _catalog(scene)})


def _targets(scene: Scene) -> None:
    write_days(scene.logs, 2, 3)
    novelty_job(scene, input={"catalog": _catalog(scene)})
    novelty_job(scene, name="job-other.yaml", input={"catalog": _catalog(scene)}, threshold={"quantile": 0.7})


def _read_delta(scene: Scene) -> str:
    """Rows of the Delta table"""
    from deltalake import DeltaTable

    table = DeltaTable(str(scene.folder / "_verdicts"))
    return f"version {table.version()}\n{_text(pa.table(table.to_pyarrow_table()), scene)}"


def _read_iceberg(scene: Scene) -> str:
    """Rows of the Iceberg table"""
    from pyiceberg.catalog import load_catalog

    return _text(load_catalog("test", **_catalog(scene)).load_table("audit.verdicts").scan().to_arrow(), scene)


def _text(table: pa.Table, scene: Scene) -> str:
    names = ["row_id", "verdict", "score", "threshold", "run_id", "flagged_sentences", "dt"]
    ours = [name for name in table.schema.names if name.startswith("ragassay_")]
    rows = Rows()
    rows.add(table.select([*names, *ours]))
    return f"columns {' '.join(table.schema.names)}\n{rows_text(rows, scene.masks.value)}"


DELTA = "run {dir}/_delta {out} --config {job}"
LANCE = "run {dir}/_logs.lance {out} --config {job}"
ICEBERG = "run iceberg://test/rag.logs {out} --config {job}"
TO_DELTA = "table {out} --to delta:{dir}/_verdicts --name audit --config {job}"
TO_ICEBERG = "table {out} --to iceberg:test/audit.verdicts --name audit --config {job}"

CASES = (
    Case("delta_input", _delta, ("run {dir}/_delta {dir}/first --config {dir}/job-first.yaml", DELTA, DELTA, _append_delta(3), DELTA)),
    Case("lance_input", _lance, (LANCE, _append_lance(2), LANCE)),
    Case("iceberg_input", _iceberg, (ICEBERG, _append_iceberg(2), ICEBERG, Command("run iceberg://test/rag.none {out} --config {job}", 1))),
    Case("table_targets", _targets, (
        RUN, TO_DELTA, TO_ICEBERG, _read_delta, _read_iceberg, TO_DELTA,
        FINALIZE.replace("{job}", "{dir}/job-other.yaml"), TO_DELTA, TO_ICEBERG, _read_delta, _read_iceberg,
    ), left_out=("out/raw.txt", "out/scored.txt", "out/stats.json")),
)  # fmt: skip
