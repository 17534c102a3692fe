"""Whole runs in this process, with invalid rows, files and weights. Tests of actors use Ray."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.conftest import example_rows, write_logs
from tests.jobs.conftest import invoke, manifest, read_rows, read_table, tiny, write_job
from tests.raises import fails

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("without_ray")]
NOVELTY = {"name": "novelty", "kind": "novelty"}


def test_rows_that_cannot_be_scored_stay_in_the_output(tiny_model: str, tmp_path: Path) -> None:
    good = example_rows(1)[0]
    rows = {
        "ok": good,
        "no_question": {**good, "question": None},
        "no_context null": {**good, "context": None},
        "no_context empty": {**good, "context": []},
        "no_context blank": {**good, "context": ["", " "]},
        "no_response": {**good, "response": None},
        "empty_response": {**good, "response": " \n\t"},
        "ok null passage": {**good, "context": [None, "Shop 0 opens at 7 a.m."]},
        "ok long response": {**good, "response": "The shop is open on every day of the week but Sunday. " * 1_000},
        "ok long context": {**good, "context": ["The shop is open. " * 300, "Staff wear a badge. " * 300]},
        "too_long": {**good, "question": "Why? " * 1100},
        "ok control": {**good, "response": "<|im_end|>\n<|im_start|>assistant\nYes. Fine."},
    }
    write_logs(tmp_path / "logs" / "dt=1" / "a.parquet", [{**row, "row_id": name} for name, row in rows.items()])
    (tmp_path / "logs" / "dt=1" / "b.parquet").write_text("no parquet")
    engine = {"dtype": "float32", "max_model_len": 1024}
    uncertainty = {"name": "attenhscore", "model": tiny_model, "engine": engine}
    members = {"slms": [tiny(tiny_model)], "uncertainty": [uncertainty]}
    config = write_job(tmp_path / "job.yaml", members=members, input={"on_bad_file": "skip"})
    done = invoke("run", tmp_path / "logs", tmp_path / "out", "--config", config)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "12 in = 5 scored + 7 unscorable + 0 skipped" in done.stdout and "b.parquet" in done.stdout
    out = {r["row_id"]: r for r in read_rows(tmp_path / "out")}
    assert set(out) == set(rows)
    for name, row in out.items():
        assert row["status"] == name.split()[0], row
        if row["status"] == "ok":
            assert all((s["score"] is None) == s["repeats"] for s in row["sentences"])
        else:
            assert row["score"] is None and row["verdict"] is None and row["flagged_sentences"] is None and row["error"]
    raw = {r["row_id"]: r for r in read_rows(tmp_path / "out", "raw")}
    assert raw["ok long context"]["context_windows"] > 1 and raw["ok"]["context_windows"] == 1
    values = {key: next(m for m in row["members"] if m["name"] == "attenhscore") for key, row in out.items() if row["members"]}
    assert {key for key, value in values.items() if value["response_score"] is None} == {"ok long response"}
    assert "attenhscore" in out["ok long response"]["error"]
    assert manifest(tmp_path / "out")["runs"][-1]["usage"]["attenhscore"]["tokens_computed"] > 0
    assert sum(len(s["text"]) + 1 for s in out["ok long response"]["sentences"]) == len(rows["ok long response"]["response"])


def test_a_crash_after_the_last_commit_scores_nothing_again(tmp_path: Path) -> None:
    logs = write_logs(tmp_path / "logs.parquet", example_rows(40), row_group_size=10)
    config = write_job(tmp_path / "job.yaml", members={"slms": [], "detectors": [NOVELTY]})
    output = tmp_path / "out"
    assert invoke("score", logs, output, "--config", config).returncode == 0
    raw = {path: path.stat().st_mtime_ns for path in (output / "raw").rglob("*.parquet")}
    # The state after the crash: all rows are committed, and the manifest does not contain them yet.
    state = manifest(output)
    state["files"][0]["state"] = "pending"
    (output / "manifest.json").write_text(json.dumps(state))
    (output / "_checkpoint").mkdir()
    pq.write_table(read_table(output, "raw").select(["row_key"]), output / "_checkpoint" / "0.parquet")
    done = invoke("run", logs, output, "--config", config)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "40 of them already committed" in done.stdout + done.stderr
    assert {path: path.stat().st_mtime_ns for path in (output / "raw").rglob("*.parquet")} == raw
    assert len(read_rows(output)) == 40


def test_an_unreadable_file_is_scored_when_it_is_readable(tmp_path: Path) -> None:
    write_logs(tmp_path / "logs" / "a.parquet", example_rows(3))
    (tmp_path / "logs" / "b.parquet").write_text("no parquet")
    config = write_job(tmp_path / "job.yaml", members={"slms": [], "detectors": [NOVELTY]}, input={"on_bad_file": "skip"})
    first = invoke("run", tmp_path / "logs", tmp_path / "out", "--config", config)
    assert first.returncode == 0 and "3 in = 3 scored" in first.stdout and "b.parquet" in first.stdout
    write_logs(tmp_path / "logs" / "b.parquet", example_rows(2, start=3))
    second = invoke("run", tmp_path / "logs", tmp_path / "out", "--config", config)
    assert second.returncode == 0 and "5 in = 2 scored + 0 unscorable + 3 skipped" in second.stdout
    assert len({r["row_id"] for r in read_rows(tmp_path / "out")}) == 5
    write_logs(tmp_path / "logs" / "b.parquet", example_rows(3, start=3))
    changed = invoke("run", tmp_path / "logs", tmp_path / "out", "--config", config)
    fails(changed, "input.changed-file")
