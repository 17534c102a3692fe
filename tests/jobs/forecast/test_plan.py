"""`ragassay plan`: the sample, the count, the extrapolation, the warnings, and the real engine's own count."""

from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ragassay.jobs.config.input import Columns
from ragassay.jobs.config.job import Job, make_job
from ragassay.jobs.forecast import sample
from ragassay.jobs.forecast.count import Asked, Counted, count_stretches
from ragassay.jobs.forecast.estimate import Forecast, forecast_lines, forecast_run, rough
from ragassay.jobs.forecast.sample import read_sample
from ragassay.jobs.forecast.trial import Trial
from ragassay.jobs.input import LogFile, Logs, find_logs
from ragassay.jobs.scoring.stages import make_uncertainty_stages
from ragassay.pipeline.stages.split import SplitStage
from tests.conftest import example_rows, write_logs
from tests.jobs.conftest import here, ragassay, write_job
from tests.raises import fails

UNTUNED = make_job({"members": {"slms": [{"name": "smollm2"}]}})


def rows_of(tables: list[pa.Table]) -> list[int]:
    return [key for table in tables for key in table["row_key"].to_pylist()]


def split_all(job: Job, tables: list[pa.Table]) -> list[pa.Table]:
    return [SplitStage((job.splitting.pipeline, job.splitting.language), True)(table) for table in tables]


def test_a_small_log_is_looked_at_whole(tmp_path: Path) -> None:
    write_logs(tmp_path / "dt=1" / "a.parquet", example_rows(50), row_group_size=20)
    write_logs(tmp_path / "dt=2" / "b.parquet", example_rows(30, start=50))
    tables = read_sample(find_logs(str(tmp_path)), Columns(), 80)
    assert sum(t.num_rows for t in tables) == 80
    ids = [i for t in tables for i in t["row_id"].to_pylist()]
    assert len(set(ids)) == 80


def test_a_large_log_gives_stretches_of_neighbours_that_do_not_overlap(tmp_path: Path) -> None:
    write_logs(tmp_path / "a.parquet", example_rows(900), row_group_size=50)
    write_logs(tmp_path / "b.parquet", example_rows(100, start=900), row_group_size=7)
    tables = read_sample(find_logs(str(tmp_path)), Columns(), 160)
    ids = [i for t in tables for i in t["row_id"].to_pylist()]
    assert len(ids) == len(set(ids)) and 50 < len(ids) <= 160
    for table in tables:
        keys = table["row_key"].to_pylist()
        assert keys == list(range(keys[0], keys[0] + len(keys)))


@pytest.mark.parametrize("group", [1_000, 50, 7])
def test_a_sample_is_as_large_as_asked_for_and_from_everywhere(tmp_path: Path, group: int) -> None:
    write_logs(tmp_path / "a.parquet", example_rows(1_000), row_group_size=group)
    tables = read_sample(find_logs(str(tmp_path)), Columns(), 160)
    keys = rows_of(tables)
    assert len(keys) == len(set(keys)) and 100 <= len(keys) <= 160
    assert {key // 250 for key in keys} == {0, 1, 2, 3}


def test_empty_row_groups_have_no_stretches(tmp_path: Path) -> None:
    table = pa.Table.from_pylist(example_rows(5))
    with pq.ParquetWriter(tmp_path / "a.parquet", table.schema) as writer:
        for part in (table, table.slice(0, 0), table.slice(0, 2)):
            writer.write_table(part)
    logs = find_logs(str(tmp_path))
    assert rows_of(read_sample(logs, Columns(), 7)) == list(range(7)) and rows_of(read_sample(logs, Columns(), 6))


def test_of_a_huge_row_group_the_beginning_is_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sample, "DECODED", 300)
    write_logs(tmp_path / "a.parquet", example_rows(1_000))
    keys = rows_of(read_sample(find_logs(str(tmp_path)), Columns(), 160))
    assert len(keys) == len(set(keys)) == 160 and max(keys) < 300


def test_the_sample_is_the_same_every_time(tmp_path: Path) -> None:
    write_logs(tmp_path / "a.parquet", example_rows(500), row_group_size=50)
    logs = find_logs(str(tmp_path))
    assert rows_of(read_sample(logs, Columns(), 100)) == rows_of(read_sample(logs, Columns(), 100))


@pytest.mark.parametrize("model", [{}, {"num_gpus": 1}])
def test_blocks_are_the_engines(model: dict[str, Any]) -> None:
    (slm,) = make_job({"members": {"slms": [{"name": "m", "replicas": model}]}}).members.slms
    assert slm.cache_block_size == (16 if model else 32)
    others: list[dict[str, Any]] = [{"engine": "transformers"}, {"block_size": 64}]
    padded, large = make_job(
        {"members": {"slms": [{"name": f"m{i}", "replicas": model, **other} for i, other in enumerate(others)]}}
    ).members.slms
    assert padded.cache_block_size == 0 and large.cache_block_size == 64


def test_repeated_rows_and_shared_contexts_cost_what_they_cost(tmp_path: Path) -> None:
    rows = example_rows(6)
    write_logs(tmp_path / "a" / "a.parquet", rows * 3)
    job = UNTUNED
    tables = split_all(job, read_sample(find_logs(str(tmp_path / "a")), Columns(), 100))
    (counted,) = count_stretches(job, tables)
    assert (counted.rows, counted.repeated) == (18, 12)
    asked = counted.asked["smollm2"]
    assert asked.prompts == counted.sentences / 3 and asked.distinct < asked.computed < asked.tokens
    write_logs(tmp_path / "b" / "a.parquet", rows)
    (once,) = count_stretches(job, split_all(job, read_sample(find_logs(str(tmp_path / "b")), Columns(), 100)))
    assert once.asked["smollm2"] == asked


def test_tokens_of_uncertainty_are_those_that_are_then_read(tiny_model: str, tmp_path: Path) -> None:
    write_logs(tmp_path / "a.parquet", example_rows(12))
    job = make_job(
        {"members": {"uncertainty": [{"name": n, "model": tiny_model, "score": n} for n in ("attenhscore", "entropy")]}}
    )
    tables = split_all(job, read_sample(find_logs(str(tmp_path)), Columns(), 100))
    (counted,) = count_stretches(job, tables)
    (stage,) = make_uncertainty_stages(job)
    stage.setup()
    used = [entry for row in stage(tables[0])["usage"].to_pylist() for entry in row]
    asked = counted.asked["attenhscore"]
    assert asked.computed == sum(entry["tokens_computed"] for entry in used) < asked.tokens
    assert asked.tokens == sum(entry["tokens_computed"] + entry["tokens_reused"] for entry in used)
    assert forecast_run(job, Logs("x", None, [log_file("a", 24)]), [counted], {})[2].asked.prompts == 24


def test_rows_that_can_not_be_scored_are_told(tmp_path: Path) -> None:
    rows = example_rows(8)
    rows[0]["context"] = None
    rows[1]["question"] = "word " * 600
    write_logs(tmp_path / "a.parquet", rows)
    job = make_job({"members": {"slms": [{"name": "m", "max_model_len": 512}]}})
    logs = find_logs(str(tmp_path))
    whole, *_ = forecast_run(job, logs, count_stretches(job, split_all(job, read_sample(logs, Columns(), 100))), {})
    assert any("12.5%" in note and "no_context" in note for note in whole.notes)
    assert any("no room for a context" in note for note in whole.notes)


def counted(rows: int, computed: int) -> Counted:
    return Counted(rows=rows, sentences=3 * rows, asked={"smollm2": Asked(3 * rows, 5 * computed, computed, computed // 2)})


def log_file(path: str, rows: int, partition: str = "", groups: int = 1) -> LogFile:
    keys = (("dt", partition),) if partition else ()
    return LogFile(path, path, path, 1, keys, rows, pa.schema([]), groups)


def test_a_sample_is_extrapolated_by_rows_with_an_interval() -> None:
    rng = Random(1)
    parts = [counted(100, 10_000 + rng.randrange(-500, 500)) for _ in range(16)]
    whole, slm = forecast_run(UNTUNED, Logs("x", None, [log_file("a", 1_000_000)]), parts, {})
    assert whole.sentences == pytest.approx(3_000_000) and slm.asked.prompts == pytest.approx(3_000_000)
    low, high = slm.interval
    assert low < slm.asked.computed < high and high / low < 1.05
    assert slm.asked.computed == whole.asked.computed == pytest.approx(1e8, rel=0.02)
    assert slm.asked.distinct == pytest.approx(slm.asked.computed / 2, rel=1e-3)
    assert whole.sampled == 1600 and whole.seconds is slm.seconds is None


def timed(rate: float) -> tuple[Job, list[Forecast]]:
    """Ten files of ten rows, for two SLMs that are tried, and 2 CPUs."""
    job = make_job({"members": {"slms": [{"name": "a"}, {"name": "b", "replicas": {"max": 2}}]}})
    asked = Asked(prompts=300, tokens=20_000, computed=10_000)
    part = Counted(rows=100, sentences=300, asked={"a": asked, "b": asked})
    trials = {"a": Trial(30.0, rate, 1), "b": Trial(20.0, rate, 2)}
    return job, forecast_run(job, Logs("x", None, [log_file(f"{i}", 10) for i in range(10)]), [part], trials, 5.0, 4.0)


def test_time_is_start_up_and_the_slowest_pool_and_what_does_not_overlap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    _, (whole, a, b) = timed(100.0)
    assert whole.seconds == pytest.approx(5 + 30 + 100 + 50 / 10 + 4 / 2) and whole.start_up == 35
    assert (a.seconds, b.seconds) == (130, 70)


def test_only_long_runs_are_told_to_compile() -> None:
    assert "compile" not in dict(forecast_lines(*timed(100.0))) and "compile" in dict(forecast_lines(*timed(1.0)))


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0"), (0.4, "0"), (999.6, "1,000"), (1_243, "1,240"), (1_912_344, "1,910,000")]
)
def test_estimates_have_three_figures(number: float, text: str) -> None:
    assert rough(number) == text


def test_files_that_slow_a_job_are_warned_of() -> None:
    many = [log_file(f"f{i}", 10) for i in range(100)]
    skewed = [log_file(f"f{i}", 100, f"{i}") for i in range(9)] + [log_file("big", 5_000_000, "9")]
    for files, words in ((many, ("fewer, larger",)), (skewed, ("partition dt=9", "row groups of 5,000,000"))):
        whole, *_ = forecast_run(UNTUNED, Logs("x", None, files), [counted(100, 1000)], {})
        assert all(any(word in note for note in whole.notes) for word in words), whole.notes
    assert forecast_run(UNTUNED, Logs("x", None, [log_file("a", 100_000)]), [counted(100, 1000)], {})[0].notes == ()


def test_the_command_says_what_is_missing(tmp_path: Path) -> None:
    write_logs(tmp_path / "a.parquet", example_rows(5))
    done = here("plan", tmp_path / "a.parquet", "--gpus", "8")
    fails(done, "options.gpus-without-throughput")
    done = here("plan", tmp_path / "none.parquet")
    fails(done, "input.missing")
    for name, number in (("a", 2**60 + 1), ("b", 0.5)):
        write_logs(tmp_path / f"{name}.parquet", [{**example_rows(1)[0], "n": number}])
    done = here("plan", tmp_path, "--seconds", "0")
    fails(done, "input.values-too-wide")


def test_the_command_without_an_engine(tmp_path: Path) -> None:
    write_logs(tmp_path / "a.parquet", example_rows(40))
    command = ("plan", tmp_path / "a.parquet", "--seconds", "0", "--gpus", "8", "--gpu-tokens-per-second", "100000")
    done = here(*command, "--gpu-price", "2.5")
    assert done.returncode == 0, done.stderr
    assert "40 rows in 1 files" in done.stdout and "time on 8 GPUs" in done.stdout and "in GPU hours" in done.stdout
    config = write_job(tmp_path / "job.yaml", members={"slms": [], "detectors": [{"name": "novelty", "kind": "novelty"}]})
    done = ragassay("plan", tmp_path / "a.parquet", "--config", config)
    assert done.returncode == 0 and "time here" in done.stdout and "tokens" not in done.stdout
