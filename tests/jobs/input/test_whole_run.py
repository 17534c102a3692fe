"""A run over many unusual layouts at once: every input row is an output row with a status."""

from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.conftest import example_rows, write_logs
from tests.jobs.conftest import invoke, manifest, read_rows, write_job
from tests.jobs.input.test_text import INVALID
from tests.jobs.input.test_types import UNUSUAL_COLUMNS, write_columns
from tests.raises import fails

VALUES = ["", "__HIVE_DEFAULT_PARTITION__", "a%20b", "50%25", "x%2Fy", "a=b", "ü", "2026-11-01"]


def write_unusual_layouts(logs: Path) -> None:
    folders = [logs / f"my%20key={value}" for value in VALUES]
    for folder in folders:
        write_logs(folder / "a.parquet", example_rows(2))
    columns = {"question": ["Q?"], "context": ["It opens at nine."], "response": ["It opens at nine."]}
    write_columns(folders[0] / "strange.parquet", **{n: pa.array(v) for n, v in columns.items()}, **UNUSUAL_COLUMNS)
    write_columns(folders[1] / "bad question.parquet", question=INVALID)
    write_columns(folders[1] / "bad context.parquet", context=INVALID)
    write_columns(folders[1] / "bad tenant.parquet", tenant=INVALID)
    write_columns(folders[2] / "integers.parquet", n=pa.array([2**53, 1]))
    write_columns(folders[2] / "floats.parquet", n=pa.array([0.5, None]))
    write_columns(folders[3] / "null context.parquet", context=pa.nulls(2))
    write_columns(folders[3] / "null response.parquet", response=pa.nulls(2))
    write_columns(folders[3] / "null lists.parquet", context=pa.array([[None], None], pa.list_(pa.null())))
    write_columns(folders[4] / "UP.PARQUET", tenant=pa.array(["x"]).dictionary_encode())
    write_columns(folders[4] / "views.parquet", context=pa.array([["It opens.", "C."]], pa.list_view(pa.string_view())))
    schema = pq.read_schema(folders[0] / "a.parquet")
    pq.write_table(schema.empty_table(), folders[5] / "no rows.parquet")
    pq.ParquetWriter(folders[5] / "no groups.parquet", schema).close()
    pq.write_table(pa.Table.from_pylist(example_rows(30)), folders[6] / "groups.parquet", row_group_size=1)
    (folders[6] / "notes.txt").touch()
    (logs / "latest").symlink_to(folders[-1].name)
    (folders[-1] / "again").symlink_to(".")


@pytest.mark.slow
@pytest.mark.usefixtures("without_ray")
def test_a_run_over_unusual_layouts_loses_no_row(tmp_path: Path) -> None:
    logs, output = tmp_path / "logs", tmp_path / "out"
    write_unusual_layouts(logs)
    job = write_job(tmp_path / "job.yaml", members={"slms": [], "detectors": [{"name": "novelty", "kind": "novelty"}]})
    write_columns(tmp_path / "first" / "my%20key=0" / "a.parquet", context=pa.nulls(2))
    first = invoke("run", tmp_path / "first", output, "--config", job)
    assert first.returncode == 0 and "2 in = 0 scored + 2 unscorable" in first.stdout, first.stdout + first.stderr
    assert not (output / "frequencies.parquet").exists()

    rows = 2 * len(VALUES) + 1 + 3 * 3 + 4 + 6 + 2 + 30
    done = invoke("run", logs, output, "--config", job)
    assert done.returncode == 0 and f"{rows} in = " in done.stdout, done.stdout + done.stderr
    assert len(read_rows(output)) == len(read_rows(output, "raw")) == rows + 2 and (output / "frequencies.parquet").exists()
    statuses = Counter(row["status"] for folder in sorted(output.glob("scored/*")) for row in pq.read_table(folder).to_pylist())
    assert statuses["unreadable"] == 3 and statuses["no_context"] == 2 + 4 + 1 and statuses["no_response"] == 2
    assert {row["partition"] for row in manifest(output)["files"]} == set(manifest(output)["finalized"])
    (strange,) = [
        r for r in pq.read_table(output / "scored" / "my%20key=").to_pylist() if r["row_id"].endswith("strange.parquet#1")
    ]
    assert (strange["input_status"], strange["a.b"], strange["category"], strange["list_view"]) == ("200", "x", "c", ["v"])

    again = invoke("run", f"file://{logs}", output, "--config", job)
    assert again.returncode == 0 and f"{rows} in = 0 scored + 0 unscorable + {rows} skipped" in again.stdout, (
        again.stdout + again.stderr
    )

    write_columns(logs / "my%20key=a%20b" / "later.parquet", n=pa.array([7, 2**60]))
    refused = invoke("run", logs, output, "--config", job)
    fails(refused, "input.values-too-wide")
    write_columns(logs / "my%20key=a%20b" / "later.parquet", n=pa.array([7, None]), context=pa.nulls(2))
    later = invoke("run", tmp_path / "logs" / "latest" / "..", output, "--config", job)
    assert later.returncode == 0 and f"{rows + 2} in = 0 scored + 2 unscorable + {rows} skipped" in later.stdout, (
        later.stdout + later.stderr
    )
    assert invoke("finalize", output, "--config", job).returncode == 0
