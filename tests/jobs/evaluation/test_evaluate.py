"""`evaluate` on an output whose labels and scores are known."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.metrics import roc_auc_score

from ragassay.jobs.evaluation.evaluate import HISTOGRAM_BINS, Evaluation, evaluate, histogram_edges
from ragassay.jobs.evaluation.labels import LabelSource
from ragassay.jobs.output.manifest import read_manifest
from ragassay.jobs.output.scored_dataset import as_text
from ragassay.jobs.storage.folder import open_folder
from ragassay.pipeline.verdict.aggregate import legal_pairs
from tests.chat_server import Serve, completion
from tests.jobs.conftest import here, read_rows, resamples, write_job
from tests.jobs.evaluation.conftest import DAYS, ITEMS
from tests.raises import fails, raises


def run(output: Path, source: LabelSource, **more: Any) -> Evaluation:
    folder = open_folder(str(output))
    return evaluate(folder, read_manifest(folder), source, **{"resamples": 20, **more})


@pytest.fixture(scope="module")
def found(scored_once: Path) -> Evaluation:
    return run(scored_once, LabelSource("label"), slices=["tenant", "dt"])


def test_every_row_is_accounted_for(found: Evaluation) -> None:
    assert found.labels == {"correct": DAYS * ITEMS, "partial": DAYS * ITEMS, "wrong": DAYS * ITEMS}
    assert (found.unlabelled, found.unscored, found.groups, found.grouped_by) == (0, DAYS, DAYS * ITEMS, "item")


def test_the_papers_comparison_is_whole(found: Evaluation) -> None:
    assert [c.name for c in found.comparisons] == [
        "correct against wrong", "correct against partial", "correct against wrong and partial",
    ]  # fmt: skip
    names = [line.name for line in found.comparisons[0].lines]
    assert names[:4] == ["ensemble, as finalised", "a alone", "b alone", "calibrated on the other half"]
    assert names[4:6] == ["a, whole response", "b, whole response"]
    assert {f"{mean}, {policy}" for mean, policy in legal_pairs()} < set(names) and len(legal_pairs()) == 18
    assert names[-2:] == ["baseline: shorter response", "baseline: words in context"]
    for comparison in found.comparisons:
        for line in comparison.lines:
            assert all(m.low is not None and m.low <= m.high for m in line.measures.values())  # type: ignore[operator]


def test_figures_are_those_of_the_rows(found: Evaluation, scored_once: Path) -> None:
    rows = [row for row in read_rows(scored_once) if row["status"] == "ok"]
    good = np.array([row["label"] == "correct" for row in rows])
    stored = {line.name: line for line in found.comparisons[2].lines}
    ensemble = stored["ensemble, as finalised"].measures
    assert ensemble["auroc"].value == pytest.approx(roc_auc_score(good, [row["score"] for row in rows]))
    passed = np.array([row["verdict"] == "supported" for row in rows])
    assert ensemble["balanced_accuracy"].value == pytest.approx((passed[good].mean() + (~passed)[~good].mean()) / 2)
    harmonic = stored["harmonic, cdf"].measures  # mu and sigma over all partitions, as in one run over all of them
    assert harmonic["auroc"].value == pytest.approx(ensemble["auroc"].value)
    assert stored["a alone"].measures["auroc"].value > ensemble["auroc"].value > stored["b alone"].measures["auroc"].value
    calibrated = stored["calibrated on the other half"].measures["auroc"].value
    assert calibrated > ensemble["auroc"].value  # it has found out that b is noise
    assert abs(stored["b alone"].measures["auroc"].value - 0.5) < 0.1


def test_sentences_by_spans(found: Evaluation) -> None:
    assert found.sentences is not None
    assert (found.sentences.good, found.sentences.bad) == (3 * DAYS * ITEMS, 3 * DAYS * ITEMS)
    by_name = {line.name: line.measures["auroc"].value for line in found.sentences.lines}
    assert by_name["a alone"] > 0.9 > by_name["ensemble"] > 0.7


def test_slices_by_a_column_and_a_hive_key(found: Evaluation) -> None:
    assert sum(s.rows for s in found.slices if s.column == "tenant") == 3 * DAYS * ITEMS
    days = [s for s in found.slices if s.column == "dt"]
    assert [s.value for s in days] == [f"2026-11-{d + 2:02d}" for d in range(DAYS)]
    assert all(s.rows == 3 * ITEMS and s.correct == pytest.approx(1 / 3) and s.auroc is not None for s in days)


def test_halves_histograms_and_the_file(found: Evaluation, scored_once: Path) -> None:
    assert set(found.normalisation.fits) == {"a", "b"} and 0 <= (found.normalisation.moved or 0) < 0.1
    for histogram in found.histograms:
        assert {label: sum(counts) for label, counts in histogram.counts.items()} == found.labels
    assert json.loads((scored_once / "evaluation.json").read_text())["label"] == "label"


def test_a_boolean_label_has_one_comparison(scored_once: Path) -> None:
    got = run(scored_once, LabelSource("hallucinated"))
    assert [c.name for c in got.comparisons] == ["correct against wrong"]
    assert got.labels == {"correct": DAYS * ITEMS, "wrong": 2 * DAYS * ITEMS}


def test_labels_for_a_part_of_the_rows(scored: Path, tmp_path: Path) -> None:
    path = tmp_path / "labels.parquet"
    rows = [row for row in read_rows(scored) if row["status"] == "ok"][:90]
    pq.write_table(pa.table({"row_id": [r["row_id"] for r in rows], "said": [r["label"] for r in rows]}), path)
    got = run(scored, LabelSource("said", file=str(path)), slices=["tenant"])
    assert sum(got.labels.values()) == 90 and got.unlabelled == 3 * DAYS * ITEMS + DAYS - 90


def test_labels_of_a_file_belong_to_one_row(scored: Path, tmp_path: Path) -> None:
    path = tmp_path / "labels.parquet"
    rows = [row for row in read_rows(scored) if row["status"] == "ok"]
    days = ["dt=2026-11-02", "dt=1999-01-01"]
    columns = {"row_id": [r["row_id"] for r in rows], "said": [r["label"] for r in rows]}
    pq.write_table(pa.table({**columns, "partition": [days[0]] * len(rows)}), path)
    got = run(scored, LabelSource("said", file=str(path)))
    here = sum(row["dt"] == "2026-11-02" for row in rows)
    assert (sum(got.labels.values()), got.unmatched) == (here, len(rows) - here)

    for file in (scored / "scored").rglob("*.parquet"):  # ids that begin anew every night
        table = pq.read_table(file, partitioning=None)
        anew = pa.array([f"row {i}" for i in range(len(table))])
        pq.write_table(table.set_column(table.schema.get_field_index("row_id"), "row_id", anew), file)
    pq.write_table(pa.table({"row_id": ["row 1", "row 2"], "said": ["correct", "wrong"]}), path)
    with raises("labels.row-unclear", row="row 'row 1'", rows=6, column="partition"):
        run(scored, LabelSource("said", file=str(path)))


def test_only_some_rows(scored_once: Path) -> None:
    got = run(scored_once, LabelSource("label", where={"dt": "2026-11-03"}))
    assert got.labels == {"correct": ITEMS, "partial": ITEMS, "wrong": ITEMS}
    assert got.elsewhere == (DAYS - 1) * (3 * ITEMS + 1) and got.unscored == 1
    with raises("output.no-column", column="split"):
        run(scored_once, LabelSource("label", where={"split": "train"}))


@pytest.mark.parametrize(
    ("source", "more", "message"),
    [
        (LabelSource("verified"), {}, "output.no-column"),
        (LabelSource("label"), {"slices": ["generator"]}, "output.no-column"),
        (LabelSource("label"), {"group": "topic"}, "output.no-column"),
        (LabelSource("tenant"), {}, "labels.unknown-values"),
        (LabelSource("label", ignore=frozenset({"correct"})), {}, "labels.one-kind"),
        (LabelSource("label", ignore=frozenset({"correct", "partial", "wrong"})), {}, "labels.none"),
        (LabelSource("score"), {}, "labels.true-unclear"),
        (LabelSource("verdict"), {}, "labels.own-column"),
        (LabelSource("label", sentences="members"), {}, "labels.no-sentence-labels"),
    ],
)
def test_labels_that_can_not_be_used(scored_once: Path, source: LabelSource, more: dict[str, Any], message: str) -> None:
    with raises(message):
        run(scored_once, source, **more)


def test_an_output_without_verdicts_says_so(scored: Path) -> None:
    manifest = json.loads((scored / "manifest.json").read_text())
    (scored / "manifest.json").write_text(json.dumps({**manifest, "runs": []}))
    with raises("output.no-scored-row"):
        run(scored, LabelSource("label"))


def test_a_served_judge_is_a_line_of_the_table_and_is_not_paid_twice(scored: Path, serve: Serve) -> None:
    server = serve(lambda body: completion({"Yes": 0.9} if "by correct" in str(body) else {"Perhaps": 0.9, "No": 0.1}))
    config = scored.parent / "job.yaml"
    write_job(config, evaluation={"reference": {"name": "big", "base_url": server.url, "model": "m"}, "resamples": 0})
    for _ in range(2):
        done = here("evaluate", scored, "--label", "label", "--config", config)
        assert done.returncode == 0, done.stderr
        assert len(server.bodies) == 3 * DAYS * ITEMS
    by_name = {line["name"]: line for line in json.loads((scored / "evaluation.json").read_text())["comparisons"][0]["lines"]}
    assert by_name["judge big, whole response"]["measures"]["auroc"]["value"] == 1.0
    server.shutdown()
    server.server_close()
    (scored / "judge" / "big.json").unlink()
    gone = here("evaluate", scored, "--label", "label", "--config", config)
    fails(gone, "server.unreachable")


def test_on_the_command_line(scored: Path, tmp_path: Path) -> None:
    done = here("evaluate", scored, "--label", "label", "--slice", "tenant", *resamples(tmp_path, 10), "--all")
    assert done.returncode == 0, done.stderr
    assert "correct against partial: 120 and 120 rows" in done.stdout and "normalisation check" in done.stdout
    fails(here("evaluate", scored), "options.no-labels")


def test_values_as_text() -> None:
    assert [as_text(v) for v in (True, 3, None, datetime(2026, 11, 21, 9, tzinfo=UTC))] == ["true", "3", "(none)", "2026-11-21"]


@pytest.mark.parametrize(
    "score", [[0.3], [0.3, 0.3], [0.8413447460685429, 0.841344746068543], [0.0, 1e-300], [1e12, 1e12 + 1e-3]]
)
def test_scores_that_differ_by_rounding_alone_have_a_histogram(score: list[float]) -> None:
    edges = histogram_edges(np.array(score))
    assert len(edges) == HISTOGRAM_BINS + 1 and (np.diff(edges) > 0).all()
    assert np.histogram(score, edges)[0].sum() == len(score)
