"""One answer: what is told of it, and what is wrong with one that can't be read."""

import shutil
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import ragassay
from ragassay.jobs.api.check import check_answers
from ragassay.jobs.api.checked import Checked
from ragassay.jobs.api.in_process import _loaded
from ragassay.jobs.api.job import detectors_alone
from ragassay.pipeline.detectors.terms import find_new_words
from tests.job_settings import merged
from tests.jobs.api.conftest import ODD, odd_rows
from tests.raises import raises

FARE: dict[str, Any] = {
    "question": "What does a cabin suitcase cost?",
    "context": ["The Basic fare has one small item.", "A cabin suitcase costs €19 per flight, and €45 at the gate."],
    "response": "A cabin suitcase costs €19 per flight. Book it 24 hours before departure and Anna boards first.",
}


def test_sentences_say_what_they_were_held_against_and_what_is_missing() -> None:
    found = ragassay.check(**FARE, fast=True)
    good, bad = found.sentences
    assert found.verdict == "hallucinated" and found.row["flagged_sentences"] == 1
    assert not good.flagged and good.missing == () and good.passage == 1 and good.piece == FARE["context"][1]
    assert bad.flagged and bad.score is not None and good.score is not None and bad.score < good.score
    assert ("number", "24 hours") in bad.missing and ("word", "departure") in bad.missing
    assert not [text for kind, text in bad.missing if kind == "word" and text in ("it", "and", "24", "Anna")]
    assert FARE["response"][bad.start : bad.end] == bad.text
    assert [line[0] for line in repr(found).splitlines() if line[0] in "✓✗"] == ["✓", "✗"]
    assert found.to_dict()["judged_by"] == found.judged_by


@pytest.mark.parametrize("name", ODD)
def test_odd_answers_come_out_with_their_status(name: str) -> None:
    answer = next(row for row in odd_rows() if row["row_id"] == name)
    found = ragassay.check(**{key: answer[key] for key in ("question", "context", "response")}, fast=True)
    assert found.status == name.split(maxsplit=1)[0]
    assert (found.verdict is None) == (found.score is None) == (found.status != "ok")
    assert found.error if found.status != "ok" else found.sentences
    assert (found.verdict or found.status) in repr(found)
    assert ("judged by" in repr(found)) == ("judged by" in found._repr_html_()) == (found.status == "ok")


def test_answers_do_not_depend_on_one_another() -> None:
    answers = [{key: row[key] for key in ("question", "context", "response")} for row in odd_rows()]
    together = check_answers(detectors_alone(), answers, None, None, lambda _: None)
    for one, answer in zip(together, answers, strict=True):
        alone = ragassay.check(**answer, fast=True)
        assert {**one.row, "row_key": 0, "row_id": ""} == {**alone.row, "row_key": 0, "row_id": ""}


class _Tags(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: set[str] = set()
        self.said = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.add(tag)

    def handle_data(self, data: str) -> None:
        self.said += data


def test_hostile_text_is_but_text() -> None:
    hostile = "<img src=x onerror=alert(1)> & Tom \x1b[31m\u202eopens"
    found = ragassay.check(
        question=hostile, context=[hostile + " </div><script>1</script> at 7."], response=hostile + " at 9.", fast=True
    )
    for text in (found._repr_html_(), Checked({**found.row, "verdict": None, "score": None, "error": hostile})._repr_html_()):
        page = _Tags(text)
        assert page.found <= {"div", "b", "span"} and "<img src=x onerror=alert(1)> & Tom" in page.said
        assert "\x1b" not in text and "\u202e" not in text
    assert "\x1b" not in repr(found) and "[U+001B]" in repr(found)


def test_new_words_are_shown_as_they_stand() -> None:
    assert find_new_words("The Suppliers, supplying İstanbul, supply 9 Suppliers' boxes", {"box"}, "en") == [
        "Suppliers", "supplying", "İstanbul", "supply",
    ]  # fmt: skip
    assert find_new_words("", set(), "en") == []


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"question": "q", "context": "c"}, "check.missing-field"),
        ({}, "check.missing-field"),
        ({"context": "c", "response": 3}, "check.field-type"),
        ({"context": {"a": 1}, "response": "r"}, "check.field-type"),
        ({"context": ["c", 3], "response": "r"}, "check.field-type"),
        ({"context": "c", "response": "r", "row_id": True}, "check.field-type"),
        ({"context": "c", "response": "half \ud83d"}, "check.no-unicode"),
    ],
)
def test_what_is_wrong_with_an_answer_is_named(answer: dict[str, Any], said: str) -> None:
    with raises(said):
        check_answers(detectors_alone(), [answer], None, None, lambda _: None)
    second = {} if said == "check.no-unicode" else {"answer": "answer 2"}
    with raises(said, **second):
        check_answers(detectors_alone(), [FARE, answer], None, None, lambda _: None)


def test_what_else_an_answer_has_is_carried_along() -> None:
    answer = {**FARE, "row_id": 7, "tenant": {"a": [1, "b"]}, "score": 3}
    (found,) = check_answers(detectors_alone(), [answer], None, None, lambda _: None)
    assert found.row["row_id"] == "7" and found.row["tenant"] == {"a": [1, "b"]} and found.row["input_score"] == 3
    assert found.score != 3


def test_an_engine_stays_for_the_next_answer(tiny_model: str, tmp_path: Any) -> None:
    slm = {"name": "tiny", "model": tiny_model, "engine": "transformers", "dtype": "float32", "max_model_len": 512}
    frozen = tmp_path / "frozen.json"
    frozen.write_text('{"tiny": {"mu": 0.0, "sigma": 1.0, "count": 2, "low": -9.0}}')
    own = {"verdict": {"normalize": {"source": "frozen", "file": str(frozen)}, "threshold": {"value": 0.3}}}
    first = ragassay.check(**FARE, job=merged({"members": {"slms": [slm]}}, own))
    (stage,) = _loaded
    assert stage.name == "tiny" and first.sentences[0].passage is None and len(first.sentences) == 2
    assert ragassay.check(**FARE, job=merged({"members": {"slms": [slm]}}, own)).score == first.score
    assert _loaded == [stage] and _loaded[0] is stage
    with raises("check.missing-field", answer="the answer", fields="'question'"):
        check_answers(_with(slm, own), [{"context": "c", "response": "r"}], None, None, lambda _: None)
    with raises("fit.nothing-to-judge-by"):
        ragassay.check(**FARE, job={"members": {"slms": [slm]}})
    ragassay.check(**FARE, fast=True)
    assert not _loaded


def test_a_model_that_was_mended_is_loaded_anew(tiny_model: str, tmp_path: Path) -> None:
    model = tmp_path / "model"
    shutil.copytree(tiny_model, model)
    weights = (model / "model.safetensors").read_bytes()
    (model / "model.safetensors").write_bytes(b"no weights")
    slm = {"name": "tiny", "model": str(model), "engine": "transformers", "dtype": "float32", "max_model_len": 512}
    (tmp_path / "frozen.json").write_text('{"tiny": {"mu": 0.0, "sigma": 1.0, "count": 2, "low": -9.0}}')
    own = {"verdict": {"normalize": {"source": "frozen", "file": str(tmp_path / "frozen.json")}, "threshold": {"value": 0.3}}}
    with raises("model.engine-cannot-load"):
        ragassay.check(**FARE, job=merged({"members": {"slms": [slm]}}, own))
    (model / "model.safetensors").write_bytes(weights)
    assert ragassay.check(**FARE, job=merged({"members": {"slms": [slm]}}, own)).status == "ok"
    _loaded.clear()


def _with(slm: dict[str, Any], own: dict[str, Any]) -> Any:
    from ragassay.jobs.config.job import make_job

    return make_job(merged({"members": {"slms": [slm]}}, own))
