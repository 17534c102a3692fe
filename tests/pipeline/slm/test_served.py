"""An SLM behind a server, as a member like the others."""

import math
from typing import Any

import pyarrow as pa
import pytest

from ragassay.jobs.config.job import make_job
from ragassay.pipeline.members import Value, scores_of
from ragassay.pipeline.rows import Row
from ragassay.pipeline.slm.config import Slm
from ragassay.pipeline.slm.served import ask_rows
from ragassay.pipeline.stages.served import ServedScorer
from ragassay.pipeline.stages.split import Split
from ragassay.schemas.columns import Status, logs_schema
from tests.chat_server import Reply, Serve, Server, completion
from tests.raises import raises, refuses

ROW = Row("When?", ["It opens at nine."], "It opens at nine. It is red.", ["It opens at nine.", "It is red."])


def by_statement(body: dict[str, Any]) -> Reply:
    """Nine is supported, red is not, and of a hat it says nothing."""
    text = body["messages"][0]["content"].rpartition("Statement: ")[2]
    if "hat" in text:
        return completion({"Maybe": 0.9, "Perhaps": 0.1})
    return completion({"Yes": 0.7, " yes": 0.1, "No": 0.15} if "nine" in text else {"No": 0.8, "Never": 0.05})


def slm(server: Server, **more: Any) -> Slm:
    return Slm.model_validate({"name": "gpt", "model": "m", "engine": "server", "base_url": server.url, **more})


def test_yes_and_no_are_sums_and_what_is_not_listed_has_no_more_than_the_last(serve: Serve) -> None:
    (found,) = ask_rows([ROW], slm(serve(by_statement)))
    assert found.status is Status.OK and found.prompts == 2 and found.tokens_computed == 82
    assert [math.exp(x) for x in found.log_p_yes] == pytest.approx([0.8, 0.05])  # of red, what it lists least
    assert [math.exp(x) for x in found.log_p_no] == pytest.approx([0.15, 0.8])


@pytest.mark.parametrize("chances", [{"Yes": 0.9}, {"Yes": 0.6, " yes": 0.3}])
def test_what_is_not_listed_has_no_more_than_is_left(serve: Serve, chances: dict[str, float | None]) -> None:
    (found,) = ask_rows([ROW], slm(serve(lambda _: completion(chances)), top_logprobs=len(chances)))
    assert [math.exp(x) for x in found.log_p_no] == pytest.approx([0.1, 0.1])


def test_a_row_that_met_a_server_in_trouble_is_counted_as_an_error(serve: Serve) -> None:
    busy = Row("When?", ROW.context, "It is busy.", ["It is busy."])
    server = serve(lambda body: (503, {"error": {}}) if "busy" in str(body) else by_statement(body))
    first, second = ask_rows([busy, ROW], slm(server, retries=0))
    assert first.status is Status.ERROR and "HTTP 503" in (first.error or "") and second.status is Status.OK


def test_a_row_of_which_a_sentence_has_no_answer_says_so_and_the_others_go_on(serve: Serve) -> None:
    hat = Row("When?", ROW.context, "Wear a hat.", ["Wear a hat."])
    first, second = ask_rows([hat, ROW], slm(serve(by_statement)))
    assert first.status is Status.NO_ANSWER and "'Maybe'" in (first.error or "") and second.status is Status.OK


def test_a_batch_comes_out_as_from_any_member(serve: Serve) -> None:
    server = serve(by_statement)
    rows = [
        {"row_key": i, "row_id": f"r{i}", "question": "When?", "context": ROW.context, "response": text, "status": "ok"}
        for i, text in enumerate([ROW.response, ROW.response, "Wear a hat.", ""])
    ]
    table = pa.Table.from_pylist(rows, schema=logs_schema(pa.schema([])))
    scorer = ServedScorer(slm(server, whole_response=True))
    scorer.setup()
    scored = scorer(Split(("sentencizer", "en"), question_needed=True)(table))
    assert scored["status"].to_pylist() == ["ok", "ok", "no_answer", "empty_response"]
    values, counts = scores_of(scored.combine_chunks().to_batches()[0], {"gpt": "log_odds"})
    assert counts.tolist() == [2, 2] and values["gpt"][1] == values["gpt"][3]
    assert values["gpt"] == pytest.approx([math.nan, math.log(0.05 / 0.8)] * 2, nan_ok=True)  # the first repeats the context
    assert scored["members"][0].as_py()[0]["response_score"] == pytest.approx(math.log(0.8 / 0.15))
    sent = len(server.bodies)
    scorer(Split(("sentencizer", "en"), question_needed=True)(table.slice(0, 1)))
    assert len(server.bodies) == sent, "a repeated row is not paid for again"
    assert Value.LOG_ODDS.of_logprobs


def test_a_server_that_is_not_there_ends_the_run(serve: Serve) -> None:
    gone = Slm.model_validate({"name": "g", "model": "m", "engine": {"kind": "server", "base_url": "http://127.0.0.1:9/v1"}})
    with raises("server.unreachable", where="SLM 'g': http://127.0.0.1:9/v1"):
        list(ask_rows([ROW], gone))


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({}, "members.slms.0.engine.base_url"),
        ({"base_url": "http://h/v1", "model": "embedded"}, "config.served-model"),
        ({"base_url": "http://h/v1", "chat": False}, "config.served-prompt"),
        ({"base_url": "http://h/v1", "top_logprobs": 0}, "config.no-logprobs"),
        ({"base_url": "http://h/v1", "dtype": "float32"}, "members.slms.0.engine.dtype"),
        ({"engine": "vllm", "base_url": "http://h/v1"}, "members.slms.0.engine.base_url"),
    ],
)
def test_wrong_settings_are_refused(more: dict[str, Any], says: str) -> None:
    with refuses(says):
        make_job({"members": {"slms": [{"name": "g", "model": "m", "engine": "server", **more}]}})


def test_what_needs_weights_says_that_there_are_none() -> None:
    served = Slm.model_validate({"name": "g", "model": "m", "engine": "server", "base_url": "http://h/v1"})
    with raises("config.needs-weights"):
        served.load_engine(1)
