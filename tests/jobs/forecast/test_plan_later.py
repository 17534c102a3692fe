"""`ragassay plan` for a job that escalates or explains: what that asks and costs follows from sample, share and price."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from ragassay.jobs.config.input import Columns
from ragassay.jobs.config.job import Job, make_job
from ragassay.jobs.forecast.count import USUAL_ANSWER, count_stretches
from ragassay.jobs.forecast.estimate import Forecast, flagged_share, forecast_lines, forecast_run
from ragassay.jobs.forecast.sample import read_sample
from ragassay.jobs.forecast.trial import Trial
from ragassay.jobs.input import find_logs
from ragassay.pipeline.reasoning.cost_budget import estimate_tokens
from ragassay.pipeline.reasoning.prompt import make_chat
from ragassay.pipeline.rows import select_ok_rows
from ragassay.pipeline.slm.served import render_prompt
from ragassay.pipeline.stages.split import SplitStage
from tests.conftest import example_rows, write_logs
from tests.job_settings import merged
from tests.jobs.conftest import here, write_job

SERVED = {"model": "large", "engine": {"kind": "server", "base_url": "http://127.0.0.1:9/v1"}}
PRICE = {"input": 2.0, "output": 8.0}
PRICED = {**SERVED, "price": PRICE}
DETECTORS: dict[str, Any] = {"members": {"slms": [], "detectors": [{"name": "novelty", "kind": "novelty"}]}}


def job_of(reasoner: dict[str, Any] | None = None, **other: Any) -> Job:
    return make_job(
        merged(
            DETECTORS,
            {"verdict": {"threshold": {"quantile": 0.2}}, "escalation": {"explainer": reasoner or PRICED}},
            other,
        )
    )


def cascade(**section: Any) -> Job:
    return make_job(
        merged(DETECTORS, {"escalation": {"judge": {"name": "judge", **SERVED}, "share": 0.4, "price": PRICE, **section}})
    )


def sampled(folder: Path, rows: list[dict[str, Any]], job: Job, sample: int = 1_000) -> list[pa.Table]:
    """The rows of a new log that `plan` looks at, split."""
    write_logs(folder / "a.parquet", rows)
    tables = read_sample(find_logs(str(folder)), Columns(), sample)
    return [SplitStage((job.splitting.pipeline, job.splitting.language), job.members.need_question)(table) for table in tables]


def forecasts_of(
    folder: Path, rows: list[dict[str, Any]], job: Job, sample: int = 1_000, trials: dict[str, Trial] | None = None
) -> list[Forecast]:
    """The forecasts, as `plan` makes them."""
    counted = count_stretches(job, sampled(folder, rows, job, sample))
    return forecast_run(job, find_logs(str(folder)), counted, trials or {})


def later(folder: Path, rows: list[dict[str, Any]], job: Job, sample: int = 1_000) -> Forecast:
    """What is first asked after scoring."""
    return forecasts_of(folder, rows, job, sample)[1]


def test_what_explaining_asks_is_the_chats_about_the_sentences(tmp_path: Path) -> None:
    job = job_of()
    assert job.escalation.explainer is not None
    whole, told, thousand = forecasts_of(tmp_path, example_rows(7), job)
    chats = [
        make_chat(
            job.escalation.explainer.strategy,
            job.escalation.explainer.categories,
            row.context,
            row.question,
            row.response,
            sentence,
        )
        for table in sampled(tmp_path, example_rows(7), job)
        for row in select_ok_rows(table)[1]
        for sentence in row.sentences
    ]
    assert told.sentences == pytest.approx(0.2 * whole.sentences) and whole.sentences == len(chats)
    asked = thousand.asked
    assert asked.tokens == pytest.approx(1000 * estimate_tokens(chats) / len(chats)) and asked.prompts == pytest.approx(1000)
    assert asked.answers == pytest.approx(1000 * USUAL_ANSWER)
    assert asked.most_answers == pytest.approx(1000 * job.escalation.explainer.max_tokens)
    assert thousand.dollars == pytest.approx(
        ((2 * asked.tokens + 8 * asked.answers) / 1e6, (2 * asked.tokens + 8 * asked.most_answers) / 1e6)
    )


def test_what_a_cascade_asks_is_the_judges_prompts_of_the_share(tmp_path: Path) -> None:
    job = cascade()
    told = later(tmp_path, example_rows(12), job)
    (table,) = sampled(tmp_path, example_rows(12), job)
    assert job.escalation.policy is not None
    prompts = [
        render_prompt(job.escalation.policy.judge, row, text) for row in select_ok_rows(table)[1] for text in row.sentences
    ]
    tokens = estimate_tokens([[{"role": "user", "content": prompt}] for prompt in prompts])
    assert (told.rows, told.sentences, told.asked.prompts) == pytest.approx((4.8, 0.4 * len(prompts), 0.4 * len(prompts)))
    assert told.asked.tokens == pytest.approx(0.4 * tokens)
    assert told.dollars == pytest.approx([0.4 * (2.0 * tokens + 8.0 * len(prompts)) / 1e6] * 2)


@pytest.mark.parametrize("job", [job_of(), cascade()])
def test_the_sample_stands_for_the_whole_log(tmp_path: Path, job: Job) -> None:
    whole, part = (later(tmp_path / str(sample), example_rows(600), job, sample) for sample in (1_000, 160))
    assert part.sentences == pytest.approx(whole.sentences, rel=0.05)
    assert part.dollars == pytest.approx(whole.dollars, rel=0.06)


def test_rows_that_can_not_be_scored_do_not_count(tmp_path: Path) -> None:
    rows = example_rows(12)
    broken: list[dict[str, Any]] = [{**row, "context": None} for row in example_rows(12, start=12)]
    mixed, good = (later(tmp_path / str(len(some)), some, job_of()) for some in ([*broken, *rows], rows))
    assert mixed.asked == good.asked and mixed.sentences == good.sentences
    for job in (job_of(), cascade()):
        assert len(forecasts_of(tmp_path / "broken", broken, job)) == 1


def test_without_a_price_there_are_tokens_only(tmp_path: Path) -> None:
    told = forecasts_of(tmp_path, example_rows(12), job_of(SERVED))
    printed = str(forecast_lines(job_of(SERVED), told))
    assert {part.dollars for part in told} == {None} and " tokens (at most" in printed and "USD" not in printed


def test_no_answer_is_longer_than_it_may_be(tmp_path: Path) -> None:
    told = later(tmp_path, example_rows(12), job_of({**PRICED, "max_tokens": 50}))
    assert told.asked.answers == told.asked.most_answers == pytest.approx(50 * told.asked.prompts)


def test_a_quantile_tells_how_much_will_be_flagged_and_a_value_does_not(tmp_path: Path) -> None:
    for threshold, sentences in (({"quantile": 0.07}, [17.5, 1000]), ({"value": 0.4}, [12.5, 50, 125, 1000])):
        _, *told = forecasts_of(tmp_path, example_rows(100), job_of(verdict={"threshold": threshold}))
        assert [part.sentences for part in told] == pytest.approx(sentences)
    # The threshold that nobody set is a quantile; for the default members the bundled calibration takes its place.
    jobs: list[dict[str, Any]] = [
        {},
        {"verdict": {"threshold": {"quantile": 0.2}}},
        DETECTORS,
        merged(DETECTORS, {"verdict": {"calibration": "cal.json"}}),
    ]
    assert [flagged_share(make_job(job)) for job in jobs] == [None, 0.2, 0.2, None]


def test_a_local_judge_takes_the_time_that_its_engine_took(tmp_path: Path, embedded: str) -> None:
    job = cascade(judge={"name": "judge", "replicas": {"max": 2}}, price=None)
    (_, told), (_, tried) = (
        forecasts_of(tmp_path, example_rows(12), job, trials=trials) for trials in ({}, {"judge": Trial(20.0, 100.0, 2)})
    )
    assert told.dollars is None and told.seconds is None and told.asked.computed > 40
    assert tried.seconds == pytest.approx(20 + told.asked.computed / 100 / 2)
    assert "s here, start-up included" in dict(forecast_lines(job, [tried, tried]))["escalate"]


def test_a_dynamic_share_is_said_to_be_a_guess(tmp_path: Path) -> None:
    told = later(tmp_path, example_rows(12), cascade(share=None, threshold="dynamic", when="novelty"))
    assert told.rows == 6 and "50% if the values of novelty lie alike above and below their mean" in told.notes[0]


def test_the_command_prints_it_where_the_job_has_it(tmp_path: Path) -> None:
    write_logs(tmp_path / "a.parquet", example_rows(40))
    common = merged(DETECTORS, {"verdict": {"threshold": {"quantile": 0.2}}})
    section = {"judge": {"name": "judge", **SERVED}, "share": 0.25, "price": PRICE}
    for sections in ({"escalation": {"explainer": PRICED, **section}}, {}):
        config = write_job(tmp_path / "job.yaml", **common, **sections)
        done = here("plan", tmp_path / "a.parquet", "--config", config, "--seconds", "0")
        assert done.returncode == 0, done.stderr
        for text in (
            "about 20 flagged sentences (20% of the sentences",
            "about 10 responses (25% of those that can be scored) with 25 sentences, to judge",
            "USD, at most",
        ):
            assert (text in " ".join(done.stdout.split())) == bool(sections)
