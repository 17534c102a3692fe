"""Staging: what broke off is done again, nothing is staged twice, what waits is kept, what can't be read is said."""

import gzip
import json
from collections import Counter
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from rich.console import Console

from ragassay.jobs.config import Job, make_job
from ragassay.jobs.forecast.run import plan
from ragassay.jobs.output.manifest import read_manifest, write_manifest
from ragassay.jobs.score.register import register
from ragassay.jobs.storage import Folder, open_folder
from ragassay.jobs.traces import buckets
from ragassay.jobs.traces.export import export_files
from ragassay.jobs.traces.source import logs_of
from ragassay.jobs.traces.stage import RECORD, TRACES, stage
from ragassay.pipeline.errors import ConfigError, InputError, OutputError
from ragassay.schemas.manifest import SCORED, Manifest
from ragassay.schemas.traces import TracesRecord
from tests.corpus.job import without_slm
from tests.jobs.traces.exports import TOOLS, write_export
from tests.jobs.traces.stories import stories
from tests.jobs.traces.test_presets import night, staged

TOLD = stories(60)
DAY = 86_400


def ids(output: Path) -> Counter[str]:
    return Counter(row["row_id"] for row in staged(output))


def otlp(trace: str, at: float, *, parent: str = "", span: str = "aa", text: str | None = "A.") -> dict[str, Any]:
    attributes = {"input.value": "Q?", **({"output.value": text} if text else {})}
    pairs = [{"key": k, "value": {"stringValue": v}} for k, v in attributes.items()]
    found = {
        "traceId": trace, "spanId": span, "parentSpanId": parent, "name": "n", "startTimeUnixNano": str(int(at * 1e9)),
        "endTimeUnixNano": str(int(at * 1e9) + 5), "attributes": pairs,
    }  # fmt: skip
    return {"resourceSpans": [{"scopeSpans": [{"spans": [found]}]}]}


def write(path: Path, *lines: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines))
    return path


def staging(folder: Path, output: Path, hold: float = 2, keep_bad: bool = False, preset: str = "otel") -> dict[str, int]:
    return stage(export_files(str(folder)), open_folder(str(output)), preset, hold, keep_bad)


def record(output: Path) -> TracesRecord:
    return TracesRecord.from_json((output / RECORD).read_text())


def test_a_staging_that_broke_off_is_done_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    night("otel", tmp_path, tmp_path / "whole", TOLD, 1)
    night("otel", tmp_path, tmp_path / "whole", TOLD, 2, hold=0)
    output, again = tmp_path / "out", tmp_path / "again"
    for number in (1, 2):
        with monkeypatch.context() as patch:
            patch.setattr(Folder, "write", lambda *_: (_ for _ in ()).throw(OSError("full")))
            with pytest.raises(OSError, match="full"):
                night("otel", again, output, TOLD, number, hold=0)
        left = sorted((output / TRACES).rglob("*.parquet"))
        (output / TRACES / "dt=2026-11-29").mkdir(parents=True)  # one that only the broken one wrote
        (output / TRACES / "dt=2026-11-29" / "part-9.parquet").write_bytes(left[0].read_bytes())
        night("otel", again, output, TOLD, number, hold=2 if number == 1 else 0)
        (output / TRACES / "dt=2026-11-29").rmdir()
    assert ids(output) == ids(tmp_path / "whole") and set(ids(output).values()) == {1}
    known = record(output)
    assert sum(known.staged.values()) == 60 and known.open == 0 and known.waiting is None
    assert not list((output / TRACES / "_waiting").glob("*"))


def test_many_buckets_are_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    night("phoenix", tmp_path, tmp_path / "one", TOLD, 1, hold=0)
    monkeypatch.setattr(buckets, "BUCKET_BYTES", 999)
    monkeypatch.setattr(buckets, "BUFFERED", 7)
    night("phoenix", tmp_path, tmp_path / "many", TOLD, 1, hold=0)
    rows = [sorted(staged(tmp_path / name), key=lambda row: row["row_id"]) for name in ("one", "many")]
    assert rows[0] == rows[1] and len(rows[0]) > 20


def test_open_traces_wait_until_there_is_newer_data(tmp_path: Path) -> None:
    export, output = tmp_path / "export", tmp_path / "out"
    write(export / "1.jsonl", otlp("t1", 1e9, parent="bb"), otlp("t2", 1e9))
    assert staging(export, output)["open traces"] == 1 and ids(output) == {"t2": 1}
    write(export / "2.jsonl", otlp("t3", 1e9 + 1.9 * DAY))
    (export / "1.jsonl").unlink()  # what waits does not need the export
    assert staging(export, output)["open traces"] == 1 and record(output).open == 1
    write(export / "3.jsonl", otlp("t4", 1e9 + 2.1 * DAY))
    counts = staging(export, output)
    assert counts["unfinished"] == counts["no root"] == 1 and ids(output) == {"t1": 1, "t2": 1, "t3": 1, "t4": 1}
    write(export / "4.jsonl", otlp("t1", 1e9, span="bb"), otlp("t4", 1e9, span="cc"))
    assert staging(export, output)["late traces"] == 2 and set(ids(output).values()) == {1}


def test_files_that_change_are_read_again_and_others_are_not(tmp_path: Path) -> None:
    export, output = tmp_path / "export", tmp_path / "out"
    path = write(export / "1.jsonl", otlp("t1", 1e9))
    assert staging(export, output)["new files"] == 1 and staging(export, output) == {}
    path.write_text(path.read_text())
    assert staging(export, output) == {}
    write(path, otlp("t1", 1e9), otlp("t2", 1e9))
    counts = staging(export, output)
    assert (counts["changed files"], counts["late traces"]) == (1, 1) and ids(output) == {"t1": 1, "t2": 1}


def test_lines_and_files_that_can_not_be_read(tmp_path: Path) -> None:
    export, output = tmp_path / "export", tmp_path / "out"
    write(export / "1.jsonl", otlp("t1", 1e9), '{"resourceSpans": [', otlp("t2", 1e9))
    with pytest.raises(InputError, match=r"1.jsonl, line 2, can't be read: .* --on-bad-file skip"):
        staging(export, output)
    assert not (output / RECORD).exists() and not list(output.rglob("*.parquet"))
    (export / "2.parquet").write_bytes(b"none")
    whole = gzip.compress(json.dumps(otlp("t3", 1e9)).encode() + b"\n" + b"x" * 99_999)
    (export / "3.jsonl.gz").write_bytes(whole[: len(whole) - 30])
    counts = staging(export, output, keep_bad=True)
    assert counts["unreadable"] == 3 and set(ids(output)) >= {"t1", "t2"}
    assert "2.parquet" not in record(output).files  # it is tried again


def test_one_json_value_over_many_lines(tmp_path: Path) -> None:
    times = {"start_time": "2026-11-23T10:00:00", "end_time": "2026-11-23T10:00:01"}
    told = {"run_type": "chain", "inputs": {"question": "Q?"}, "outputs": {"answer": "A."}, **times}
    runs = [{"id": f"r{i}", "trace_id": f"r{i}", **told} for i in range(3)]
    (tmp_path / "export").mkdir()
    (tmp_path / "export" / "a.json").write_text(json.dumps({"runs": runs[:2]}, indent=1))
    (tmp_path / "export" / "b.json").write_text(json.dumps([runs[2]], indent=1))
    staging(tmp_path / "export", tmp_path / "out", preset="langsmith")
    assert ids(tmp_path / "out") == {"r0": 1, "r1": 1, "r2": 1}


def test_what_is_refused(tmp_path: Path) -> None:
    export, output = tmp_path / "export", tmp_path / "out"
    write(export / "1.jsonl", {"x": 1, "y": 2})
    with pytest.raises(
        InputError, match="none of its 1 records is a span as preset 'otel' knows them, with fields such as 'x', 'y'"
    ):
        staging(export, output)
    write(export / "1.jsonl", otlp("t1", 1e9))
    staging(export, output)
    with pytest.raises(OutputError, match="holds traces of otel, not of phoenix"):
        staging(export, output, preset="phoenix")
    (output / RECORD).write_text((output / RECORD).read_text().replace('"version": 1', '"version": 9'))
    with pytest.raises(OutputError, match="another version"):
        staging(export, output)
    (tmp_path / "csv").mkdir()
    (tmp_path / "csv" / "a.csv").write_text("x")
    with pytest.raises(
        InputError, match=r"no .parquet file, nor one of .*; it holds 'a.csv': have traces written as Parquet or JSON Lines"
    ):
        export_files(str(tmp_path / "csv"))
    with pytest.raises(ConfigError, match="brings its own columns"):
        make_job({"input": {"preset": "otel"}, "columns": {"question": "q"}})
    with pytest.raises(ConfigError, match="preset"):
        make_job({"input": {"preset": "datadog"}})


def test_output_and_export_lie_apart(tmp_path: Path) -> None:
    write(tmp_path / "export" / "1.jsonl", otlp("t1", 1e9))
    job = without_slm(input={"preset": "otel"})
    with pytest.raises(InputError, match="lies in the input"):
        logs_of(job, str(tmp_path / "export"), open_folder(str(tmp_path / "export" / "out")))


def test_nothing_is_whole_yet(tmp_path: Path) -> None:
    write(tmp_path / "export" / "1.jsonl", otlp("t1", 1e9, parent="bb"))
    job, output = without_slm(input={"preset": "otel"}), open_folder(str(tmp_path / "out"))
    for _ in range(2):
        with pytest.raises(InputError, match="traces is whole yet"):
            logs_of(job, str(tmp_path / "export"), output)
    assert [path.name for path in (tmp_path / "out" / TRACES).rglob("*.parquet")] == ["1.parquet"]
    logs, counts = logs_of(without_slm(input={"preset": "otel", "hold_days": 0}), str(tmp_path / "export"), output)
    assert counts["traces"] == counts["unfinished"] == 1 and sum(file.rows or 0 for file in logs.files) == 1


def test_plan_looks_at_traces_and_writes_nothing(tmp_path: Path) -> None:
    write_export(TOOLS["phoenix"], tmp_path / "export", TOLD, 1)
    job: Job = without_slm(input={"preset": "phoenix", "hold_days": 0})
    told = plan(
        job, str(tmp_path / "export"), Console(file=StringIO()), Console(quiet=True), sample=50, seconds=0, gpus=None, began=0
    )
    assert told.rows > 20 and sorted(path.name for path in tmp_path.iterdir()) == ["export"]


def test_rows_are_partitioned_by_the_day_they_began(tmp_path: Path) -> None:
    write(tmp_path / "export" / "1.jsonl", otlp("t1", 1795392000 - 1), otlp("t2", 1795392000), otlp("t3", 0))
    staging(tmp_path / "export", tmp_path / "out")
    found = {
        path.parent.name: pq.read_table(path, partitioning=None)["row_id"].to_pylist()
        for path in (tmp_path / "out").rglob("*.parquet")
    }
    assert found == {"dt=2026-11-22": ["t1"], "dt=2026-11-23": ["t2"], "dt=unknown": ["t3"]}
    assert replace(record(tmp_path / "out"), part=1).to_json()


def test_an_output_with_staged_traces_can_be_moved(tmp_path: Path) -> None:
    write(tmp_path / "export" / "1.jsonl", otlp("t1", 1e9), otlp("t2", 1e9))
    job, places = without_slm(input={"preset": "otel"}), [tmp_path / "audit", tmp_path / "elsewhere" / "audit2"]

    def night(place: Path) -> tuple[Manifest, list[str]]:
        output = open_folder(str(place))
        logs, _ = logs_of(job, str(tmp_path / "export"), output)
        manifest = read_manifest(output)
        found = register(job, logs, output, manifest)
        for number in found.to_score:
            found.files[number].state = SCORED
        manifest.files, manifest.fingerprint = found.files, found.fingerprint
        write_manifest(output, manifest)
        return manifest, [file.path for file in found.to_score.values()]

    manifest, scored = night(places[0])
    assert scored == ["dt=2001-09-09/part-1.parquet"] and str(tmp_path) not in manifest.to_json()
    places[1].parent.mkdir()
    places[0].rename(places[1])
    assert night(places[1])[1] == []
    write(tmp_path / "export" / "2.jsonl", otlp("t3", 1e9))
    assert night(places[1])[1] == ["dt=2001-09-09/part-2.parquet"]
    staged_file = next((places[1] / TRACES / "dt=2001-09-09").glob("part-1*"))
    staged_file.write_bytes((places[1] / TRACES / "dt=2001-09-09" / "part-2.parquet").read_bytes())
    with pytest.raises(OutputError, match="of which output"):
        night(places[1])
