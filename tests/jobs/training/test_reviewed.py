"""Test the conversion of reviewers' labels to training examples."""

import json
from pathlib import Path
from typing import Any

import pytest

from ragassay.jobs.config.input import Columns
from ragassay.jobs.evaluation.labels import LabelSource
from ragassay.jobs.training.examples import Examples, read_examples
from ragassay.pipeline.slm.config import Slm
from ragassay.pipeline.slm.prompt import PromptBuilder
from ragassay.pipeline.text.split import load_splitter
from tests.jobs.conftest import read_rows
from tests.jobs.evaluation.conftest import job, labeled_days, write_output
from tests.raises import raises


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_output(tmp_path_factory.mktemp("tune") / "out", labeled_days(), job())


def read(output: Path, file: Path, lines: list[dict[str, Any]], tokenizer: Any) -> Examples:
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    slm = Slm(name="slm")
    builder = PromptBuilder(slm, tokenizer)
    columns = Columns(question="asked", context="passages", response="answer")  # the output no longer has the names of the logs
    source = LabelSource("label", file=str(file))
    return read_examples(str(output), source, columns, slm, builder, load_splitter("sentencizer", "en"), 2048)


def test_labels_of_responses_and_sentences_become_examples(output: Path, tmp_path: Path, tokenizer: Any) -> None:
    whole, part, unsure, other = [row for row in read_rows(output) if row["status"] == "ok"][:12:3]
    offsets = {"start": part["sentences"][0]["start"], "end": part["sentences"][0]["end"]}
    lines = [
        {"row_id": whole["row_id"], "label": "supported"},
        {"row_id": part["row_id"], "label": "supported", **offsets},  # its other sentence is not labeled
        {"row_id": unsure["row_id"], "label": "unsure"},
        {"row_id": other["row_id"], "label": "unsupported"},
        {"row_id": "nowhere", "label": "supported"},
    ]
    day = {"partition": f"dt={whole['dt']}"}
    counts = read(output, tmp_path / "r.jsonl", [{**day, **line} for line in lines], tokenizer).counts
    assert counts["supported"] == 3 and counts["unsupported"] == 1
    assert not counts["rows without label, context or sentence"]


def test_labels_of_another_output_are_refused(output: Path, tmp_path: Path, tokenizer: Any) -> None:
    with raises("labels.no-match"):
        read(output, tmp_path / "r.jsonl", [{"row_id": "nowhere", "label": "supported"}], tokenizer)
