"""`ragassay plan` for a job with a cascade: what the judge will be asked, and what that costs."""

from pathlib import Path
from typing import Any

import pytest

from ragassay.jobs.config import Job, make_job
from ragassay.jobs.forecast.escalate import EscalateForecast, escalate_lines, forecast_escalate
from ragassay.jobs.forecast.trial import Trial
from ragassay.pipeline.explain.purse import about_tokens
from ragassay.pipeline.rows import good_rows
from ragassay.pipeline.slm.served import prompt_of
from tests.conftest import example_rows, write_logs
from tests.jobs.conftest import here, write_job

from .test_plan_explain import DETECTORS, sampled

SERVED = {"name": "judge", "model": "large", "engine": {"kind": "server", "base_url": "http://127.0.0.1:9/v1"}}
PRICE = {"input": 2.0, "output": 8.0}


def job_of(**section: Any) -> Job:
    return make_job({**DETECTORS, "escalate": {"to": SERVED, "share": 0.4, **section}})


def told_of(folder: Path, job: Job, rows: int = 12, of: int | None = None) -> EscalateForecast:
    told = forecast_escalate(job, of or rows, sampled(folder, example_rows(rows), job), 0.0)
    assert told is not None
    return told


def test_it_is_the_judges_prompts_of_the_share(tmp_path: Path) -> None:
    job = job_of(price=PRICE)
    told = told_of(tmp_path, job)
    (table,) = sampled(tmp_path, example_rows(12), job)
    assert job.escalate is not None
    prompts = [prompt_of(job.escalate.to, row, text) for row in good_rows(table)[1] for text in row.sentences]
    assert (told.responses, told.sentences, told.prompts) == (12, len(prompts), len(prompts))
    assert told.tokens == pytest.approx(about_tokens([[{"role": "user", "content": p}] for p in prompts]))
    assert told.dollars == pytest.approx(0.4 * (2.0 * told.tokens + 8.0 * told.prompts) / 1e6)


def test_it_grows_with_log_and_share(tmp_path: Path) -> None:
    one = told_of(tmp_path / "a", job_of(price=PRICE))
    many, all_of_them = (
        told_of(tmp_path / "b", job_of(price=PRICE), of=1200),
        told_of(tmp_path / "c", job_of(price=PRICE, share=1)),
    )
    assert (
        one.dollars
        and many.dollars == pytest.approx(100 * one.dollars)
        and all_of_them.dollars == pytest.approx(2.5 * one.dollars)
    )
    assert (many.responses, many.sentences) == (1200, 100 * one.sentences)


def test_a_local_judge_takes_the_time_that_its_engine_took(tmp_path: Path, embedded: str) -> None:
    told = told_of(tmp_path, job_of(to={"name": "judge", "replicas": {"max": 2}}))
    assert told.dollars is None and told.seconds is None and told.tokens > 100
    tried = EscalateForecast(told.escalate, 12, 30, 30, 10_000, Trial(start_up=20.0, tokens_per_second=100.0))
    assert tried.seconds == pytest.approx(20 + 0.4 * 10_000 / 100 / 2)
    lines = dict(escalate_lines(tried, "40 s"))
    assert lines["tokens judge"] == "4,000 to compute of 12 prompts; 40 s here, start-up included"


def test_a_dynamic_share_is_said_to_be_a_guess(tmp_path: Path) -> None:
    told = told_of(tmp_path, job_of(share=None, threshold="dynamic", when="novelty"))
    assert told.share == 0.5
    assert "50%, if the values of novelty lie alike above and below their mean" in dict(escalate_lines(told, None))["escalate"]


def test_the_command_prints_it_where_the_job_escalates(tmp_path: Path) -> None:
    write_logs(tmp_path / "a.parquet", example_rows(40))
    section = {"to": SERVED, "share": 0.25, "price": PRICE}
    config = write_job(tmp_path / "job.yaml", **DETECTORS, escalate=section)
    done = here("plan", tmp_path / "a.parquet", "--config", config, "--seconds", "0")
    assert done.returncode == 0, done.stderr
    line = next(line for line in done.stdout.splitlines() if line.startswith("escalate "))
    assert "about 10 responses (25% of those that can be scored) with 25 sentences, to judge" in line and "USD" in done.stdout
    plain = here("plan", tmp_path / "a.parquet", "--config", write_job(tmp_path / "plain.yaml", **DETECTORS), "--seconds", "0")
    assert plain.returncode == 0 and "escalate" not in plain.stdout
