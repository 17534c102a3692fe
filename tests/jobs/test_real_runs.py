"""Whole runs with real Ray, real vLLM or PyTorch, and real models."""

import json
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest
import yaml

from ragassay.jobs.config.verdict import DEFAULT_SENTENCE
from tests.conftest import HANDBOOK, write_logs
from tests.jobs.conftest import invoke, manifest, ragassay, read_rows, read_table, write_job
from tests.raises import fails

pytestmark = [pytest.mark.slow, pytest.mark.engine]
DAYS = ("02", "03")
ROWS = 24


def day_rows(day: str) -> list[dict[str, Any]]:
    """The first rows of a day of the bundled logs: all three responses to each of four questions."""
    rows: list[dict[str, Any]] = pq.read_table(HANDBOOK / f"dt=2026-11-{day}").slice(0, 12).to_pylist()
    return rows


@pytest.fixture(scope="module", params=["vllm", "auto"])
def handbook_day(
    request: pytest.FixtureRequest, shared_ray_session: None, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, Path]:
    """Rows of two days of the bundled logs, scored by the bundled SLM: the output and the job file."""
    folder = tmp_path_factory.mktemp("handbook")
    for day in DAYS:
        write_logs(folder / "logs" / f"dt=2026-11-{day}" / "a.parquet", day_rows(day))
    config = write_job(
        folder / "job.yaml",
        members={"slms": [{"name": "smollm2", "whole_response": True, "dtype": "float32", "engine": request.param}]},
        verdict={"aggregate": {"positive": "clip"}, "threshold": {"quantile": 0.5}},
        runtime={"block_mib": 0.02},
    )
    done = invoke("run", folder / "logs", folder / "out", "--config", config)
    assert done.returncode == 0 and "Warning" not in done.stderr, done.stdout + done.stderr
    return folder / "out", config


def test_the_output_has_a_score_for_every_row_and_the_partitions_of_the_logs(handbook_day: tuple[Path, Path]) -> None:
    output, _ = handbook_day
    logs = {r["row_id"]: r for day in DAYS for r in day_rows(day)}
    rows = read_rows(output)
    assert {r["row_id"] for r in rows} == set(logs) and len(rows) == len(logs) == ROWS
    assert sorted(p.name for p in (output / "scored").iterdir()) == ["dt=2026-11-02", "dt=2026-11-03"]
    for row in rows:
        log = logs[row["row_id"]]
        assert all(
            row[name] == log[name] for name in ("question", "context", "response", "label", "sentence_labels", "logged_at")
        )
        assert row["status"] == "ok" and row["error"] is None and np.isfinite(row["score"])
        assert row["verdict"] == ("supported" if row["score"] > row["threshold"] else "hallucinated")
        assert len(row["sentences"]) >= len(log["sentence_labels"])
        for sentence in row["sentences"]:
            assert log["response"][sentence["start"] : sentence["end"]] == sentence["text"]
        assert row["flagged_sentences"] == sum(s["state"] == "flagged" for s in row["sentences"])
        assert row["flagged_sentences"] == 0 or row["verdict"] == "hallucinated"
        assert all((s["score"] is None) == (s["state"] is None) == s["repeats"] for s in row["sentences"])
        (member,) = row["members"]
        assert len(member["sentence_scores"]) == len(row["sentences"]) and member["response_score"] is not None
        assert all(-60 < lp < 0 for lp in member["log_p_yes"] + member["log_p_no"])
        assert all(np.exp(y) + np.exp(n) <= 1 + 1e-5 for y, n in zip(member["log_p_yes"], member["log_p_no"], strict=True))


def test_check_of_a_single_answer_gives_the_scores_of_the_run(handbook_day: tuple[Path, Path], tmp_path: Path) -> None:
    output, config = handbook_day
    answers = tmp_path / "answers.jsonl"
    rows = day_rows(DAYS[0])[:6]
    answers.write_text(
        "".join(json.dumps({k: r[k] for k in ("row_id", "question", "context", "response")}) + "\n" for r in rows)
    )
    done = ragassay("check", answers, "--history", output, "--config", config, "--json")
    assert done.returncode == 0 and done.stderr == "", done.stderr  # the engine prints nothing either
    known = {row["row_id"]: row for row in read_rows(output)}
    for line in done.stdout.splitlines():
        checked = json.loads(line)
        row = known[checked["row_id"]]
        assert checked["score"] == pytest.approx(row["score"], abs=1e-3) and checked["verdict"] == row["verdict"]
        assert checked["threshold"] == row["threshold"] and "the latest verdicts of" in checked["judged_by"]
        for name in ("log_p_yes", "log_p_no"):
            assert checked["members"][0][name] == pytest.approx(row["members"][0][name], abs=1e-3)
    assert len(done.stdout.splitlines()) == len(rows)


def test_manifest_balances_and_reuse_is_counted(handbook_day: tuple[Path, Path]) -> None:
    output, _ = handbook_day
    run = manifest(output)["runs"][-1]
    assert run["rows"] == {"in": ROWS, "scored": ROWS, "failed": 0, "skipped": 0}
    rows = read_rows(output)
    assert run["sentences"] == sum(len(r["sentences"]) for r in rows)
    assert run["flagged"] == sum(r["verdict"] == "hallucinated" for r in rows)
    used = run["usage"]["smollm2"]
    assert used["prompts"] == run["sentences"] + ROWS  # one per whole response, too
    assert used["tokens_reused"] > used["tokens_computed"] > 0
    assert {p["state"] for p in manifest(output)["files"]} == {"scored"}
    assert not (output / "_checkpoint").exists() and not (output / "_lock").exists()


def test_polars_and_duckdb_read_the_output_directly(handbook_day: tuple[Path, Path]) -> None:
    pattern = f"{handbook_day[0]}/scored/**/*.parquet"
    by_polars = (
        pl.scan_parquet(pattern, hive_partitioning=True).select(pl.len(), pl.col("flagged_sentences").sum()).collect().row(0)
    )
    by_duckdb = duckdb.sql(f"select count(*), sum(flagged_sentences) from read_parquet('{pattern}', hive_partitioning=true)")
    assert by_duckdb and by_polars == by_duckdb.fetchall()[0] and by_polars[0] == ROWS


def has_score(row: dict[str, Any]) -> list[bool]:
    """Whether each sentence of a row has a score: repeated sentences have none."""
    return [not sentence["repeats"] for sentence in row["sentences"]]


def test_scores_follow_from_the_raw_values_by_the_formulas(handbook_day: tuple[Path, Path]) -> None:
    output, _ = handbook_day
    raw = read_table(output, "raw").to_pylist()
    odds = {r["row_id"]: np.subtract(r["members"][0]["log_p_yes"], r["members"][0]["log_p_no"])[has_score(r)] for r in raw}
    all_odds = np.concatenate(list(odds.values()))
    mu, sigma = all_odds.mean(), all_odds.std()
    for row in read_rows(output):
        z = (odds[row["row_id"]] - mu) / sigma
        positive = np.maximum(z, 0.01)
        assert [s["score"] for s in row["sentences"] if not s["repeats"]] == pytest.approx(z, abs=1e-4)
        mean, lowest = len(z) / np.sum(1 / positive), positive.min() / DEFAULT_SENTENCE
        assert row["score"] == pytest.approx(min(mean, lowest), rel=1e-4, abs=1e-4)


def test_plan_forecasts_the_tokens_that_the_engine_computed(handbook_day: tuple[Path, Path]) -> None:
    output, config = handbook_day
    done = invoke("plan", config.parent / "logs", "--config", config, "--seconds", "0")
    assert done.returncode == 0, done.stderr
    line = next(line for line in done.stdout.splitlines() if line.startswith("tokens smollm2"))
    used = manifest(output)["runs"][0]["usage"]["smollm2"]
    assert int(line.split()[2].replace(",", "")) == pytest.approx(used["tokens_computed"], rel=0.05)
    assert used["idle_seconds"] >= 0 and used["engine_seconds"] > 0


def test_the_next_run_skips_scored_rows(handbook_day: tuple[Path, Path]) -> None:
    output, config = handbook_day
    before = {f: f.stat().st_mtime_ns for f in (output / "raw").rglob("*.parquet")}
    done = invoke("run", config.parent / "logs", output, "--config", config)
    assert done.returncode == 0 and f"{ROWS} skipped" in done.stdout
    assert {f: f.stat().st_mtime_ns for f in (output / "raw").rglob("*.parquet")} == before


def test_finalize_with_other_settings_needs_no_model(
    handbook_day: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output, config = handbook_day
    monkeypatch.setenv("RAGASSAY_HOME", str(tmp_path / "no-models-here"))
    (slm,) = yaml.safe_load(config.read_text())["members"]["slms"]
    slms = [slm | {"value": "p_yes"}]
    for threshold in (-100.0, 100.0):
        config = write_job(
            tmp_path / "other.yaml",
            members={"slms": slms},
            verdict={"aggregate": {"mean": "min", "positive": "none"}, "threshold": {"value": threshold}},
        )
        done = invoke("finalize", output, "--config", config)
        assert done.returncode == 0, done.stderr
        rows = read_rows(output)
        assert {r["verdict"] for r in rows} == {"supported" if threshold < 0 else "hallucinated"}
        assert all(r["score"] == min(s["score"] for s in r["sentences"] if not s["repeats"]) for r in rows)
    assert not (tmp_path / "no-models-here" / "models").exists()


def test_another_model_or_prompt_is_refused(handbook_day: tuple[Path, Path], tmp_path: Path) -> None:
    config = write_job(
        tmp_path / "other.yaml",
        members={"slms": [{"name": "smollm2", "dtype": "float32", "prompt": "{{ context | join }} {{ sentence }} Yes or No?"}]},
    )
    done = invoke("run", handbook_day[1].parent / "logs", handbook_day[0], "--config", config)
    fails(done, "output.other-settings", "members.slms.smollm2.prompt")


def test_a_lock_keeps_a_second_run_out(handbook_day: tuple[Path, Path], tmp_path: Path) -> None:
    from ragassay.jobs.output.lock import lock_output
    from ragassay.jobs.storage.folder import open_folder

    output, config = handbook_day
    impatient = write_job(tmp_path / "job.yaml", yaml.safe_load(config.read_text()), runtime={"wait_minutes": 0})
    with lock_output(open_folder(str(output))):
        done = invoke("run", config.parent / "logs", output, "--config", impatient)
    fails(done, "output.locked")
