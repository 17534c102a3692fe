"""Staging: what broke off is done again, nothing is staged twice, what waits is kept, what can't be read is said."""

import gzip
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console

from ragassay.jobs.config.job import Job, make_job
from ragassay.jobs.forecast.run import plan
from ragassay.jobs.integrations.traces import stage as staging_module
from ragassay.jobs.integrations.traces.export import Damage, export_files, records
from ragassay.jobs.integrations.traces.fields import micros
from ragassay.jobs.integrations.traces.source import logs_of, logs_to_look_at
from ragassay.jobs.integrations.traces.stage import RECORD, TRACES, stage
from ragassay.jobs.output.manifest import read_manifest, write_manifest
from ragassay.jobs.scoring.register import match_input
from ragassay.jobs.storage.folder import Folder, open_folder
from ragassay.schemas.manifest import SCORED, Manifest
from ragassay.schemas.traces import TracesRecord
from tests.corpus.job import without_slm
from tests.job_settings import merged
from tests.jobs.integrations.traces.exports import TOOLS, write_export
from tests.jobs.integrations.traces.stories import stories
from tests.jobs.integrations.traces.test_presets import night, staged
from tests.raises import raises, refuses

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


def read(path: Path, broken: list[Damage]) -> Iterator[Any]:
    found = export_files(str(path))
    return records(found.fs, found.files[0], broken.append)


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
    assert sum(known.staged.values()) == 60 and known.pending == 0 and known.pending_file is None
    assert not list((output / TRACES / "_waiting").glob("*"))


def test_what_a_killed_staging_left_is_swept(tmp_path: Path) -> None:
    write(tmp_path / "export" / "1.jsonl", otlp("t1", 1e9, parent="bb"), otlp("t2", 1e9))
    places = [tmp_path / "out" / TRACES / place for place in ("dt=2001-09-09", "_waiting")]
    for place in places:
        place.mkdir(parents=True)
        (place / "part-1.parquet.0a1b2c3d.part").write_bytes(b"PAR1")
    staging(tmp_path / "export", tmp_path / "out")
    assert [[path.name for path in place.iterdir()] for place in places] == [["part-1.parquet"], ["1.parquet"]]


def test_many_buckets_are_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    night("phoenix", tmp_path, tmp_path / "one", TOLD, 1, hold=0)
    monkeypatch.setattr(staging_module, "BUCKET_BYTES", 999)
    monkeypatch.setattr(staging_module, "BUFFERED", 7)
    night("phoenix", tmp_path, tmp_path / "many", TOLD, 1, hold=0)
    rows = [sorted(staged(tmp_path / name), key=lambda row: row["row_id"]) for name in ("one", "many")]
    assert rows[0] == rows[1] and len(rows[0]) > 20


def test_open_traces_wait_until_there_is_newer_data(tmp_path: Path) -> None:
    export, output = tmp_path / "export", tmp_path / "out"
    write(export / "1.jsonl", otlp("t1", 1e9, parent="bb"), otlp("t2", 1e9))
    assert staging(export, output)["open traces"] == 1 and ids(output) == {"t2": 1}
    write(export / "2.jsonl", otlp("t3", 1e9 + 1.9 * DAY))
    (export / "1.jsonl").unlink()  # what waits does not need the export
    assert staging(export, output)["open traces"] == 1 and record(output).pending == 1
    write(export / "3.jsonl", otlp("t4", 1e9 + 2.1 * DAY))
    counts = staging(export, output)
    assert counts["unfinished"] == counts["no root"] == 1 and ids(output) == {"t1": 1, "t2": 1, "t3": 1, "t4": 1}
    write(export / "4.jsonl", otlp("t1", 1e9, span="bb"), otlp("t4", 1e9, span="cc"))
    assert staging(export, output)["late traces"] == 2 and set(ids(output).values()) == {1}


def test_a_wrong_clock_makes_no_trace_old(tmp_path: Path) -> None:
    export, output = tmp_path / "export", tmp_path / "out"
    write(export / "1.jsonl", otlp("t1", 1e9, parent="bb"), otlp("t2", 1e9), otlp("t3", 2.5e11))
    write(export / "1b.jsonl", otlp("t4", 2.5e11, parent="bb"))
    assert staging(export, output)["open traces"] == 1 and ids(output) == {"t2": 1, "t3": 1, "t4": 1}  # t4 has no other time
    assert record(output).newest == int(1e15)
    stuck = replace(record(output), newest=int(2.5e17))  # as earlier versions wrote it
    (output / RECORD).write_text(stuck.to_json())
    write(export / "2.jsonl", otlp("t5", 1e9 + DAY))
    assert staging(export, output)["open traces"] == 1
    write(export / "3.jsonl", otlp("t6", 1e9 + 3 * DAY))
    assert staging(export, output)["unfinished"] == 1 and ids(output)["t1"] == 1


def test_a_night_without_spans_is_no_fault_where_some_wait(tmp_path: Path) -> None:
    export, output = tmp_path / "export", tmp_path / "out"
    write(export / "1.jsonl", otlp("t1", 1e9, parent="bb"))
    assert staging(export, output)["open traces"] == 1
    write(export / "2.jsonl", {"x": 1})
    counts = staging(export, output)
    assert (counts["records"], counts["other records"], counts["open traces"]) == (1, 1, 1)


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
    with raises("traces.damaged", uri=str(export / "1.jsonl"), where="line 2"):
        staging(export, output)
    assert not (output / RECORD).exists() and not list(output.rglob("*.parquet"))
    (export / "2.parquet").write_bytes(b"none")
    whole = gzip.compress(json.dumps(otlp("t3", 1e9)).encode() + b"\n" + b"x" * 99_999)
    (export / "3.jsonl.gz").write_bytes(whole[: len(whole) - 30])
    counts = staging(export, output, keep_bad=True)
    assert counts["unreadable"] == 3 and set(ids(output)) >= {"t1", "t2"}
    assert "2.parquet" not in record(output).files  # it is tried again


def test_a_mark_of_byte_order_is_none_of_the_text(tmp_path: Path) -> None:
    write(tmp_path / "export" / "1.jsonl", "\ufeff" + json.dumps(otlp("t1", 1e9)), otlp("t2", 1e9))
    (tmp_path / "export" / "2.jsonl.gz").write_bytes(gzip.compress(b"\xef\xbb\xbf" + json.dumps(otlp("t3", 1e9)).encode()))
    assert staging(tmp_path / "export", tmp_path / "out")["records"] == 3 and ids(tmp_path / "out").keys() == {"t1", "t2", "t3"}


@pytest.mark.parametrize("value", [{"data": [otlp("t1", 1e9)], "n": [None, True, 1.5, "x", {}, []]}, [[], otlp("t1", 1e9)]])
@pytest.mark.parametrize("separators", [None, (",\n", ":"), (",", ":\n"), ("\n,", "\n:")])
def test_a_value_over_many_lines_however_it_is_laid_out(value: Any, separators: tuple[str, str] | None, tmp_path: Path) -> None:
    (tmp_path / "1.json").write_text(json.dumps(value, indent=None if separators else 2, separators=separators))
    assert list(read(tmp_path / "1.json", [])) == [otlp("t1", 1e9)]


def test_behind_a_broken_first_line_lines_come_one_by_one(tmp_path: Path) -> None:
    broken: list[Damage] = []
    path = write(tmp_path / "1.jsonl", 'x": 1}', otlp("t1", 1e9), "{", otlp("t2", 1e9))
    found = read(path, broken)
    assert next(found) == otlp("t1", 1e9) and [damage.where for damage in broken] == ["line 1"]  # the rest is not looked at yet
    assert list(found) == [otlp("t2", 1e9)] and [damage.where for damage in broken] == ["line 1", "line 3"]


def test_a_record_with_an_odd_field_is_damage(tmp_path: Path) -> None:
    row = {"trace_id": "t9", "span_id": "a", "start_time": 1_000_000_000_000_000, "attributes": {"input.value": "Q?"}}
    odd = [
        {**row, "duration": "12ms"},
        {**row, "duration": "9" * 5000},
        {**row, "attributes": [{"key": "a", "value": {"intValue": "x"}}]},
        {**row, "attributes": [{"key": "a", "value": {"arrayValue": "x"}}]},
    ]
    write(tmp_path / "export" / "1.jsonl", otlp("t1", 1e9), *odd, otlp("t2", 1e9))
    with raises("traces.damaged", where="record 2"):
        staging(tmp_path / "export", tmp_path / "out")
    counts = staging(tmp_path / "export", tmp_path / "out", keep_bad=True)
    assert (counts["unreadable"], counts["records"]) == (4, 6) and ids(tmp_path / "out") == {"t1": 1, "t2": 1}


def test_a_row_with_a_time_that_python_has_not_is_damage(tmp_path: Path) -> None:
    spans = [
        {"trace_id": f"t{i}", "span_id": "a", "start_time": 10**15, "attributes": '{"input.value": "Q?", "output.value": "A."}'}
        for i in range(3)
    ]
    table = pa.Table.from_pylist(spans).append_column("day", pa.array([1, 1 << 30, None], pa.int32()).cast(pa.date32()))
    (tmp_path / "export").mkdir()
    pq.write_table(table, tmp_path / "export" / "1.parquet")
    with raises("traces.damaged", where="a row of row group 0"):
        staging(tmp_path / "export", tmp_path / "out", 0)
    counts = staging(tmp_path / "export", tmp_path / "out", 0, keep_bad=True)
    assert counts["unreadable"] == 1 and ids(tmp_path / "out") == {"t0": 1, "t2": 1}


def test_a_time_that_is_none_is_no_time(tmp_path: Path) -> None:
    beyond = ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", datetime.max]
    for value in (float("inf"), float("nan"), 10**22, "9" * 5000, "9" * 400 + ".5", *beyond):
        assert micros(value) is None
    assert micros("9999-12-30T00:00:00") and micros("0001-01-03") == micros(datetime(1, 1, 3))
    row = {"trace_id": "t1", "span_id": "a", "attributes": {"input.value": "Q?", "output.value": "A."}}
    times = ['"start_time": 1e999', f'"start_time": {10**22}', f'"start_time": {10**15}, "duration": {10**30}']
    lines = [json.dumps({**row, "trace_id": f"t{i}"})[:-1] + f", {time}}}" for i, time in enumerate(times)]
    write(tmp_path / "export" / "1.jsonl", *lines)
    staging(tmp_path / "export", tmp_path / "out", hold=0)
    assert ids(tmp_path / "out") == {"t0": 1, "t1": 1, "t2": 1}


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
    with raises("traces.none-known", records=1, preset="otel", names=", with fields such as 'x', 'y'"):
        staging(export, output)
    write(export / "1.jsonl", otlp("t1", 1e9))
    staging(export, output)
    with raises("traces.other-preset", preset="otel", wanted="phoenix"):
        staging(export, output, preset="phoenix")
    (output / RECORD).write_text((output / RECORD).read_text().replace('"version": 1', '"version": 9'))
    with raises("traces.unreadable-record"):
        staging(export, output)
    (tmp_path / "csv").mkdir()
    (tmp_path / "csv" / "a.csv").write_text("x")
    with raises("input.no-logs", suffix=".parquet", others="; it holds 'a.csv': have traces written as Parquet or JSON Lines"):
        export_files(str(tmp_path / "csv"))
    with refuses("config.preset-columns"):
        make_job({"input": {"preset": "otel", "columns": {"question": "q"}}})
    with refuses("input.preset"):
        make_job({"input": {"preset": "datadog"}})


@pytest.mark.parametrize(
    ("setting", "named"),
    [({"output": {"drop_text": True}}, "output.drop_text"), ({"input": {"redact": "privacy:hide"}}, "input.redact")],
)
def test_texts_of_traces_can_not_be_kept_out_of_the_output(setting: dict[str, Any], named: str) -> None:
    with refuses("config.preset-keeps-text") as error:
        make_job(merged({"input": {"preset": "otel"}}, setting))
    assert error.value.fields["faults"][0]["settings"] == named
    assert make_job({"input": {"preset": "otel"}, "output": {"drop_text": False}})


def test_output_and_export_lie_apart(tmp_path: Path) -> None:
    write(tmp_path / "export" / "1.jsonl", otlp("t1", 1e9))
    job = without_slm(input={"preset": "otel"})
    with raises("output.inside-input"):
        logs_of(job.input, str(tmp_path / "export"), open_folder(str(tmp_path / "export" / "out")))


@pytest.mark.parametrize("glob", ["*/*.json", "*/stats/*.json", "*/*/*/*.json", "*/*/*/*.parquet", "*/*/dt=*/*", "**/*"])
def test_a_glob_that_means_what_will_be_written_is_refused_the_first_night(glob: str, tmp_path: Path) -> None:
    depth = 1 + glob.count("/") - (glob == "**/*")
    place = tmp_path.joinpath("ex", *["dt=1"] * (depth - 1), f"1{Path(glob).suffix or '.json'}")
    write(place, otlp("t1", 1e9))
    if glob == "*/stats/*.json":
        write(tmp_path / "ex" / "a" / "stats" / "1.json", otlp("t1", 1e9))
    with raises("output.inside-input"):
        logs_of(
            without_slm(input={"preset": "otel"}).input, f"{tmp_path}/ex/{glob}", open_folder(str(tmp_path / "ex" / "audit"))
        )
    assert not (tmp_path / "ex" / "audit").exists()


@pytest.mark.parametrize("glob", ["d*/*.json", "*/1.json", "*/*.jsonl"])
def test_a_glob_that_means_none_of_it_is_free(glob: str, tmp_path: Path) -> None:
    for name in ("1.json", "1.jsonl"):
        write(tmp_path / "ex" / "d1" / name, otlp("t1", 1e9))
    job = without_slm(input={"preset": "otel"})
    for _ in range(2):
        logs, _counts = logs_of(job.input, f"{tmp_path}/ex/{glob}", open_folder(str(tmp_path / "ex" / "audit")))
        assert sum(file.rows or 0 for file in logs.files) == 1


def test_nothing_is_whole_yet(tmp_path: Path) -> None:
    write(tmp_path / "export" / "1.jsonl", otlp("t1", 1e9, parent="bb"))
    job, output = without_slm(input={"preset": "otel"}), open_folder(str(tmp_path / "out"))
    for _ in range(2):
        with raises("traces.none-whole", traces=1):
            logs_of(job.input, str(tmp_path / "export"), output)
    with raises("traces.none-whole"), logs_to_look_at(job.input, str(tmp_path / "export")):
        pass  # what it was staged in is gone
    assert [path.name for path in (tmp_path / "out" / TRACES).rglob("*.parquet")] == ["1.parquet"]
    logs, counts = logs_of(without_slm(input={"preset": "otel", "hold_days": 0}).input, str(tmp_path / "export"), output)
    assert counts["traces"] == counts["unfinished"] == 1 and sum(file.rows or 0 for file in logs.files) == 1


def test_plan_looks_at_traces_and_writes_nothing(tmp_path: Path) -> None:
    write_export(TOOLS["phoenix"], tmp_path / "export", TOLD, 1)
    job: Job = without_slm(input={"preset": "phoenix", "hold_days": 0})
    quiet = Console(quiet=True)
    gpus: dict[str, Any] = dict.fromkeys(("gpus", "gpu_tokens_per_second", "gpu_price"))
    whole, *_ = plan(job, str(tmp_path / "export"), quiet, quiet, sample=50, seconds=0, **gpus, began=0)
    assert whole.rows > 20 and sorted(path.name for path in tmp_path.iterdir()) == ["export"]


def test_rows_are_partitioned_by_the_day_they_began(tmp_path: Path) -> None:
    write(tmp_path / "export" / "1.jsonl", otlp("t1", 1795392000 - 1), otlp("t2", 1795392000), otlp("t3", 0))
    staging(tmp_path / "export", tmp_path / "out")
    found = {
        path.parent.name: pq.read_table(path, partitioning=None)["row_id"].to_pylist()
        for path in (tmp_path / "out").rglob("*.parquet")
    }
    assert found == {"dt=2026-11-22": ["t1"], "dt=2026-11-23": ["t2"], "dt=unknown": ["t3"]}


def test_an_output_with_staged_traces_can_be_moved(tmp_path: Path) -> None:
    write(tmp_path / "export" / "1.jsonl", otlp("t1", 1e9), otlp("t2", 1e9))
    job, places = without_slm(input={"preset": "otel"}), [tmp_path / "audit", tmp_path / "elsewhere" / "audit2"]

    def night(place: Path) -> tuple[Manifest, list[str]]:
        output = open_folder(str(place))
        logs, _ = logs_of(job.input, str(tmp_path / "export"), output)
        before = read_manifest(output)
        found = match_input(job, logs, output, before)
        scored = {number: replace(entry, state=SCORED) for number, entry in found.entries.items()}
        manifest = replace(before, fingerprint=found.fingerprint, files={**before.files, **scored})
        write_manifest(output, manifest)
        return manifest, [file.path for file in found.selection.files.values()]

    manifest, scored = night(places[0])
    assert scored == ["dt=2001-09-09/part-1.parquet"] and str(tmp_path) not in manifest.to_json()
    places[1].parent.mkdir()
    places[0].rename(places[1])
    assert night(places[1])[1] == []
    write(tmp_path / "export" / "2.jsonl", otlp("t3", 1e9))
    assert night(places[1])[1] == ["dt=2001-09-09/part-2.parquet"]
    staged_file = next((places[1] / TRACES / "dt=2001-09-09").glob("part-1*"))
    staged_file.write_bytes((places[1] / TRACES / "dt=2001-09-09" / "part-2.parquet").read_bytes())
    with raises("input.changed-file"):
        night(places[1])
