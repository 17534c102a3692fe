"""Tables end to end: a thousand rows and more, in two increments, written by the formats' own libraries; counted by row_id."""

import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ragassay.jobs.storage.folder import open_folder
from tests.conftest import example_rows, free_port
from tests.jobs.conftest import here, manifest, ragassay, read_rows, start, wait_for, write_job
from tests.jobs.integrations.lineage.test_events import Server, server  # noqa: F401
from tests.raises import fails
from tests.soak.results import Result, record

pytestmark = [pytest.mark.soak, pytest.mark.usefixtures("one_ray")]

NOVELTY = {"name": "novelty", "kind": "novelty"}
HALF = 600
DAYS = ("2026-11-01", "2026-11-02", None, "north/south")


def rows(first: int, count: int = HALF) -> list[dict[str, Any]]:
    found = example_rows(count, first)
    for number, row in enumerate(found, start=first):
        row |= {
            "row_id": f"r{number}",
            "day": DAYS[number % len(DAYS)],
            "n": number,
            "meta": {"lang": "en", "rank": number % 7},
        }
    return found


def arrow(first: int, count: int = HALF) -> pa.Table:
    return pa.Table.from_pylist(rows(first, count))


def job(tmp_path: Path, **settings: Any) -> Path:
    return write_job(
        tmp_path / "job.yaml",
        settings,
        members={"slms": [], "detectors": [NOVELTY]},
        verdict={"threshold": {"quantile": 0.2}},
    )


def run(source: Path | str, output: Path, config: Path) -> str:
    done = here("run", source, output, "--config", config)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def count(output: Path, wanted: set[str]) -> tuple[int, int]:
    """Rows lost, and rows twice."""
    ids = Counter(row["row_id"] for row in read_rows(output))
    assert set(ids) <= wanted
    return len(wanted - set(ids)), sum(number - 1 for number in ids.values())


def ids(first: int, until: int) -> set[str]:
    return {f"r{number}" for number in range(first, until)}


def settled(name: str, output: Path, wanted: set[str], note: str) -> None:
    lost, twice = count(output, wanted)
    record(Result("inputs", name, len(wanted), len(wanted) - lost, lost, twice, note))
    assert (lost, twice) == (0, 0)


def test_delta(tmp_path: Path) -> None:
    from deltalake import DeltaTable, write_deltalake

    table, output, config = str(tmp_path / "delta"), tmp_path / "out", job(tmp_path)
    write_deltalake(table, arrow(0), partition_by=["day"])
    assert "600 in = 600 scored" in run(table, output, config)
    write_deltalake(table, arrow(HALF), mode="append")
    extra = arrow(2 * HALF, 20)
    write_deltalake(table, extra.append_column("region", pa.array(["eu"] * 20)), mode="append", schema_mode="merge")
    DeltaTable(table).optimize.compact()
    DeltaTable(table).delete("row_id = 'r5'")  # scored: it stays
    DeltaTable(table).update(predicate="row_id = 'r7'", updates={"tenant": "'other'"})
    said = run(table, output, config)
    assert "620 in = 620 scored" in said and "since version 0" in said
    assert "0 in = 0 scored" in run(table, output, config)
    places = {row["row_id"]: row["day"] for row in read_rows(output)}
    assert places["r2"] is None and places["r3"] == "north/south"
    assert manifest(output)["runs"][1]["source"]["since"] == 0
    settled(
        "Delta", output, ids(0, 1220), "partitioned; compacted, deleted from and updated between; a column added; three runs"
    )


def test_delta_with_a_change_feed_and_vacuumed(tmp_path: Path) -> None:
    from deltalake import DeltaTable, write_deltalake

    table, output, config = str(tmp_path / "delta"), tmp_path / "out", job(tmp_path)
    write_deltalake(table, arrow(0), configuration={"delta.enableChangeDataFeed": "true"})
    run(table, output, config)
    changed = arrow(HALF - 100)  # 100 rows known already, 500 new ones
    merge = DeltaTable(table).merge(changed, "t.row_id = s.row_id", source_alias="s", target_alias="t")
    merge.when_matched_update_all().when_not_matched_insert_all().execute()
    DeltaTable(table).vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
    assert "500 in = 500 scored" in run(table, output, config)
    gone = here("run", table, tmp_path / "other", "--config", job(tmp_path, input={"version": 0}))
    fails(gone, "input.vacuumed")
    settled("Delta, MERGE with a change data feed, vacuumed", output, ids(0, 2 * HALF - 100), "500 rows inserted, 100 updated")


def test_iceberg(tmp_path: Path) -> None:
    from pyiceberg.catalog import load_catalog
    from pyiceberg.types import StringType

    properties = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"file://{tmp_path}/warehouse"}
    catalog = load_catalog("soak", **properties)
    catalog.create_namespace("rag")
    table = catalog.create_table("rag.logs", schema=arrow(0).schema)
    with table.update_spec() as spec:
        spec.add_identity("day")
    table.append(arrow(0))
    output, config = tmp_path / "out", job(tmp_path, input={"catalog": properties})
    assert "600 in = 600 scored" in run("iceberg://soak/rag.logs", output, config)
    with table.update_schema() as update:
        update.rename_column("tenant", "customer")
        update.add_column("region", StringType())
    renamed = arrow(HALF).rename_columns(["customer" if name == "tenant" else name for name in arrow(0, 4).column_names])
    table.append(renamed.append_column("region", pa.array(["eu"] * HALF)))
    said = run("iceberg://soak/rag.logs", output, config)
    assert "600 in = 600 scored" in said and "what came in since snapshot" in said
    assert "0 in = 0 scored" in run("iceberg://soak/rag.logs", output, config)
    whole = tmp_path / "whole"
    run(table.metadata_location, whole, config)
    assert {row["customer"] for row in read_rows(whole)} == {"tenant-0", "tenant-1", "tenant-2"}
    assert count(whole, ids(0, 2 * HALF)) == (0, 0)
    settled("Iceberg", output, ids(0, 2 * HALF), "partitioned; a column renamed and one added between; three runs")


def test_lance(tmp_path: Path) -> None:
    import lance

    table, output, config = str(tmp_path / "logs.lance"), tmp_path / "out", job(tmp_path)
    lance.write_dataset(arrow(0), table, max_rows_per_file=150)
    run(table, output, config)
    lance.write_dataset(arrow(HALF), table, mode="append", max_rows_per_file=150)
    lance.dataset(table).delete("row_id = 'r700'")
    lance.dataset(table).optimize.compact_files()
    assert "599 in = 599 scored" in run(table, output, config)
    assert "0 in = 0 scored" in run(table, output, config)
    settled("Lance", output, ids(0, 2 * HALF) - {"r700"}, "a row deleted and fragments compacted between; three runs")


def test_hugging_face(tmp_path: Path) -> None:
    from datasets import Dataset, DatasetDict, load_from_disk

    folder, output, config = tmp_path / "data", tmp_path / "out", job(tmp_path)
    parts = {"train": Dataset.from_list(rows(0)), "test": Dataset.from_list(rows(HALF, 100))}
    DatasetDict(parts).save_to_disk(folder / "first", num_shards={"train": 3, "test": 1})
    loaded = load_from_disk(folder / "first")["train"]
    loaded.map(lambda row: {"twice": row["n"] * 2}, load_from_cache_file=False)  # leaves a cache beside the data
    assert list((folder / "first" / "train").glob("cache-*.arrow"))
    run(folder, output, config)
    Dataset.from_list(rows(HALF + 100)).shuffle(seed=1).save_to_disk(folder / "second")
    said = here("run", folder, output, "--config", config)
    assert said.returncode == 1 and "partition" in said.stderr  # one has splits, the other none
    assert "600 in = 600 scored" in run(folder / "second", output, config)
    assert "600 skipped" in run(folder / "second", output, config)
    settled(
        "Hugging Face dataset", output, ids(0, 2 * HALF + 100), "splits in shards, with a cache beside; shuffled; three runs"
    )


def test_json_lines(tmp_path: Path) -> None:
    import gzip
    import json

    folder, output, config = tmp_path / "logs", tmp_path / "out", job(tmp_path)
    for day in (1, 2):
        (folder / f"dt=2026-11-0{day}").mkdir(parents=True)
    lines = [json.dumps({**row, "n": str(row["n"]) if row["n"] > 400 else row["n"]}) for row in rows(0)]
    lines[10:10] = ["{broken", "", '["no object"]']
    (folder / "dt=2026-11-01" / "a.jsonl").write_text("\n".join(lines))
    said = run(folder, output, config)
    assert "602 in = 600 scored + 2 failed" in said and "2 unreadable" in said
    packed = gzip.compress("\n".join(map(json.dumps, rows(HALF))).encode())
    (folder / "dt=2026-11-02" / "b.ndjson.gz").write_bytes(packed)
    assert "1,202 in = 600 scored + 0 failed + 602 skipped" in run(folder, output, config)
    bad = {"dt=2026-11-01/a.jsonl#10", "dt=2026-11-01/a.jsonl#11"}
    assert {row["row_id"]: row["error"] for row in read_rows(output) if row["status"] == "unreadable"}.keys() == bad
    settled(
        "JSON Lines",
        output,
        ids(0, 2 * HALF) | bad,
        "one packed; a column that changes its type; two lines that are no objects",
    )


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Options of a bucket `lake` on an S3 server of its own."""
    import boto3

    port = free_port()
    endpoint = f"http://127.0.0.1:{port}"
    for name, value in {"ACCESS_KEY_ID": "test", "SECRET_ACCESS_KEY": "test", "EC2_METADATA_DISABLED": "true"}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    moto = subprocess.Popen([Path(sys.executable).with_name("moto_server"), "-p", str(port)], stderr=subprocess.DEVNULL)
    try:
        client = boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1")
        for _ in range(100):
            try:
                client.create_bucket(Bucket="lake")
                break
            except Exception:
                time.sleep(0.2)
        yield f"?endpoint_override={endpoint}&region=us-east-1"
    finally:
        moto.terminate()
        moto.wait()


def test_delta_on_an_object_store(tmp_path: Path, bucket: str) -> None:
    from deltalake import write_deltalake

    from ragassay.jobs.input.tables.access import storage_options

    uri = f"s3://lake/logs{bucket}"
    options = storage_options(open_folder(uri))
    output = f"s3://lake/out{bucket}"
    config = job(tmp_path)
    for first, said in ((0, "600 in"), (HALF, "600 in")):
        write_deltalake("s3://lake/logs", arrow(first), partition_by=["day"], mode="append", storage_options=options)
        done = ragassay("run", uri, output, "--config", config)  # keys are in the environment of a process of its own
        assert done.returncode == 0 and said in done.stdout, done.stdout + done.stderr
    for _ in range(2):
        done = ragassay("table", output, "--table", f"delta:s3://lake/verdicts{bucket}")
        assert done.returncode == 0, done.stderr
    from deltalake import DeltaTable

    verdicts = DeltaTable("s3://lake/verdicts", storage_options=options)
    found = Counter(pa.table(verdicts.to_pyarrow_table(columns=["row_id"]))["row_id"].to_pylist())
    wanted = ids(0, 2 * HALF)
    lost, twice = len(wanted - set(found)), sum(found.values()) - len(found)
    record(Result("inputs", "Delta on an S3 server, in and out", len(wanted), len(wanted) - lost, lost, twice, "two runs"))
    assert (lost, twice) == (0, 0) and set(found) == wanted


def scored_output(tmp_path: Path) -> Path:
    """An output folder of 1,200 rows in eight partitions."""
    for number in range(8):
        place = tmp_path / "logs" / f"dt=2026-11-0{number + 1}"
        place.mkdir(parents=True)
        pq.write_table(arrow(number * 150, 150), place / "a.parquet")
    output = tmp_path / "out"
    run(tmp_path / "logs", output, job(tmp_path))
    return output


State = tuple[Any, Counter[str], set[float]]
"""Version of a table, its rows by row_id, and their thresholds."""


def delta_state(table: Path) -> State:
    from deltalake import DeltaTable

    opened = DeltaTable(str(table))
    found = pa.table(opened.to_pyarrow_table(columns=["row_id", "threshold"]))
    return opened.version(), Counter(found["row_id"].to_pylist()), set(found["threshold"].to_pylist())


def iceberg_state(properties: dict[str, str]) -> State:
    from pyiceberg.catalog import load_catalog

    opened = load_catalog("soak", **properties).load_table("audit.verdicts")
    found = opened.scan(selected_fields=("row_id", "threshold")).to_arrow()
    return opened.metadata_location, Counter(found["row_id"].to_pylist()), set(found["threshold"].to_pylist())


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_written_back_twice_and_after_a_kill(kind: str, tmp_path: Path) -> None:
    output = scored_output(tmp_path)
    properties = {"type": "sql", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": f"file://{tmp_path}/warehouse"}
    to = f"delta:{tmp_path}/verdicts" if kind == "delta" else "iceberg:soak/audit.verdicts"
    config = job(tmp_path, input={"catalog": properties})

    def state() -> State:
        return delta_state(tmp_path / "verdicts") if kind == "delta" else iceberg_state(properties)

    log = tmp_path / "verdicts" / "_delta_log"
    folder = tmp_path / "warehouse" / "audit" / "verdicts" / "metadata"
    killed = start("table", output, "--table", to, "--config", config, log=tmp_path / "log")
    begun_at = 3 if kind == "delta" else 5  # versions: of Iceberg, the first is the table's own, the second its partitioning
    wait_for(lambda: len([*log.glob("*.json"), *folder.glob("*.metadata.json")]) >= begun_at, killed)
    killed.kill()
    killed.wait()
    begun = sum(state()[1].values())
    wanted = ids(0, 1200)
    for _ in range(2):
        done = here("table", output, "--table", to, "--config", config)
        assert done.returncode == 0, done.stdout + done.stderr
    version, found, _ = state()
    lost, twice = len(wanted - set(found)), sum(found.values()) - len(found)
    again = here("table", output, "--table", to, "--config", config)
    assert "0 rows in 0 partition(s) written; 8 hold" in again.stdout and state()[:2] == (version, found)
    other = write_job(
        tmp_path / "new.yaml",
        members={"slms": [], "detectors": [NOVELTY]},
        verdict={"threshold": {"value": 0.123}},
    )
    assert here("finalize", output, "--config", other).returncode == 0
    assert "1,200 rows in 8 partition(s) written" in here("table", output, "--table", to, "--config", config).stdout
    _, after, thresholds = state()
    lost, twice = lost + len(wanted - set(after)), twice + sum(after.values()) - len(after)
    note = f"killed when {begun} rows were there; three times more, the last two without effect; then new verdicts over the old"
    record(Result("publish", f"verdicts into {kind.capitalize()}", 1200, 1200 - lost, lost, twice, note))
    assert (lost, twice, thresholds) == (0, 0, {0.123}) and 0 < begun < 1200


def test_runs_are_told_to_an_openlineage_server(tmp_path: Path, server: Server) -> None:  # noqa: F811
    """Two nights over a Delta table, and one that fails: each starts, and ends as it did."""
    from deltalake import write_deltalake

    settings = {"integrations": {"openlineage": {"url": server.url, "namespace": "soak"}}}
    table, output, config = str(tmp_path / "delta"), tmp_path / "out", job(tmp_path, **settings)
    for first in (0, HALF):
        write_deltalake(table, arrow(first), mode="append")
        run(table, output, config)
    broken = write_job(
        tmp_path / "bad.yaml", settings, members={"slms": [], "detectors": [{"name": "other", "kind": "novelty"}]}
    )
    assert here("run", table, output, "--config", broken).returncode == 1
    events = server.events
    assert [event["eventType"] for event in events] == ["START", "COMPLETE", "START", "COMPLETE", "START", "FAIL"]
    rows = [event["inputs"][0]["inputFacets"]["inputStatistics"]["rowCount"] for event in events[1::2][:2]]
    assert rows == [HALF, HALF]
    settled(
        "Delta, told to an OpenLineage server",
        output,
        ids(0, 2 * HALF),
        "START and COMPLETE a run, FAIL of one that was refused",
    )
