"""`ragassay plan` for a job that explains: tokens and dollars follow from the sample, the threshold and the price."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from ragassay.jobs.config import Job, make_job
from ragassay.jobs.forecast import explain
from ragassay.jobs.forecast.estimate import forecast
from ragassay.jobs.forecast.explain import ExplainForecast, explain_lines, forecast_explain
from ragassay.jobs.forecast.sample import read_sample
from ragassay.jobs.forecast.tokens import count_stretches
from ragassay.jobs.input import find_logs
from ragassay.jobs.sections import Columns
from ragassay.pipeline.explain.prompt import chat_of
from ragassay.pipeline.explain.purse import about_tokens
from ragassay.pipeline.rows import good_rows
from ragassay.pipeline.stages.split import Split
from tests.conftest import example_rows, write_logs
from tests.jobs.conftest import here, write_job

SERVED = {"model": "large", "engine": {"kind": "server", "base_url": "http://127.0.0.1:9/v1"}}
PRICED = {**SERVED, "price": {"input": 2.0, "output": 8.0}}
DETECTORS: dict[str, Any] = {"slms": [], "detectors": [{"name": "novelty", "kind": "novelty"}]}


def job_of(reasoner: dict[str, Any] | None = None, **other: Any) -> Job:
    return make_job({**DETECTORS, "threshold": {"quantile": 0.2}, "explain": reasoner or PRICED, **other})


def sampled(folder: Path, rows: list[dict[str, Any]], job: Job, sample: int = 1_000) -> list[pa.Table]:
    """The rows of a new log that `plan` looks at, split."""
    write_logs(folder / "a.parquet", rows)
    tables = read_sample(find_logs(str(folder)), Columns(), sample)
    return [Split((job.splitter.name, job.splitter.language), job.question_needed)(table) for table in tables]


def told_of(folder: Path, rows: list[dict[str, Any]], job: Job, sample: int = 1_000) -> ExplainForecast:
    """The forecast, as `plan` makes it."""
    split = sampled(folder, rows, job, sample)
    whole = forecast(job, find_logs(str(folder)), count_stretches(job, split), 0.0)
    told = forecast_explain(job, whole.sentences, split)
    assert told is not None
    return told


def printed(told: ExplainForecast) -> str:
    return "\n".join(f"{name}  {text}" for name, text in explain_lines(told))


def test_tokens_are_those_of_the_chats_about_the_sentences(tmp_path: Path) -> None:
    job = job_of()
    assert job.explain is not None
    told = told_of(tmp_path, example_rows(7), job)
    chats = [
        chat_of(job.explain.strategy, job.explain.categories, row.context, row.question, row.response, sentence)
        for table in sampled(tmp_path, example_rows(7), job)
        for row in good_rows(table)[1]
        for sentence in row.sentences
    ]
    assert told.chats == told.sentences == len(chats)
    assert told.chat_tokens == pytest.approx(about_tokens(chats) / len(chats))
    cost = told.cost(10)
    assert cost.prompt_tokens == pytest.approx(10 * told.chat_tokens)
    assert (cost.answer_tokens, cost.most_answer_tokens) == (10 * explain.USUAL_ANSWER, 10 * job.explain.max_tokens)


def test_twice_the_rows_are_twice_the_estimate(tmp_path: Path) -> None:
    one, two = (told_of(tmp_path / str(n), example_rows(12) * n, job_of()) for n in (1, 2))
    assert two.sentences == 2 * one.sentences and two.chat_tokens == pytest.approx(one.chat_tokens)
    assert one.shares == two.shares == (0.2,)
    costs = [told.cost(told.sentences * told.shares[0]).dollars for told in (one, two)]
    assert costs[0] and costs[1] == pytest.approx(2 * costs[0])


def test_the_sample_stands_for_the_whole_log(tmp_path: Path) -> None:
    whole = told_of(tmp_path / "whole", example_rows(600), job_of())
    part = told_of(tmp_path / "part", example_rows(600), job_of(), sample=160)
    assert part.sentences == pytest.approx(whole.sentences, rel=0.05) and whole.sentences == 1_500
    assert part.chat_tokens == pytest.approx(whole.chat_tokens, rel=0.01)


@pytest.mark.parametrize("cap", [1, 2, 7, 29, 30, 31])
def test_the_chats_looked_at_lie_evenly_over_the_sample(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cap: int) -> None:
    monkeypatch.setattr(explain, "CHATS", cap)
    job = job_of()
    table = sampled(tmp_path, example_rows(12), job)
    stretches = [part for whole in table for part in (whole.slice(0, 5), whole.slice(5, 0), whole.slice(5))]
    asked: list[tuple[str, str]] = []

    def chat_noted(*given: Any) -> list[Any]:
        asked.append((given[4], given[5]))
        return []

    monkeypatch.setattr(explain, "chat_of", chat_noted)
    forecast_explain(job, 30, stretches)
    every = [(row.response, text) for part in stretches for row in good_rows(part)[1] for text in row.sentences]
    assert len(every) == 30 and len(asked) == min(cap, 30)
    places = [every.index(one) for one in asked]
    assert places == sorted(set(places))
    gaps = [b - a for a, b in zip([-1, *places], [*places, 30], strict=True)]
    assert max(gaps) <= 30 // len(asked) + 1


def test_rows_that_can_not_be_scored_do_not_count(tmp_path: Path) -> None:
    rows = example_rows(12)
    broken: list[dict[str, Any]] = [{**row, "context": None} for row in example_rows(12, start=12)]
    mixed = [row for pair in zip(broken, rows, strict=True) for row in pair]
    assert told_of(tmp_path / "mixed", mixed, job_of()) == told_of(tmp_path / "good", rows, job_of())
    assert forecast_explain(job_of(), 0.0, sampled(tmp_path / "broken", broken, job_of())) is None


def test_dollars_are_linear_in_the_price(tmp_path: Path) -> None:
    split = sampled(tmp_path, example_rows(12), job_of())
    costs = []
    for price in ({"input": 2.0, "output": 8.0}, {"input": 4.0, "output": 16.0}, {"input": 0.0, "output": 8.0}):
        told = forecast_explain(job_of({**SERVED, "price": price}), 30, split)
        assert told is not None
        costs.append(told.cost(500_000))
    first, double, answers = costs
    assert first.dollars and first.most_dollars and double.dollars == pytest.approx(2 * first.dollars)
    assert double.most_dollars == pytest.approx(2 * first.most_dollars)
    assert answers.dollars == pytest.approx(8.0 * 0.5 * explain.USUAL_ANSWER) and first.dollars < first.most_dollars


def test_without_a_price_there_are_tokens_only(tmp_path: Path) -> None:
    told = told_of(tmp_path, example_rows(12), job_of(SERVED))
    assert told.cost(10).dollars is None and told.cost(10).most_dollars is None
    assert "tokens" in printed(told) and "USD" not in printed(told)


def test_no_answer_is_longer_than_it_may_be(tmp_path: Path) -> None:
    told = told_of(tmp_path, example_rows(12), job_of({**PRICED, "max_tokens": 50}))
    cost = told.cost(10)
    assert cost.answer_tokens == cost.most_answer_tokens == 500 and cost.dollars == cost.most_dollars
    assert "answers of 50 tokens, at most 50" in printed(told)


def test_a_quantile_tells_how_much_will_be_flagged(tmp_path: Path) -> None:
    told = told_of(tmp_path, example_rows(100), job_of(threshold={"quantile": 0.07}))
    text = printed(told)
    assert told.sentences == 250 and "about 18 flagged sentences (7% of the sentences, as of the responses)" in text
    assert "explain 1,000  flagged sentences, however many" in text and "explain at" not in text


@pytest.mark.parametrize("other", [{"threshold": {"value": 0.4}}, {"calibration": "cal.json"}])
def test_where_a_value_decides_two_shares_are_priced(tmp_path: Path, other: dict[str, Any]) -> None:
    job = make_job({**DETECTORS, "explain": PRICED, **other})
    told = told_of(tmp_path, example_rows(100), job)
    assert told.quantile is None and told.shares == (0.05, 0.2, 0.5)
    text = printed(told)
    assert "explain at 5%  about 12 flagged" in text and "explain at 20%  about 50 flagged" in text and "explain 1,000" in text


def test_where_the_bundled_calibration_decides_there_is_no_quantile(tmp_path: Path) -> None:
    # The threshold that nobody set is a quantile; for the default members the bundled calibration takes its place.
    split = sampled(tmp_path, example_rows(5), job_of())
    jobs = [{}, {"threshold": {"quantile": 0.2}}, DETECTORS]
    told = [forecast_explain(make_job({**job, "explain": PRICED}), 100, split) for job in jobs]
    assert [one and one.quantile for one in told] == [None, 0.2, 0.2]


def test_a_local_reasoner_is_told_by_the_same_rule_of_thumb(tmp_path: Path) -> None:
    local = told_of(tmp_path / "a", example_rows(12), job_of({"model": "org/large", "replicas": {"num_gpus": 1}}))
    served = told_of(tmp_path / "b", example_rows(12), job_of(SERVED))
    assert local.chat_tokens == served.chat_tokens
    assert "its own tokenizer" in printed(local) and "its own tokenizer" not in printed(served)
    assert all("4 bytes a token" in printed(told) for told in (local, served))


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0"), (0.4, "0"), (999.6, "1,000"), (1_243, "1,240"), (1_912_344, "1,910,000")]
)
def test_estimates_have_three_figures(number: float, text: str) -> None:
    assert explain.rough(number) == text


def test_the_command_prints_it_where_the_job_explains(tmp_path: Path) -> None:
    write_logs(tmp_path / "a.parquet", example_rows(40))
    common = {**DETECTORS, "threshold": {"quantile": 0.2}}
    done = here("plan", tmp_path / "a.parquet", "--config", write_job(tmp_path / "job.yaml", **common, explain=PRICED))
    assert done.returncode == 0, done.stderr
    line = next(line for line in done.stdout.splitlines() if line.startswith("explain "))
    assert "about 20 flagged sentences (20% of the sentences" in line and " USD, at most " in line
    assert "rule of thumb" in done.stdout
    done = here("plan", tmp_path / "a.parquet", "--config", write_job(tmp_path / "plain.yaml", **common))
    assert done.returncode == 0 and "sentences" in done.stdout
    assert "explain" not in done.stdout and "rule of thumb" not in done.stdout
