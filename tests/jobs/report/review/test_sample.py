"""Samples: which rows are drawn, with which probability, whatever the files and their order."""

import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragassay.jobs.report.review.rows import read_page_rows
from ragassay.jobs.report.review.sample import ReviewSample, allocate_rows, draw_sample
from ragassay.jobs.storage.folder import Folder, open_folder
from ragassay.schemas.columns import scored_schema
from tests.raises import raises

SCHEMA = scored_schema(pa.schema([("tenant", pa.string())]))
PARTITIONS = ("dt=2026-11-20", "dt=2026-11-21/team=a%20b")


def scored_row(number: int, score: float | None, threshold: float = 0.0, **more: Any) -> dict[str, Any]:
    verdict = None if score is None else "supported" if score > threshold else "hallucinated"
    texts = {"question": None, "context": ["It is so."], "response": "It is."}
    state = "flagged" if verdict == "hallucinated" else "supported"
    sentence = {"text": "It is.", "start": 0, "end": 6, "score": score, "state": state}
    return {
        "row_key": number, "row_id": f"r{number}", **texts, "score": score, "threshold": threshold, "verdict": verdict,
        "sentences": None if score is None else [sentence], "status": "no_context" if score is None else "ok", "run_id": "1",
        "tenant": f"t{number % 3}", **more,
    }  # fmt: skip


def write_scored(folder: Path, files: dict[str, list[dict[str, Any]]], row_group: int = 7) -> Folder:
    for name, rows in files.items():
        path = folder / "scored" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.Table.from_pylist(rows, schema=SCHEMA), path, row_group_size=row_group)
    return open_folder(str(folder))


def draw_ids(output: Folder, sample: ReviewSample) -> list[tuple[str, str, str | None, float]]:
    shown = read_page_rows(output, sample.rows)
    return [(row["row_id"], row["partition_name"], row["stratum"], row["inclusion_probability"]) for row in shown]


@given(st.dictionaries(st.text(max_size=3), st.integers(1, 50), min_size=1, max_size=6), st.integers(0, 200))
def test_an_allocation_uses_all_rows_and_every_stratum(counts: dict[str, int], more: int) -> None:
    size = len(counts) + more
    sizes = allocate_rows(size, counts)
    assert sizes.keys() == counts.keys() and sum(sizes.values()) == min(size, sum(counts.values()))
    assert all(1 <= sizes[name] <= counts[name] for name in counts)
    full = [sizes[name] for name in counts if sizes[name] < counts[name]]
    assert not full or max(sizes.values()) - min(full) <= 1  # strata that are not exhausted differ by at most one


scores = st.lists(st.none() | st.floats(-5, 5), min_size=1, max_size=40)


@given(scores, st.integers(4, 30), st.integers(0, 5), st.booleans(), st.data())
def test_a_sample_depends_on_rows_not_on_files(
    scores: list[float | None], size: int, seed: int, stratified: bool, data: st.DataObject
) -> None:
    rows: dict[str, list[dict[str, Any]]] = {f"{partition}/": [] for partition in PARTITIONS}
    for i, score in enumerate(scores):
        rows[f"{PARTITIONS[i % 2]}/"].append(scored_row(i, score))
    scored_count = sum(score is not None for score in scores)
    with tempfile.TemporaryDirectory() as first_folder, tempfile.TemporaryDirectory() as second_folder:
        output = write_scored(
            Path(first_folder), {f"{partition}a.parquet": partition_rows for partition, partition_rows in rows.items()}
        )
        shuffled = {partition: data.draw(st.permutations(partition_rows)) for partition, partition_rows in rows.items()}
        boundary = data.draw(st.integers(0, 20))
        split = {f"{partition}z.parquet": partition_rows[:boundary] for partition, partition_rows in shuffled.items()}
        split |= {f"{partition}b.parquet": partition_rows[boundary:] for partition, partition_rows in shuffled.items()}
        split_output = write_scored(Path(second_folder), split, row_group=3)
        if not scored_count:
            with raises("review.no-row"):
                draw_sample(output, size, seed=seed, stratified=stratified)
            return
        sample = draw_sample(output, size, seed=seed, stratified=stratified)
        drawn_rows = draw_ids(output, sample)
        assert drawn_rows == draw_ids(split_output, draw_sample(split_output, size, seed=seed, stratified=stratified))
    assert len(drawn_rows) == len(set(drawn_rows)) == min(size, scored_count)
    assert sum(count for _, count in sample.strata.values()) == scored_count
    drawn = Counter(stratum or "" for *_, stratum, _ in drawn_rows)
    for name, (selected, count) in sample.strata.items():
        weights = [1 / p for *_, stratum, p in drawn_rows if (stratum or "") == name]
        assert drawn[name] == selected and sum(weights) == pytest.approx(count)
        assert stratified == bool(name)
    named = {f"r{i}": score for i, score in enumerate(scores)}
    assert all(named[row_id] is not None for row_id, *_ in drawn_rows)


SEEDS = 200


@pytest.mark.parametrize("stratified", [False, True])
def test_inclusion_probabilities_are_right_and_weights_unbiased(tmp_path: Path, stratified: bool) -> None:
    rng = np.random.default_rng(5)
    values = rng.normal(1.5, 1.0, 90).tolist()  # few of them are flagged
    output = write_scored(tmp_path, {"a.parquet": [scored_row(i, v) for i, v in enumerate(values)]}, row_group=50)
    drawn: Counter[str] = Counter()
    first: Counter[str | None] = Counter()
    probabilities: dict[str, float] = {}
    estimates = []
    for seed in range(SEEDS):
        sample = draw_sample(output, 16, seed=seed, stratified=stratified)
        drawn_rows = draw_ids(output, sample)
        drawn.update(row_id for row_id, *_ in drawn_rows)
        first[drawn_rows[0][2]] += 1
        probabilities |= {row_id: p for row_id, *_, p in drawn_rows}
        estimates.append(sum(values[int(row_id[1:])] / p for row_id, *_, p in drawn_rows))
    assert set(drawn) == {f"r{i}" for i in range(90)}  # every row can be drawn
    spread = np.array([(drawn[row] - SEEDS * p) / np.sqrt(SEEDS * p * (1 - p)) for row, p in probabilities.items() if p < 1])
    assert np.abs(spread).max() < 4.5 and 0.5 < spread.std() < 1.5
    assert abs(np.mean(estimates) - sum(values)) < 4 * np.std(estimates) / np.sqrt(SEEDS)
    # The first row is random: each stratum comes first as often as its share of the sample.
    assert len(sample.strata) == (4 if stratified else 1)
    for name, (selected, _) in sample.strata.items():
        share = selected / 16
        assert abs(first[name or None] - SEEDS * share) <= 4 * np.sqrt(SEEDS * share * (1 - share)), name


def test_a_stratified_sample_has_more_flagged_and_near_rows(tmp_path: Path) -> None:
    values = np.linspace(-0.2, 1.8, 200).tolist()
    output = write_scored(tmp_path, {"a.parquet": [scored_row(i, v) for i, v in enumerate(values)]}, row_group=33)
    sample = draw_sample(output, 40, stratified=True)
    near, far = "near the threshold", "far from the threshold"
    assert sample.strata.keys() == {
        f"{verdict}, {distance}" for verdict in ("flagged", "supported") for distance in (near, far)
    }
    assert {name: selected for name, (selected, _) in sample.strata.items()} == {
        f"flagged, {far}": 11, f"flagged, {near}": 7, f"supported, {far}": 11, f"supported, {near}": 11,
    }  # fmt: skip
    distances: dict[str, list[float]] = {}
    for row_id, _, stratum, _ in draw_ids(output, sample):
        score = values[int(row_id[1:])]
        assert stratum is not None and stratum.startswith("flagged" if score <= 0 else "supported")
        distances.setdefault(stratum, []).append(abs(score))
    for verdict, flagged in (("flagged", 20), ("supported", 180)):
        assert max(distances[f"{verdict}, {near}"]) < min(distances[f"{verdict}, {far}"])
        assert sample.strata[f"{verdict}, {near}"][1] == pytest.approx(flagged / 3, rel=0.1)


def test_where_selects_rows(tmp_path: Path) -> None:
    rows = [scored_row(i, i - 3.5) for i in range(12)]
    output = write_scored(tmp_path, {f"{PARTITIONS[0]}/a.parquet": rows[:6], f"{PARTITIONS[1]}/a.parquet": rows[6:]})
    assert {row_id for row_id, *_ in draw_ids(output, draw_sample(output, 50, where={"tenant": "t1"}))} == {
        "r1",
        "r4",
        "r7",
        "r10",
    }
    of_team = draw_ids(output, draw_sample(output, 50, where={"team": "a b", "tenant": "t0"}))
    assert {(row_id, partition) for row_id, partition, *_ in of_team} == {
        ("r6", "dt=2026-11-21/team=a b"),
        ("r9", "dt=2026-11-21/team=a b"),
    }
    with raises("output.no-column", column="tennant"):
        draw_sample(output, 5, where={"tennant": "t1"})
    with raises("review.no-row", where=" where tenant=t9"):
        draw_sample(output, 5, where={"tenant": "t9"})
    with raises("review.sample-too-small", strata=4, minimum=4):
        draw_sample(output, 3, stratified=True)
    with raises("output.no-verdicts"):
        draw_sample(open_folder(str(tmp_path / "nothing")), 5)


def test_an_infinite_threshold_is_far(tmp_path: Path) -> None:
    output = write_scored(tmp_path, {"a.parquet": [scored_row(i, float(i), float("-inf")) for i in range(9)]})
    assert draw_sample(output, 4, stratified=True).strata == {"supported, far from the threshold": (4, 9)}


@pytest.mark.parametrize("stratified", [False, True])
def test_rows_that_share_their_id_are_neither_drawn_nor_counted(tmp_path: Path, stratified: bool) -> None:
    rows = [scored_row(i, i - 9.5) for i in range(20)]
    twins = [scored_row(3, 8.0), scored_row(5, None), {**scored_row(7, -1.0), "tenant": "elsewhere"}]
    files = {f"{PARTITIONS[0]}/a.parquet": rows, f"{PARTITIONS[0]}/b.parquet": twins, f"{PARTITIONS[1]}/a.parquet": rows[:4]}
    output = write_scored(tmp_path, files)
    sample = draw_sample(output, 100, stratified=stratified)
    drawn = [(row_id, partition) for row_id, partition, *_ in draw_ids(output, sample)]
    unique = {(f"r{i}", PARTITIONS[0]) for i in range(20) if i not in (3, 5, 7)} | {
        (f"r{i}", "dt=2026-11-21/team=a b") for i in range(4)
    }
    assert len(drawn) == len(unique) and set(drawn) == unique  # r3 of the other partition is another row
    assert sum(count for _, count in sample.strata.values()) == len(unique) and sample.ambiguous == 5
    assert draw_sample(output, 100, where={"tenant": "t1"}).ambiguous == 1  # r7, although its twin is not selected
    with raises("review.no-row", where=" where tenant=elsewhere"):
        draw_sample(output, 4, where={"tenant": "elsewhere"})
