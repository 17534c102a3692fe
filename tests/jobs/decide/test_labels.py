import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ragassay.jobs.decide.labels import Label, LabelSource, read_reviewed, sentence_truth, to_labels
from tests.raises import raises

C, P, W = Label.CORRECT, Label.PARTIAL, Label.WRONG


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("label", ["correct", "partial", "wrong", "hallucinated", None], [C, P, W, W, None]),
        ("label", pa.array(["supported", "wrong"]).dictionary_encode(), [C, W]),
        ("hallucinated", [True, False, None], [W, C, None]),
        ("is_hallucinated", [1, 0], [W, C]),
        ("supported", [1.0, float("nan"), 0.0], [C, None, W]),
        ("label", pa.nulls(2), [None, None]),
    ],
)
def test_labels_are_read(name: str, values: Any, expected: list[Label | None]) -> None:
    column = values if isinstance(values, pa.Array) else pa.array(values)
    assert to_labels(column, LabelSource(name)) == expected


def test_what_true_means_can_be_said_and_values_ignored() -> None:
    assert to_labels(pa.array([True, False]), LabelSource("verdict_ok", true_means="supported")) == [C, W]
    assert to_labels(pa.array(["generic", "wrong"]), LabelSource("l", ignore=frozenset({"generic"}))) == [None, W]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([True], "labels.true-unclear"),
        ([0, 2], "labels.true-unclear"),
        (["correct", "mostly fine"], "labels.unknown-values"),
        ([[1]], "labels.column-type"),
    ],
)
def test_other_columns_are_refused(values: list[Any], message: str) -> None:
    with raises(message):
        to_labels(pa.array(values), LabelSource("quality"))


def test_numbers_must_be_0_or_1() -> None:
    with raises("labels.odd-numbers", values="0.5"):
        to_labels(pa.array([0.5, 1.0]), LabelSource("hallucinated"))


def test_sentences_by_labels_and_by_spans() -> None:
    sentences = [(0, 10), (11, 20), (21, 30)]
    labelled = [{"start": 0, "end": 10, "supported": True}, {"start": 12, "end": 15, "supported": False}]
    assert sentence_truth(sentences, labelled, W) == [True, False, None]
    spans = [{"start": 9, "end": 12}]
    assert sentence_truth(sentences, spans, W) == [False, False, True]
    assert sentence_truth(sentences, [], C) == [True, True, True]
    assert sentence_truth(sentences, [], W) == [None, None, None]  # wrong, and no span says where
    assert sentence_truth(sentences, None, C) == [None, None, None]


def reviewed(path: Path, **columns: list[Any]) -> LabelSource:
    pq.write_table(pa.table(columns), path)
    return LabelSource("supported", file=str(path))


def test_labels_from_a_file_a_row_a_response(tmp_path: Path) -> None:
    got = read_reviewed(reviewed(tmp_path / "r.parquet", row_id=["a", "b", "c"], supported=[True, False, None]))
    assert got.responses == {(None, "a"): C, (None, "b"): W} and not got.sentences


def test_labels_from_a_file_a_row_a_sentence(tmp_path: Path) -> None:
    source = reviewed(
        tmp_path / "r.parquet",
        row_id=["a", "a", "b", "b", "c"], start=[0, 5, 0, 5, 0], end=[4, 9, 4, 9, 4],
        supported=[True, False, True, None, True],
    )  # fmt: skip
    got = read_reviewed(source)
    assert got.responses == {(None, "a"): W, (None, "c"): C}  # b has a sentence that nobody looked at
    assert got.sentences[None, "b"] == [{"start": 0, "end": 4, "supported": True}]


def test_bad_label_files(tmp_path: Path) -> None:
    with raises("path.no-parquet"):
        read_reviewed(LabelSource("x", file=str(tmp_path / "none.parquet")))
    with raises("path.lacks-columns", columns="row_id"):
        read_reviewed(reviewed(tmp_path / "a.parquet", id=["a"], supported=[True]))
    with raises("labels.contradiction", label="correct", other="wrong", row="row 'a'"):
        read_reviewed(reviewed(tmp_path / "b.parquet", row_id=["a", "a"], supported=[True, False]))
    with raises("labels.sentence-contradiction", start=0, end=4):
        read_reviewed(reviewed(tmp_path / "c.parquet", row_id=["a", "a"], start=[0, 0], end=[4, 4], supported=[True, False]))


SECRET = "The patient of room 12 was told of the diagnosis on Monday."


@pytest.mark.parametrize(
    ("values", "names", "hides"),
    [
        ([SECRET, "correct"], "1 distinct value, texts of up to 59", "patient"),
        ([SECRET, "Yes.", "No."], "3 distinct values, texts of up to 59 characters", "Yes."),
        (["good", "bad", None], "2 distinct values: 'bad', 'good'", "None"),
        ([f"v{n}" for n in range(9)], "9 distinct values: 'v0', 'v1', 'v2', 'v3', 'v4', …", "v5"),
        (["a\nb"], "1 distinct value, texts of up to 3", "a\\nb"),
    ],
)
def test_attack_an_error_about_labels_prints_no_text_of_the_log(values: list[str | None], names: str, hides: str) -> None:
    with raises("labels.unknown-values", column="response", type="string") as error:
        to_labels(pa.array(values), LabelSource("response"))
    assert names in error.value.fields["values"]
    assert hides not in str(error.value)


def test_attack_an_error_about_reviewers_prints_no_text_of_the_log(tmp_path: Path) -> None:
    rows = [{"row_id": SECRET * 2, "label": label, "inclusion_probability": 0.5} for label in ("correct", "wrong")]
    source = LabelSource("label", file=str(tmp_path / "labels.parquet"))
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "labels.parquet")
    with raises("labels.contradiction", label="correct", other="wrong", row="row a text of 118 characters") as said_twice:
        read_reviewed(source)
    pq.write_table(pa.Table.from_pylist([{**rows[0], "inclusion_probability": SECRET}]), tmp_path / "labels.parquet")
    with raises("labels.probability-out-of-range", value="a text of 59 characters") as no_number:
        read_reviewed(source)
    lines = tmp_path / "labels.jsonl"
    said = [{"row_id": SECRET * 2, "label": label, "reviewer": label} for label in ("supported", "unsupported")]
    lines.write_text("".join(json.dumps(line) + "\n" for line in said))
    with raises("labels.reviewers-disagree") as differ:
        read_reviewed(replace(source, file=str(lines)))
    lines.write_text(f'{{"row_id": "a", "label": "{SECRET}"}}\n')
    with raises("labels.wrong-line", line=1) as no_label:
        read_reviewed(replace(source, file=str(lines)))
    assert not [error for error in (said_twice, no_number, differ, no_label) if "patient" in str(error.value)]
