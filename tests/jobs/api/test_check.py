"""Check one answer: its sentences, its rendering, and the errors of invalid answers."""

import shutil
from dataclasses import dataclass, replace
from datetime import date
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

import ragassay
from ragassay.jobs.api.check import check_answers
from ragassay.jobs.api.in_process import _loaded_stages
from ragassay.jobs.api.select_job import make_detector_job
from ragassay.jobs.config.job import Job, make_job
from ragassay.jobs.config.members import default_members
from ragassay.jobs.display.verdict import Verdict
from ragassay.pipeline.detectors.terms import find_new_words
from tests.job_settings import merged
from tests.jobs.api.conftest import ODD_ROWS, make_odd_rows
from tests.raises import raises

FARE: dict[str, Any] = {
    "question": "What does a cabin suitcase cost?",
    "context": ["The Basic fare has one small item.", "A cabin suitcase costs €19 per flight, and €45 at the gate."],
    "response": "A cabin suitcase costs €19 per flight. Book it 24 hours before departure and Anna boards first.",
}


def check_all(answers: list[dict[str, Any]], job: Job | None = None) -> list[Verdict]:
    return check_answers(job or make_detector_job(), answers, None, None, lambda _: None)


def test_sentences_have_their_best_passage_and_their_missing_terms() -> None:
    checked = ragassay.check(**FARE, fast=True)
    supported, flagged = checked.sentences
    assert checked.verdict == "hallucinated" and checked.row["flagged_sentences"] == 1
    assert supported.state == "supported" and supported.missing == ()
    assert supported.passage == 1 and supported.excerpt == FARE["context"][1]
    assert (
        flagged.state == "flagged"
        and flagged.score is not None
        and supported.score is not None
        and flagged.score < supported.score
    )
    assert flagged.cause and flagged.cause.startswith("entities: 0.00") and supported.cause is None
    assert "mainly by entities: 0.00" in repr(checked)
    assert ("number", "24 hours") in flagged.missing and ("word", "departure") in flagged.missing
    assert not [text for kind, text in flagged.missing if kind == "word" and text in ("it", "and", "24", "Anna")]
    assert FARE["response"][flagged.start : flagged.end] == flagged.text
    assert [line[0] for line in repr(checked).splitlines() if line[0] in "✓✗"] == ["✓", "✗"]
    assert checked.to_dict()["judged_by"] == checked.judged_by


def test_the_sentence_that_decided_a_verdict_has_a_cause_in_every_state() -> None:
    checked = ragassay.check(**FARE, fast=True)
    sentences = [{**sentence, "state": "supported"} for sentence in checked.row["sentences"]]
    (first, second) = replace(checked, row={**checked.row, "sentences": sentences}).sentences
    assert first.cause is None and second.cause == checked.sentences[1].cause is not None


@pytest.mark.parametrize("first", ["Yes.", "No.", "Sure!"])
def test_words_such_as_yes_before_a_copy_of_the_context_flag_nothing(first: str) -> None:
    texts = {"question": "Do I need a ticket?", "context": "Every passenger needs a ticket. A ticket costs 3 euros."}
    checked = ragassay.check(**texts, response=f"{first} Every passenger needs a ticket.", fast=True)
    assert checked.verdict == "supported" and [s.state for s in checked.sentences] == [None, "supported"]


def test_a_fast_check_uses_only_the_detectors_of_a_job() -> None:
    members = default_members()
    added = {"name": "second", "kind": "novelty", "in_ensemble": False}
    job = {"members": {**members, "detectors": [*members["detectors"], added]}}
    checked = ragassay.check(**FARE, job=job, fast=True)
    assert [member["name"] for member in checked.row["members"]] == ["entities", "attribution", "novelty", "second"]
    assert checked.verdict is not None and checked.score == ragassay.check(**FARE, fast=True).score


@pytest.mark.parametrize("name", ODD_ROWS)
def test_an_odd_answer_gets_its_status(name: str) -> None:
    answer = next(row for row in make_odd_rows() if row["row_id"] == name)
    checked = ragassay.check(**{key: answer[key] for key in ("question", "context", "response")}, fast=True)
    assert checked.status == name.split(maxsplit=1)[0]
    assert (checked.verdict is None) == (checked.score is None) == (checked.status != "ok")
    assert checked.error if checked.status != "ok" else checked.sentences
    assert (checked.verdict or checked.status) in repr(checked)
    assert ("judged by" in repr(checked)) == ("judged by" in checked._repr_html_()) == (checked.status == "ok")


def test_answers_do_not_depend_on_each_other() -> None:
    answers = [{key: row[key] for key in ("question", "context", "response")} for row in make_odd_rows()]
    for checked, answer in zip(check_all(answers), answers, strict=True):
        alone = ragassay.check(**answer, fast=True)
        assert {**checked.row, "row_key": 0, "row_id": ""} == {**alone.row, "row_key": 0, "row_id": ""}


class _Page(HTMLParser):
    """Tags and text of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


def test_markup_and_control_characters_in_texts_are_escaped() -> None:
    hostile = "<img src=x onerror=alert(1)> & Tom \x1b[31m\u202eopens"
    checked = ragassay.check(
        question=hostile, context=[hostile + " </div><script>1</script> at 7."], response=hostile + " at 9.", fast=True
    )
    failed = Verdict({**checked.row, "verdict": None, "score": None, "error": hostile})
    for html in (checked._repr_html_(), failed._repr_html_()):
        page = _Page(html)
        assert page.tags <= {"div", "b", "span"} and "<img src=x onerror=alert(1)> & Tom" in page.text
        assert "\x1b" not in html and "\u202e" not in html
    assert "\x1b" not in repr(checked) and "[U+001B]" in repr(checked)


def test_new_words_keep_their_form() -> None:
    assert find_new_words("The Suppliers, supplying İstanbul, supply 9 Suppliers' boxes", {"box"}, "en") == [
        "Suppliers", "supplying", "İstanbul", "supply",
    ]  # fmt: skip
    assert find_new_words("", set(), "en") == []


@pytest.mark.parametrize(
    "context",
    [
        ["A suitcase costs €19.", "It is small."],
        [{"text": "A suitcase costs €19."}, {"page_content": "It is small.", "metadata": {"id": 2}}],
        ("A suitcase costs €19.", {"content": "It is small.", "date": date(2026, 11, 2)}),
        '["A suitcase costs €19.", {"text": "It is small."}]',
        [{"text": "It is small.", "rank": 2}, {"text": "A suitcase costs €19.", "rank": 1}],
    ],
)
def test_a_context_has_every_shape_that_a_run_reads(context: Any) -> None:
    (checked,) = check_all([{"context": context, "response": "A suitcase costs €19."}])
    assert checked.row["context"] == ["A suitcase costs €19.", "It is small."] and checked.verdict


class _Node(BaseModel):
    text: str


class _NodeWithScore(BaseModel):
    """As in LlamaIndex."""

    node: _Node
    score: float


@dataclass
class _Document:
    """As in Haystack; LangChain has pydantic models."""

    content: str
    meta: dict[str, Any]


def test_a_context_can_be_documents_of_a_library() -> None:
    context = [_NodeWithScore(node=_Node(text="It is small."), score=0.5), _Document("It is red.", {"page": date(2026, 1, 1)})]
    checked = ragassay.check(None, context, "It is small.", fast=True)
    assert checked.row["context"] == ["It is small.", "It is red."]
    assert ragassay.check(None, context[1], "It is red.", fast=True).row["context"] == ["It is red."]


def test_a_context_can_be_one_object() -> None:
    (checked,) = check_all([{"context": {"text": "It is small.", "by": "Ada"}, "response": "It is small."}])
    assert checked.row["context"] == ["It is small."]


@pytest.mark.parametrize(
    ("answer", "code"),
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
def test_an_invalid_answer_is_an_error_that_names_the_answer(answer: dict[str, Any], code: str) -> None:
    with raises(code):
        check_all([answer])
    fields = {} if code == "check.no-unicode" else {"answer": "answer 2"}
    with raises(code, **fields):
        check_all([FARE, answer])


def test_other_fields_of_an_answer_are_passed_through() -> None:
    (checked,) = check_all([{**FARE, "row_id": 7, "tenant": {"a": [1, "b"]}, "score": 3}])
    assert checked.row["row_id"] == "7" and checked.row["tenant"] == {"a": [1, "b"]} and checked.row["input_score"] == 3
    assert checked.score != 3


def frozen_settings(folder: Path) -> dict[str, Any]:
    """Settings with frozen statistics of the member `tiny` and a threshold value."""
    (folder / "frozen.json").write_text('{"tiny": {"mu": 0.0, "sigma": 1.0, "count": 2, "low": -9.0}}')
    return {"verdict": {"normalize": {"source": "frozen", "file": str(folder / "frozen.json")}, "threshold": {"value": 0.3}}}


def test_an_engine_stays_loaded_for_the_next_answer(tiny_model: str, tmp_path: Path) -> None:
    slm = {"name": "tiny", "model": tiny_model, "engine": "transformers", "dtype": "float32", "max_model_len": 512}
    job = merged({"members": {"slms": [slm]}}, frozen_settings(tmp_path))
    first = ragassay.check(**FARE, job=job)
    (stage,) = _loaded_stages
    assert stage.name == "tiny" and first.sentences[0].passage is not None and len(first.sentences) == 2
    assert ragassay.check(**FARE, job=job).score == first.score
    assert _loaded_stages == [stage] and _loaded_stages[0] is stage
    with raises("check.missing-field", answer="the answer", fields="'question'"):
        check_all([{"context": "c", "response": "r"}], make_job(job))
    with raises("fit.nothing-to-judge-by"):
        ragassay.check(**FARE, job={"members": {"slms": [slm]}})
    ragassay.check(**FARE, fast=True)
    assert not _loaded_stages


def test_a_repaired_model_is_loaded_again(tiny_model: str, tmp_path: Path) -> None:
    model = tmp_path / "model"
    shutil.copytree(tiny_model, model)
    weights = (model / "model.safetensors").read_bytes()
    (model / "model.safetensors").write_bytes(b"no weights")
    slm = {"name": "tiny", "model": str(model), "engine": "transformers", "dtype": "float32", "max_model_len": 512}
    job = merged({"members": {"slms": [slm]}}, frozen_settings(tmp_path))
    with raises("model.engine-cannot-load"):
        ragassay.check(**FARE, job=job)
    (model / "model.safetensors").write_bytes(weights)
    assert ragassay.check(**FARE, job=job).status == "ok"
    _loaded_stages.clear()
