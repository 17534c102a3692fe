"""The bundled logs: their composition, and that they match their source."""

from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from ragassay.jobs.data.handbook.build import DEMO, LOGS, build, read_items
from ragassay.pipeline.text.split import load_splitter, split_sentences
from tests.conftest import HANDBOOK


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(HANDBOOK).to_pylist()
    return rows


def test_bundled_parquet_files_match_their_source(tmp_path: Path) -> None:
    build(tmp_path / "logs", tmp_path / "demo")
    for name, bundled in (("logs", LOGS), ("demo", DEMO)):
        files = sorted(p.relative_to(tmp_path / name) for p in (tmp_path / name).rglob("*.parquet"))
        assert files and files == sorted(p.relative_to(bundled) for p in bundled.rglob("*.parquet"))
        assert all(pq.read_table(tmp_path / name / f).equals(pq.read_table(bundled / f)) for f in files)


def test_items_and_splits(rows: list[dict[str, Any]]) -> None:
    assert len(read_items("items")) == 120 and len(rows) == 360 and len({r["row_id"] for r in rows}) == 360
    assert Counter(r["split"] for r in rows) == {"train": 240, "test": 120}
    assert len({r["dt"] for r in rows}) == 6
    by_item: dict[str, set[str]] = {}
    for row in rows:
        by_item.setdefault(row["item"], set()).add(row["split"])
    assert all(len(splits) == 1 for splits in by_item.values())
    assert sum(f.stat().st_size for f in HANDBOOK.rglob("*.parquet")) < 500_000


def test_shape_of_items(rows: list[dict[str, Any]]) -> None:
    assert {len(r["context"]) for r in rows} == {1, 2, 3}
    for row in rows:
        truths = [s["supported"] for s in row["sentence_labels"]]
        assert 2 <= len(truths) <= 4
        assert set(truths) == {"correct": {True}, "partial": {True, False}, "wrong": {False}}[row["label"]]
        assert row["hallucinated"] == (row["label"] != "correct")


def test_responses_of_an_item_are_of_similar_length(rows: list[dict[str, Any]]) -> None:
    lengths: dict[str, list[int]] = {}
    for row in rows:
        lengths.setdefault(row["item"], []).append(len(row["response"]))
    assert all(max(x) <= 1.35 * min(x) for x in lengths.values())
    mean = {
        label: sum(len(r["response"]) for r in rows if r["label"] == label) / 120 for label in ("correct", "partial", "wrong")
    }
    assert max(mean.values()) <= 1.05 * min(mean.values()), "length alone must not reveal the label"


def different_from_labels(rows: list[dict[str, Any]]) -> list[str]:
    """Ids of the rows whose labeled sentences are neither sentences of the splitter nor sequences of its clauses."""
    spans = split_sentences(load_splitter("sentencizer", "en"), [r["response"] for r in rows])
    different = []
    for row, split in zip(rows, spans, strict=True):
        labeled = [(x["start"], x["end"]) for x in row["sentence_labels"]]
        whole = [(min(c)[0], max(c)[1]) for a, b in labeled if (c := [(s, e) for s, e in split if a <= s and e <= b])]
        if whole != labeled or len(split) != sum(any(a <= s and e <= b for a, b in labeled) for s, e in split):
            different.append(row["row_id"])
    return different


def test_labeled_sentences_match_those_of_the_splitter(rows: list[dict[str, Any]]) -> None:
    assert len(different_from_labels(rows)) <= 0.02 * len(rows)


@pytest.fixture(scope="module")
def demo() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(DEMO).to_pylist()
    return rows


def test_the_demo_has_everyday_and_hard_answers(demo: list[dict[str, Any]], rows: list[dict[str, Any]]) -> None:
    assert Counter((r["part"], r["label"]) for r in demo) == {
        (part, label): items for part, items in (("everyday", 34), ("hard", 24)) for label in ("correct", "partial", "wrong")
    }
    assert len({r["row_id"] for r in demo}) == len(demo) and {r["split"] for r in demo} == {"test"}
    known = {r["row_id"]: r["response"] for r in rows if r["split"] == "test"}
    assert all(known[r["row_id"]] == r["response"] for r in demo if r["part"] == "hard")


def test_shape_of_everyday_items(demo: list[dict[str, Any]]) -> None:
    everyday = [r for r in demo if r["part"] == "everyday"]
    for row in everyday:
        truths = [s["supported"] for s in row["sentence_labels"]]
        assert 2 <= len(row["context"]) <= 4 and 3 <= len(truths) <= 5
        assert (False in truths) == row["hallucinated"]
        assert truths.count(True) <= 1 if row["label"] == "wrong" else True in truths
    mean = {
        label: sum(len(r["response"]) for r in everyday if r["label"] == label) / 34
        for label in ("correct", "partial", "wrong")
    }
    assert max(mean.values()) <= 1.1 * min(mean.values()), "length alone must not reveal the label"


def test_sentences_of_everyday_answers_match_those_of_the_splitter(demo: list[dict[str, Any]]) -> None:
    assert different_from_labels([row for row in demo if row["part"] == "everyday"]) == []
