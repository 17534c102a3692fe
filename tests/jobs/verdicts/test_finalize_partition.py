"""Finalize partitions without Ray: raw rows to scored rows, batch by batch."""

import errno
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import fs as pafs

from ragassay.jobs.output.scored_dataset import DataFile, ScoredDataset
from ragassay.jobs.verdicts.finalize_partition import compute_score_moments, finalize_partition
from ragassay.jobs.verdicts.fit import compute_partition_stats
from ragassay.pipeline.finalize import VerdictSettings, finalize_rows
from ragassay.pipeline.member_values import ValueKind, read_scores
from ragassay.pipeline.verdict.aggregate import Mean, PositivityPolicy
from ragassay.pipeline.verdict.ensemble import NormalizationFit, fit_detector, fit_member
from ragassay.pipeline.verdict.rule import Rule, apply_rule
from ragassay.schemas.columns import raw_schema, scored_schema
from tests.raises import raises

FS = pafs.LocalFileSystem()
VALUES = {"a": "log_odds"}


def raw_row(key: int, odds: list[float] | None, status: str = "ok") -> dict[str, Any]:
    sentences = [{"text": f"S{j}.", "start": 4 * j, "end": 4 * j + 3} for j in range(len(odds or [1]))]
    member = {"name": "a", "sentence_scores": odds, "log_p_yes": odds, "log_p_no": [0.0] * len(odds or [])}
    failed = status != "ok"
    return {
        "row_key": key, "row_id": f"r{key}", "question": "q", "context": ["c"], "response": "S0. S1.", "tenant": "t",
        "sentences": None if status == "no_context" else sentences, "members": None if failed else [member], "usage": [],
        "context_windows": None if failed else 1, "status": status, "error": "why" if failed else None,
    }  # fmt: skip


def write_raw(path: Path, rows: list[dict[str, Any]]) -> str:
    schema = raw_schema(pa.schema([("tenant", pa.string())]))
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), path)
    return str(path)


def raw_of(paths: list[str]) -> ScoredDataset:
    return ScoredDataset(FS, tuple(DataFile("", path) for path in paths))


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    late = write_raw(tmp_path / "a.parquet", [raw_row(5, [3.0, -1.0]), raw_row(6, None, "no_context")])
    early = write_raw(tmp_path / "b.parquet", [raw_row(1, None, "too_long"), raw_row(2, [1.0])])
    return [late, early]


def settings(files: list[str], threshold: float | None) -> VerdictSettings:
    stats = compute_partition_stats(raw_of(files), VALUES)
    assert stats.rows == {"ok": 2, "no_context": 1, "too_long": 1} and stats.sentences == 3
    return VerdictSettings(VALUES, rule({"a": fit_member("a", stats.members["a"])}), threshold, "run-1")


def rule(fits: dict[str, NormalizationFit]) -> Rule:
    return Rule(fits, Mean.HARMONIC, PositivityPolicy.CLIP, 0.01)


def test_a_partially_written_file_is_removed(files: list[str], tmp_path: Path) -> None:
    target = tmp_path / "out" / "part-0.parquet"
    with (
        patch.object(pq.ParquetWriter, "write_table", side_effect=OSError(errno.ENOSPC, "full")),
        pytest.raises(OSError, match="full"),
    ):
        finalize_partition(raw_of(files), str(target), settings(files, 0.015))
    assert list(target.parent.iterdir()) == []


def test_scores_equal_a_calculation_by_hand_in_the_order_of_the_input(files: list[str], tmp_path: Path) -> None:
    target = tmp_path / "out" / "part-0.parquet"
    done = finalize_partition(raw_of(files), str(target), settings(files, 0.015))
    assert (done.rows, done.flagged) == (4, {0: 1}) and done.sentences == {0: 3}
    assert done.statuses == {0: {"ok": 2, "no_context": 1, "too_long": 1}}
    rows = pq.read_table(target).to_pylist()
    assert [r["row_id"] for r in rows] == ["r1", "r2", "r5", "r6"]
    z = (3.0 - 1.0) / (8 / 3) ** 0.5  # values 3, -1, 1: mean 1, variance 8/3
    too_long, middle, mixed, no_context = rows
    assert (middle["score"], middle["verdict"]) == (0.01, "hallucinated")  # z = 0, clipped to epsilon
    assert mixed["score"] == pytest.approx(2 / (1 / z + 1 / 0.01)) and mixed["verdict"] == "supported"
    assert [s["score"] for s in mixed["sentences"]] == pytest.approx([z, -z])
    assert [s["state"] for s in mixed["sentences"]] == ["supported", "doubtful"] and mixed["flagged_sentences"] == 0
    for row in (too_long, no_context):
        assert row["score"] is row["verdict"] is row["flagged_sentences"] is row["members"] is None and row["error"] == "why"
    empty = {"repeats": None, "score": None, "probability": None, "state": None}
    assert too_long["sentences"] == [{"text": "S0.", "start": 0, "end": 3, **empty}]
    assert no_context["sentences"] is None
    assert {r["tenant"] for r in rows} == {"t"} and {r["run_id"] for r in rows} == {"run-1"}


def test_score_moments_cover_the_scored_rows(files: list[str]) -> None:
    moments = compute_score_moments(raw_of(files), settings(files, None))
    assert moments.count == 2 and moments.low == 0.01


def test_a_partition_without_a_scored_row_is_written_too(tmp_path: Path) -> None:
    raw = write_raw(tmp_path / "a.parquet", [raw_row(1, None, "no_context"), raw_row(2, None, "too_long")])
    done = finalize_partition(raw_of([raw]), str(tmp_path / "s.parquet"), VerdictSettings(VALUES, rule({}), None, "r"))
    assert (done.rows, done.flagged.total()) == (2, 0)
    assert pq.read_table(tmp_path / "s.parquet")["threshold"].null_count == 2


def test_pass_through_columns_of_all_runs_are_written(tmp_path: Path) -> None:
    first = write_raw(tmp_path / "a.parquet", [raw_row(1, [1.0, 2.0])])
    schema = raw_schema(pa.schema([("tenant", pa.string()), ("latency", pa.int64())]))
    pq.write_table(pa.Table.from_pylist([{**raw_row(2, [3.0]), "latency": 7}], schema=schema), tmp_path / "b.parquet")
    pq.write_table(pa.Table.from_pylist([raw_row(3, [0.0])], schema=raw_schema(pa.schema([]))), tmp_path / "c.parquet")
    files = [str(tmp_path / "c.parquet"), first, str(tmp_path / "b.parquet")]
    fits = {"a": fit_member("a", compute_partition_stats(raw_of(files), VALUES).members["a"])}
    finalize_partition(raw_of(files), str(tmp_path / "s.parquet"), VerdictSettings(VALUES, rule(fits), 0.5, "r"))
    rows = pq.read_table(tmp_path / "s.parquet").to_pylist()
    assert [(r["tenant"], r["latency"]) for r in rows] == [("t", None), ("t", 7), (None, None)]
    pq.write_table(
        pa.Table.from_pylist([{**raw_row(4, [1.0]), "tenant": 1}], schema=raw_schema(pa.schema([("tenant", pa.int64())]))),
        tmp_path / "d.parquet",
    )
    with raises("output.other-column-type"):
        finalize_partition(
            raw_of([*files, str(tmp_path / "d.parquet")]),
            str(tmp_path / "s.parquet"),
            VerdictSettings(VALUES, rule(fits), 0.5, "r"),
        )


def test_an_unknown_member_is_named(files: list[str], tmp_path: Path) -> None:
    wrong = replace(settings(files, 0.0), values={"b": "p_yes"})
    with raises("output.no-member"):
        finalize_partition(raw_of(files), str(tmp_path / "s.parquet"), wrong)


MIXED = {"a": "log_odds", "words": ValueKind.SCORE}
"""An SLM and a detector, as most jobs have them."""


def with_detector(row: dict[str, Any], values: list[float | None]) -> dict[str, Any]:
    member = {"name": "words", "sentence_scores": values, "response_score": 0.5, "log_p_yes": None, "log_p_no": None}
    return {**row, "members": [*row["members"], member]}


def test_statistics_of_a_detector_without_a_scored_row(tmp_path: Path) -> None:
    """The kind of a member determines its numbers, even if no row has any."""
    bad = [raw_row(1, None, "no_context"), raw_row(2, None, "too_long")]
    good = [with_detector(raw_row(3, [3.0, -1.0]), [0.25, None]), with_detector(raw_row(4, [1.0]), [0.75])]
    files = [
        write_raw(tmp_path / "bad.parquet", bad),
        write_raw(tmp_path / "good.parquet", [*good, raw_row(5, None, "no_context")]),
    ]
    no_scores = compute_partition_stats(raw_of(files[:1]), MIXED)
    assert no_scores.rows == {"no_context": 1, "too_long": 1} and not any(m.count for m in no_scores.members.values())
    both = compute_partition_stats(raw_of(files), MIXED)
    assert (both.members["a"].count, both.members["words"].count, both.sentences) == (3, 2, 3)
    assert both.members["words"].mean == 0.5 and both.label_mass["words"].count == 0
    fits = {"a": fit_member("a", both.members["a"]), "words": fit_detector(both.members["words"])}
    done = finalize_partition(raw_of(files), str(tmp_path / "s.parquet"), VerdictSettings(MIXED, rule(fits), 0.0, "r"))
    assert done.rows == 5 and pq.read_table(tmp_path / "s.parquet")["score"].null_count == 3


def test_a_member_of_another_kind_than_in_the_job_is_named(tmp_path: Path) -> None:
    raw = write_raw(tmp_path / "a.parquet", [with_detector(raw_row(1, [1.0]), [0.5])])
    with raises("output.member-kind", member="words", kind="a detector"):
        compute_partition_stats(raw_of([raw]), {"words": "log_odds"})
    with raises("output.member-kind", kind="an SLM"):
        compute_partition_stats(raw_of([raw]), {"a": ValueKind.SCORE})


def test_a_row_without_a_value_of_a_remaining_member_is_not_judged(tmp_path: Path) -> None:
    """If the job has fewer members than the scores, a row that only the removed members scored has no score."""
    file = 7 << 32
    rows = [with_detector(raw_row(file + 1, [3.0, -1.0]), [None, None]), with_detector(raw_row(file + 2, [1.0]), [0.75])]
    raw = write_raw(tmp_path / "a.parquet", [*rows, raw_row(file + 3, None, "no_context")])
    values: dict[str, str] = {"words": ValueKind.SCORE}
    fits = {"words": NormalizationFit(0.5, 0.1, 1, 0.0)}
    for chosen, weights in ((values, None), (MIXED, {"a": 0.0, "words": 1.0})):
        fitted_rule = replace(rule({**fits, **({"a": NormalizationFit(0, 1, 1, 0)} if "a" in chosen else {})}), weights=weights)
        done = finalize_partition(raw_of([raw]), str(tmp_path / "s.parquet"), VerdictSettings(chosen, fitted_rule, 0.1, "r"))
        assert done.statuses == {7: {"not_judged": 1, "ok": 1, "no_context": 1}} and done.sentences == {7: 1}
        first, second, third = pq.read_table(tmp_path / "s.parquet").to_pylist()
        assert first["status"] == "not_judged" and first["error"] == "none of words has a value for a sentence of the row"
        assert first["score"] is first["verdict"] is first["flagged_sentences"] is first["sentences"][0]["score"] is None
        assert second["status"] == "ok" and second["score"] is not None and second["error"] is None
        assert third["status"] == "no_context" and third["error"] == "why"


BAD = 66.0

odds_of_rows = st.lists(st.none() | st.lists(st.sampled_from([3.0, -1.0, 0.5, BAD]), min_size=1, max_size=3), max_size=8)


@given(odds_of_rows)
def test_a_row_that_cannot_be_finalized_affects_no_other_row(odds: list[list[float] | None]) -> None:
    """If a step of finalize raises for some rows, no row is lost or moved, and no value of another row changes."""
    passthrough = pa.schema([("tenant", pa.string())])
    raw = [raw_row(i, values, "ok" if values else "no_context") for i, values in enumerate(odds)]
    batch = pa.RecordBatch.from_pylist(raw, schema=raw_schema(passthrough))
    verdict_settings = VerdictSettings(VALUES, rule({"a": NormalizationFit(0.0, 1.0, 9, -1.0)}), 0.4, "r")
    schema = scored_schema(passthrough)

    def failing(rule: Rule, values: dict[str, Any], counts: Any) -> Any:
        if BAD in values["a"]:
            raise ZeroDivisionError("log text")
        return apply_rule(rule, values, counts)

    expected = finalize_rows(batch, schema, verdict_settings).to_pylist()
    with patch("ragassay.pipeline.finalize.apply_rule", failing):
        rows = finalize_rows(batch, schema, verdict_settings).to_pylist()
    assert [row["row_id"] for row in rows] == [f"r{i}" for i in range(len(odds))]
    for values, row, expected_row in zip(odds, rows, expected, strict=True):
        if values and BAD in values:
            assert row["status"] == "error" and row["score"] is row["verdict"] is row["flagged_sentences"] is None
            assert row["error"].startswith("finalize: ZeroDivisionError in finalize_batch (pipeline/finalize.py")
            assert (row["response"], row["members"], row["tenant"]) == (expected_row["response"], expected_row["members"], "t")
        else:
            assert row == expected_row


def test_a_row_that_cannot_be_read_stops_neither_fit_nor_threshold(tmp_path: Path) -> None:
    raw = write_raw(tmp_path / "a.parquet", [raw_row(1, [3.0]), raw_row(2, [BAD, 1.0]), raw_row(3, [-1.0, 0.5])])

    def failing(batch: pa.RecordBatch, values: dict[str, str]) -> Any:
        scores = read_scores(batch, values)
        if BAD in scores[0]["a"]:
            raise KeyError("log text")
        return scores

    with (
        patch("ragassay.pipeline.member_values.read_scores", failing),
        patch("ragassay.pipeline.finalize.read_scores", failing),
    ):
        stats = compute_partition_stats(raw_of([raw]), VALUES)
        assert stats.rows == {"ok": 3} and stats.members["a"].count == 3
        verdict_settings = VerdictSettings(VALUES, rule({"a": fit_member("a", stats.members["a"])}), 0.5, "r")
        assert compute_score_moments(raw_of([raw]), verdict_settings).count == 2
        done = finalize_partition(raw_of([raw]), str(tmp_path / "s.parquet"), verdict_settings)
    assert done.statuses == {0: {"ok": 2, "error": 1}}
    assert pq.read_table(tmp_path / "s.parquet")["status"].to_pylist() == ["ok", "error", "ok"]
