"""What the detectors say of rows, by hand; and the chapter's own example."""

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st

from ragassay.pipeline.detectors.attribution import Attribution
from ragassay.pipeline.detectors.batch import _pieces
from ragassay.pipeline.detectors.config import Detector
from ragassay.pipeline.detectors.detect import NO_SPACES, Detected, detect
from ragassay.pipeline.detectors.entities import Entities
from ragassay.pipeline.detectors.frequencies import count
from ragassay.pipeline.detectors.hybrid import Hybrid
from ragassay.pipeline.detectors.ner import load_ner
from ragassay.pipeline.detectors.novelty import Novelty
from ragassay.pipeline.detectors.terms import content_terms
from ragassay.pipeline.rows import Row
from ragassay.pipeline.stages.detect import DetectStage
from ragassay.pipeline.text.split import load_splitter, split
from ragassay.schemas.columns import logs_schema
from tests.pipeline.detectors.test_named import odd_texts
from tests.pipeline.text.test_split import texts as odd_responses
from tests.raises import raises

odd = odd_texts() | odd_responses

NAMES = ("entities", "attribution", "novelty", "hybrid")
ALL: list[Detector] = [
    Entities(name="entities"),
    Attribution(name="attribution"),
    Novelty(name="novelty"),
    Hybrid(name="hybrid"),
]
CONTEXT = ["Badges are issued on floor 3. The desk opens at 09:00.", "Leave is 25 days a year. Ms. Oduya signs it."]
ROW = Row(
    "When does the desk open?",
    CONTEXT,
    "The desk opens at 9 AM. Leave is 30 days a year. It is so.",
    ["The desk opens at 9 AM.", "Leave is 30 days a year.", "It is so."],
)


def frequencies(*rows: Row) -> Any:
    return count(content_terms(passage, "en") for row in rows for passage in row.context)


def run(*rows: Row, detectors: list[Detector] = ALL) -> Detected:
    return detect(rows, detectors, "en", frequencies(*rows))


def test_the_chapters_printed_example() -> None:
    """The chapter prints a score of 0.2 and ['47%', 'revenue', 'growth']; its code gives 1/3, and misses `The` and `47`.

    Ours: 47% is missing, Q3 and 2024 are there.
    """
    import re

    patterns = [r"\b[A-Z][a-z]+(?:\s+[A-Z][a-z]+)*\b", r"\b\d+(?:\.\d+)*\b", r"\b\w+ied\b|\b\w+ing\b"]
    generated = "The company achieved 47% revenue growth in Q3 2024."
    chunks = ["Q3 2024 saw significant market expansion.", "Customer acquisition costs decreased by 12%."]

    def entities(text: str) -> set[str]:
        return {found for pattern in patterns for found in re.findall(pattern, text)}

    mine, theirs = entities(generated), entities(" ".join(chunks))
    assert mine == {"The", "47", "2024"} and mine & theirs == {"2024"}
    assert len(mine & theirs) / len(mine) == pytest.approx(1 / 3)
    assert mine - theirs == {"The", "47"}

    row = Row("How was Q3?", chunks, generated, [generated])
    found = run(row, detectors=[ALL[0]])
    assert found.values["entities"][0] == pytest.approx(2 / 3)
    assert found.evidence[0].missing == [("number", "47%")]


def test_values_by_hand() -> None:
    found = run(ROW)
    entities, novelty, attribution = (found.values[k] for k in ("entities", "novelty", "attribution"))
    assert entities[:2] == pytest.approx([1.0, 0.0]) and math.isnan(entities[2])
    assert found.responses["entities"][0] == pytest.approx(0.5)
    assert [at.missing for at in found.evidence] == [[], [("number", "30 days")], []]
    assert novelty[0] == pytest.approx(1.0) and 0 < novelty[1] < 1  # 30 days is new, leave and year are not
    assert [(at.passage, at.start, at.end) for at in found.evidence[:2]] == [(0, 30, 54), (1, 0, 24)]
    assert CONTEXT[0][30:54] == "The desk opens at 09:00." and CONTEXT[1][0:24] == "Leave is 25 days a year."
    hybrid = found.values["hybrid"]
    assert hybrid[:2] == pytest.approx(0.5 * entities[:2] + 0.5 * attribution[:2])


def test_nothing_to_go_by_is_null_with_a_reason() -> None:
    found = run(ROW)
    assert all(math.isnan(found.values[name][2]) for name in ("entities", "novelty", "attribution", "hybrid"))
    assert (
        found.evidence[2].notes[0] == f"entities: {Entities.NOTHING}"
        and f"novelty: {Novelty.NOTHING}" in found.evidence[2].notes
    )
    thai = Row("", ["ห้องสมุดเปิดเวลาเก้าโมง"], "ห้องสมุดเปิดเวลาเก้าโมง", ["ห้องสมุดเปิดเวลาเก้าโมง"])
    of_thai = run(thai)
    assert all(np.isnan(values).all() for values in of_thai.values.values())
    assert of_thai.evidence[0].notes == [f"{name}: {NO_SPACES}" for name in NAMES]


def test_a_detector_does_not_depend_on_the_others_nor_on_other_rows() -> None:
    other = Row("What of leave?", ["Leave is unpaid.", ""], "Leave is paid. It is 3 days.", ["Leave is paid.", "It is 3 days."])
    known = frequencies(ROW, other)
    together = detect([other, ROW], ALL, "en", known)
    for detector in ALL:
        alone = detect([ROW], [detector], "en", known)
        name = detector.name
        assert alone.values[name] == pytest.approx(together.values[name][2:], nan_ok=True)
        assert alone.responses[name] == pytest.approx(together.responses[name][1:], nan_ok=True)


@given(
    st.lists(st.tuples(odd, st.lists(odd, min_size=1, max_size=3), odd), min_size=1, max_size=4), st.sampled_from(["en", "ja"])
)
def test_rows_of_odd_text_have_values_and_evidence(texts: list[tuple[str, list[str], str]], language: str) -> None:
    spans = split(load_splitter("sentencizer", language), [response for _, _, response in texts])
    rows = [
        Row(question, context, response, [response[a:b] for a, b in found])
        for (question, context, response), found in zip(texts, spans, strict=True)
        if found
    ]
    if rows:
        found = detect(rows, ALL, language, frequencies(*rows))
        for values in (*found.values.values(), *found.responses.values()):
            assert all(math.isnan(value) or 0 <= value <= 1 + 1e-9 for value in values)
        passages = [row.context for row in rows for _ in row.sentences]
        for at, context in zip(found.evidence, passages, strict=True):
            if at.passage is not None and at.start is not None and at.end is not None:
                assert 0 <= at.start < at.end <= len(context[at.passage])


def test_the_question_is_known_too() -> None:
    row = Row(
        "What of the Quillport line?",
        ["It closes early."],
        "The Quillport line closes early.",
        ["The Quillport line closes early."],
    )
    found = run(row)
    assert found.values["novelty"][0] == 1.0 and found.values["entities"][0] == 1.0


def test_pieces_are_sentences_and_long_ones_are_cut() -> None:
    text = 'One here. "Two there." Three\nFour ' + "long " * 300
    spans = list(_pieces(text))
    assert [text[a:b] for a, b in spans][:3] == ["One here.", '"Two there."', "Three"]
    assert len(text[spans[3][0] : spans[3][1]]) > 500
    assert all(b - a <= 600 for a, b in spans) and sum(len(text[a:b].split()) for a, b in spans) == len(text.split())


def test_a_recogniser_finds_names(tmp_path: Any) -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("entity_ruler").add_patterns([{"label": "ORG", "pattern": "harbour council"}])
    nlp.to_disk(tmp_path / "ner")
    row = Row("", ["Nothing here."], "The harbour council met.", ["The harbour council met."])
    found = run(row, detectors=[Entities(name="e", ner=str(tmp_path / "ner"))])
    assert found.evidence[0].missing == [("name", "harbour council")]


def test_a_pipeline_without_names_or_that_is_not_there_is_refused(tmp_path: Any) -> None:
    spacy.blank("en").to_disk(tmp_path / "blank")
    with raises("config.no-entity-recogniser"):
        load_ner(str(tmp_path / "blank"))
    with raises("config.pipeline-not-installed"):
        load_ner("en_core_web_nothing")


def batch(*rows: dict[str, Any]) -> pa.Table:
    from ragassay.pipeline.stages.split import SplitStage

    full = [
        {"row_key": i, "row_id": str(i), "status": "ok", "error": None, "question": "", **row} for i, row in enumerate(rows)
    ]
    return SplitStage(("sentencizer", "en"), False)(pa.Table.from_pylist(full, schema=logs_schema(pa.schema([]))))


def test_as_a_step_of_the_plan() -> None:
    table = batch(
        {"context": CONTEXT, "response": ROW.response},
        {"context": CONTEXT, "response": "It is so."},
        {"context": [], "response": "Leave is 3 days."},
    )
    out = DetectStage(ALL, "en", lambda: frequencies(ROW), 1)(table)
    assert out.schema == table.schema
    good, empty, no_context = out.to_pylist()
    assert [m["name"] for m in good["members"]] == list(NAMES) and good["status"] == "ok"
    assert good["members"][0]["sentence_scores"] == [1.0, 0.0, None] and len(good["evidence"]) == 3
    assert empty["status"] == "not_judged" and empty["members"] is None and Novelty.NOTHING in empty["error"]
    assert len(empty["evidence"]) == 1
    assert no_context["status"] == "no_context" and no_context["members"] is None


def test_a_detector_beside_the_ensemble_judges_nothing() -> None:
    beside: list[Detector] = [Novelty(name="n", in_ensemble=False), Entities(name="e")]
    table = batch({"context": CONTEXT, "response": "Leave is free."})
    row = DetectStage(beside, "en", lambda: frequencies(ROW), 1)(table).to_pylist()[0]
    assert row["status"] == "not_judged" and "e: nothing named" in row["error"]


@pytest.mark.slow
def test_embeddings_of_the_real_model_find_the_paraphrase() -> None:
    near = Attribution(name="near", similarity="embedding")
    said = "Employees get a month of holidays annually."
    row = Row("", ["Cats sleep all day.", "Staff may take four weeks off every year."], said, [said])
    found = detect([row], [near], "en", frequencies(row))
    assert found.evidence[0].passage == 1 and found.values["near"][0] > 0.5
    assert found.responses["near"][0] == pytest.approx(found.values["near"][0], abs=1e-5)
