"""Values of rows: sentences by their own tokens, windows, several members of one reading, own answers, logged samples."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragassay.pipeline.slm.prompt import PromptEncoder
from ragassay.pipeline.stages.split import SplitStage
from ragassay.pipeline.stages.uncertainty import UncertaintyStage
from ragassay.pipeline.uncertainty.config import Uncertainty
from ragassay.pipeline.uncertainty.place import place
from ragassay.pipeline.uncertainty.prompt import answer_encoder
from ragassay.pipeline.uncertainty.scores import Score, score_text
from ragassay.schemas.columns import LOGS, Status
from tests.conftest import example_rows
from tests.raises import raises, refuses

SPLITTER = ("sentencizer", "en")


def table_of(rows: list[dict[str, Any]], samples: list[list[str] | None] | None = None) -> pa.Table:
    """Rows as the split stage leaves them."""
    texts = ("question", "context", "response")
    known = [{"row_key": i, "row_id": str(i), "status": "ok", **{k: row[k] for k in texts}} for i, row in enumerate(rows)]
    table = pa.Table.from_pylist(known, schema=LOGS)
    if samples is not None:
        table = table.append_column("samples", pa.array(samples, pa.list_(pa.string())))
    return SplitStage(SPLITTER, False)(table)


def scorer(tiny_model: str, *members: dict[str, Any], **shared: Any) -> UncertaintyStage:
    engine = {"dtype": "float32", **shared.pop("engine", {})}
    made = [Uncertainty(**{"model": tiny_model, "engine": engine, **shared, **member}) for member in members]
    stage = UncertaintyStage(made, SPLITTER, 2)
    stage.setup()
    return stage


def member(row: dict[str, Any], name: str) -> dict[str, Any]:
    (found,) = [m for m in row["members"] if m["name"] == name]
    return dict(found)


def test_sentences_are_judged_by_their_own_tokens_within_the_response(tiny_model: str) -> None:
    rows = example_rows(3)
    actor = scorer(tiny_model, {"name": "a"}, {"name": "p", "score": "perplexity"})
    found = actor(table_of(rows)).to_pylist()
    for row in found:
        encoder, reader = actor._encoder, actor._reader
        (encoded,) = encoder.encode([(row["question"], row["context"], [row["response"]])])
        (read,) = reader.read([(encoded.head, encoded.tails[0])])
        assert reader.tokenizer.decode(encoded.tails[0]) == row["response"]
        assert member(row, "p")["response_score"] == pytest.approx(read.signs.logprob.mean(), rel=1e-4)
        ends = np.array(encoder.token_ends(row["response"]))
        for span, value in zip(row["sentences"], member(row, "p")["sentence_scores"], strict=True):
            mine = (ends > span["start"]) & (ends <= span["end"])
            assert reader.tokenizer.decode(np.array(encoded.tails[0])[mine]).strip() == span["text"]
            assert value == pytest.approx(read.signs.logprob[mine].mean(), rel=1e-4)
        whole = score_text(Score.ATTENHSCORE, read.signs, 16, Uncertainty(name="x").attention)
        assert member(row, "a")["response_score"] == pytest.approx(whole, rel=1e-4)
        assert row["usage"] == [{**row["usage"][0], "name": "a", "prompts": 1}] and row["context_windows"] == 1


def test_a_long_context_is_read_in_windows_and_none_is_lost(tiny_model: str) -> None:
    rows = example_rows(2)
    rows[1]["context"] = [f"Shop {i} opens at {i % 12} a.m. and is closed on day {i}." for i in range(60)]
    actor = scorer(tiny_model, {"name": "a"}, engine={"max_model_len": 192})
    short, long = actor(table_of(rows)).to_pylist()
    assert short["context_windows"] == 1 and long["context_windows"] > 3 and long["error"] is None
    assert all(math.isfinite(v) for v in member(long, "a")["sentence_scores"])


def test_a_response_that_leaves_no_room_has_no_value_and_says_so(tiny_model: str) -> None:
    rows = example_rows(2)
    rows[0]["response"] = "It opens early. " * 100
    first, second = scorer(tiny_model, {"name": "a"}, engine={"max_model_len": 192})(table_of(rows)).to_pylist()
    assert first["status"] == Status.OK and "uncertainty 'a'" in first["error"] and "192 tokens" in first["error"]
    assert member(first, "a")["sentence_scores"] == [None] * 100 and member(first, "a")["response_score"] is None
    assert second["error"] is None and member(second, "a")["response_score"] is not None


def test_a_row_without_a_question_has_no_value_where_the_prompt_uses_one(tiny_model: str) -> None:
    rows = [{**example_rows(1)[0], "question": None}]
    (row,) = scorer(tiny_model, {"name": "a"})(table_of(rows)).to_pylist()
    assert row["status"] == Status.OK and "the question is null" in row["error"] and row["context_windows"] is None
    assert member(row, "a")["response_score"] is None
    without = scorer(tiny_model, {"name": "a"}, prompt="{{ context | join(' ') }}")(table_of(rows)).to_pylist()[0]
    assert without["error"] is None and member(without, "a")["response_score"] is not None


def test_a_full_stop_with_a_line_break_is_of_its_sentence(tokenizer: Any) -> None:
    text = "It opens at 9.\n\nIt closes at 5.\n"
    placed = place("q", ["c"], text, answer_encoder(Uncertainty(name="a"), tokenizer))
    starts = [0, *placed.ends[:-1]]
    assert any(text[start:end].endswith(".") for start, end in zip(starts, placed.ends, strict=True) if end <= 14)
    assert len(placed.ends) == len(placed.prompt[1]) and sorted(placed.ends) == list(placed.ends)


def test_rows_that_can_not_be_scored_are_left_alone(tiny_model: str) -> None:
    rows = example_rows(3)
    rows[1]["response"] = None
    table = table_of(rows)
    found = scorer(tiny_model, {"name": "a"})(table)
    assert found["status"].to_pylist() == ["ok", "no_response", "ok"] and found["members"][1].as_py() is None
    assert found.schema == table.schema


def test_order_and_neighbours_change_nothing(tiny_model: str) -> None:
    rows = example_rows(6)
    actor = scorer(tiny_model, {"name": "a"})
    together = actor(table_of(rows)).to_pylist()
    for i in (4, 0, 5):
        (alone,) = actor(table_of([rows[i]])).to_pylist()
        assert member(alone, "a")["sentence_scores"] == pytest.approx(member(together[i], "a")["sentence_scores"], rel=1e-3)


def test_the_models_own_answer_is_about_the_whole_response(tiny_model: str) -> None:
    actor = scorer(tiny_model, {"name": "a"}, text="own", max_tokens=6)
    for row in actor(table_of(example_rows(2))).to_pylist():
        assert set(member(row, "a")["sentence_scores"]) == {None} and member(row, "a")["response_score"] < 0


def test_logged_samples(tiny_model: str) -> None:
    rows = example_rows(3)
    samples = [[rows[0]["response"]] * 2, ["Nobody knows that.", "Perhaps in spring, or never."], None]
    actor = scorer(tiny_model, {"name": "words", "score": "lexical_similarity"}, {"name": "states", "score": "eigenscore"})
    same, other, none = actor(table_of(rows, samples)).to_pylist()
    assert member(same, "words")["response_score"] == 1 > member(other, "words")["response_score"]
    assert member(same, "states")["response_score"] > member(other, "states")["response_score"]
    assert member(none, "words")["response_score"] is None and member(none, "states")["response_score"] is None


@pytest.fixture(scope="module")
def encoder(tokenizer: Any) -> PromptEncoder:
    return answer_encoder(Uncertainty(name="a"), tokenizer)


@given(response=st.text(min_size=1, max_size=60), context=st.lists(st.text(max_size=40), min_size=1, max_size=3))
def test_log_text_is_never_a_control_token(tokenizer: Any, encoder: PromptEncoder, response: str, context: list[str]) -> None:
    special = set(tokenizer.all_special_ids)
    (plain,) = encoder.encode([("q", ["c"] * len(context), ["r"])])
    told = [text + " <|im_end|><|im_start|>" for text in (response, *context)]
    (encoded,) = encoder.encode([("<|im_start|>", told[1:], [told[0]])])
    assert [i for i in encoded.head + encoded.tails[0] if i in special] == [i for i in plain.head if i in special]
    ends = encoder.token_ends_in_prompt("<|im_start|>", told[1:], told[0])
    assert len(ends) == len(encoded.tails[0]) and ends[-1] == len(told[0]) and sorted(ends) == ends


def test_members_are_read_together_where_only_the_score_differs() -> None:
    from ragassay.jobs.config.job import make_job

    several = [
        {"name": "a"}, {"name": "b", "score": "perplexity", "in_ensemble": True}, {"name": "c", "window": 10},
        {"name": "d", "text": "own"}, {"name": "e", "engine": {"dtype": "float32"}},
    ]  # fmt: skip
    job = make_job({"members": {"slms": [{"name": "facts"}], "uncertainty": several}})
    assert [[member.name for member in group] for group in job.members.reading_groups] == [["a", "b", "c"], ["d"], ["e"]]
    assert job.members.outside_ensemble == {"a", "c", "d", "e"} and "facts" in job.members.values
    assert json.dumps(job.members.uncertainty[0].identity())


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"score": "eigenscore", "text": "own"}, "config.samples-of-own"),
        ({"score": "lexical_similarity", "in_ensemble": True}, "config.no-sentence-value"),
        ({"text": "own", "in_ensemble": True}, "config.no-sentence-value"),
        ({"prompt": "No passages here"}, "prompt.no-context"),
        ({"prompt": "{% for p in context %}{{ p }}{% endfor %} {{ response }}"}, "prompt.judged-once"),
        ({"engine": "vllm"}, "members.uncertainty.0.engine.kind"),
        ({"window": 0}, "members.uncertainty.0.window"),
    ],
)
def test_faults_are_named(settings: dict[str, Any], says: str) -> None:
    from ragassay.jobs.config.job import make_job

    with refuses(says):
        make_job({"members": {"uncertainty": [{"name": "a", **settings}]}})


def test_a_missing_model_is_the_runs_error(tmp_path: Path) -> None:
    with raises("model.unknown"):
        UncertaintyStage([Uncertainty(name="a", model=str(tmp_path / "none"))], SPLITTER, 1).setup()
