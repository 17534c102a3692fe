"""Drift of the latest partition against its history, on partitions with known statistics."""

from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ragassay.jobs.display.drift import describe_drift, describe_outcome
from ragassay.jobs.output.manifest import read_manifest
from ragassay.jobs.output.partitions import earlier_partitions
from ragassay.jobs.storage.folder import Folder, open_folder
from ragassay.jobs.verdicts.drift import check_drift
from ragassay.jobs.verdicts.fit import read_stats
from ragassay.jobs.verdicts.partition_stats import read_member_values, read_partition_stats
from ragassay.pipeline.verdict.moments import compute_moments
from ragassay.schemas.columns import NULL_PARTITION
from ragassay.schemas.manifest import DriftCheck, Manifest, PartitionVerdicts
from ragassay.schemas.stats import PartitionStats
from tests.conftest import example_rows, write_logs
from tests.jobs.conftest import invoke, manifest, write_job
from tests.jobs.evaluation.conftest import job


def partition_stats(seed: int, *, shift: float = 0, mass: float = 0.9, failed: int = 0, sentences: int = 300) -> PartitionStats:
    rng = np.random.default_rng(seed)
    values = {"a": compute_moments(rng.normal(shift, 1, sentences))}
    mass_of = {"a": compute_moments(rng.normal(mass, 0.01, sentences))}
    return PartitionStats("", values, {"a": "log_odds"}, mass_of, {"ok": 100, "no_context": failed}, sentences, [])


def check(latest: PartitionStats, flagged: int = 10, **settings: Any) -> dict[str, bool]:
    stats = {f"dt={d}": partition_stats(d) for d in range(1, 6)} | {"dt=6": latest}
    finalized = {f"dt={d}": PartitionVerdicts("r", 100, 10) for d in range(1, 6)} | {
        "dt=6": PartitionVerdicts("r", 100, flagged)
    }
    drift = check_drift(job(**settings).verdict, Manifest(finalized=finalized), stats)
    assert drift.latest == ["dt=6"] and drift.note is None
    return {shift.metric: shift.drifted for shift in drift.shifts}


def test_a_partition_like_its_history_has_not_drifted() -> None:
    drifted = check(partition_stats(9))
    assert set(drifted) == {"psi", "ks", "label_mass", "flagged", "error_rate", "sentences"} and not any(drifted.values())


@pytest.mark.parametrize(
    ("latest", "flagged", "metrics"),
    [
        (partition_stats(9, shift=1), 10, {"psi", "ks"}),
        (partition_stats(9, mass=0.6), 10, {"label_mass"}),
        (partition_stats(9), 25, {"flagged"}),
        (partition_stats(9, failed=10), 10, {"error_rate"}),
        (partition_stats(9, sentences=150), 10, {"sentences"}),
    ],
)
def test_only_the_metric_that_changed_drifts(latest: PartitionStats, flagged: int, metrics: set[str]) -> None:
    assert {name for name, drifted in check(latest, flagged).items() if drifted} == metrics


def test_a_change_of_the_share_flagged_within_chance_is_no_drift() -> None:
    """The report calls it within chance too."""
    stats = {f"dt={d}": partition_stats(d) for d in (1, 2)}
    few = {"dt=1": PartitionVerdicts("r", 10, 4), "dt=2": PartitionVerdicts("r", 10, 7)}
    drift = check_drift(job().verdict, Manifest(finalized=few), stats)
    (shift,) = (shift for shift in drift.shifts if shift.metric == "flagged")
    assert not drift.drifted and shift.distance > shift.limit and describe_outcome(shift) == "within chance"
    many = {"dt=1": PartitionVerdicts("r", 100, 40), "dt=2": PartitionVerdicts("r", 100, 70)}
    assert [shift.metric for shift in check_drift(job().verdict, Manifest(finalized=many), stats).drifted] == ["flagged"]


def test_a_rise_of_the_share_unscorable_within_chance_is_no_drift() -> None:
    def compare(times: int) -> DriftCheck:
        stats = {f"dt={d}": replace(partition_stats(d), rows={"ok": ok * times, "no_context": failed * times})
                 for d, ok, failed in ((1, 12, 0), (2, 16, 3))}  # fmt: skip
        return check_drift(job().verdict, Manifest(), stats)

    (shift,) = (shift for shift in compare(1).shifts if shift.metric == "error_rate")
    assert shift.distance > shift.limit and describe_outcome(shift) == "within chance"
    assert "error_rate" in [shift.metric for shift in compare(10).drifted]


def test_rows_that_lost_their_score_in_finalize_count_as_errors() -> None:
    """The statistics are those of `raw/`, in which the row still has a score."""
    stats = {"dt=1": partition_stats(1), "dt=2": partition_stats(2)}
    finalized = {"dt=1": PartitionVerdicts("r", 100, 10), "dt=2": PartitionVerdicts("r", 90, 9)}
    drift = check_drift(job().verdict, Manifest(finalized=finalized), stats)
    assert [(shift.metric, round(shift.distance, 6)) for shift in drift.drifted] == [("error_rate", 0.1)]


def test_drift_limits_come_from_the_job() -> None:
    assert not any(check(partition_stats(9), 25, verdict={"drift": {"flagged": 0.2}}).values())


def test_fewer_failures_are_not_drift() -> None:
    stats = {f"dt={d}": partition_stats(d, failed=20) for d in range(1, 6)} | {"dt=6": partition_stats(9)}
    drift = check_drift(job().verdict, Manifest(), stats)
    assert not drift.drifted and "flagged" not in {shift.metric for shift in drift.shifts}


def test_too_little_data_is_not_compared() -> None:
    assert "no earlier partition" in (check_drift(job().verdict, Manifest(), {"dt=1": partition_stats(1)}).note or "")
    few = check_drift(job().verdict, Manifest(), {"dt=1": partition_stats(1), "dt=2": partition_stats(2, sentences=20)})
    assert "20 sentences against 300 before are too few" in (few.note or "") and not few.shifts


def test_a_partition_without_scores_has_drifted() -> None:
    failed = PartitionStats(
        "", {"a": compute_moments([])}, {"a": "log_odds"}, {"a": compute_moments([])}, {"no_context": 50}, 0, []
    )
    drift = check_drift(job().verdict, Manifest(), {"dt=1": partition_stats(1), "dt=2": failed})
    assert [shift.metric for shift in drift.drifted] == ["error_rate"]
    assert "nothing else is checked, 0 sentences against 300 before are too few" in describe_drift(drift)


def test_the_latest_partition_is_all_folders_of_the_highest_first_key() -> None:
    stats = {f"month={m}/tn={t}": partition_stats(m) for m in (9, 10, 2) for t in "ab"}
    drift = check_drift(job().verdict, Manifest(), stats)
    assert drift.latest == ["month=10/tn=a", "month=10/tn=b"]
    assert drift.history == ["month=2/tn=a", "month=2/tn=b", "month=9/tn=a", "month=9/tn=b"]


def test_rows_without_the_first_key_are_not_the_latest() -> None:
    stats = {f"dt={day}": partition_stats(1) for day in ("2026-11-01", "2026-11-02", NULL_PARTITION)}
    drift = check_drift(job().verdict, Manifest(), stats)
    assert (drift.latest, drift.history) == (["dt=2026-11-02"], ["dt=2026-11-01"])
    assert check_drift(job().verdict, Manifest(), {f"dt={NULL_PARTITION}": partition_stats(1)}).note


def test_history_counts_values_of_the_first_key_not_folders() -> None:
    partitions = [f"dt={d}/tenant={t}" for d in range(1, 6) for t in "xy"]
    assert earlier_partitions(partitions, ["dt=5/tenant=x", "dt=5/tenant=y"], 2) == partitions[4:8]
    assert earlier_partitions(partitions, ["dt=1/tenant=x"], 3) == []
    assert earlier_partitions(["dt=1"], [], 3) == []


def test_the_command_prints_the_comparison(scored_once: Path) -> None:
    folder = open_folder(str(scored_once))
    manifest = read_manifest(folder)
    assert not check_drift(job().verdict, manifest, read_partition_stats(folder, read_member_values(manifest))).drifted
    done = invoke("drift", scored_once, "--fail-on-drift")
    assert done.returncode == 0 and "dt=2026-11-07: none in 9 comparisons against 5 earlier partitions" in done.stdout


def test_a_run_reads_only_the_statistics_that_it_did_not_fit(
    without_ray: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second day is incomplete after the last run, whose budget ends in it, and counts with its earlier verdicts."""
    config = write_job(tmp_path / "job.yaml", members={"slms": [], "detectors": [{"name": "novelty", "kind": "novelty"}]})
    reads: list[str] = []

    def record_read(output: Folder, partition: str) -> PartitionStats | None:
        reads.append(partition)
        return read_stats(output, partition)

    monkeypatch.setattr("ragassay.jobs.verdicts.partition_stats.read_stats", record_read)
    for day in (1, 2, 3):
        write_logs(tmp_path / "logs" / f"dt={day}" / "a.parquet", example_rows(30, start=100 * day))
        invoke("run", tmp_path / "logs", tmp_path / "out", "--config", config)
    assert not reads
    write_logs(tmp_path / "logs" / "dt=2" / "b.parquet", example_rows(30, start=500))
    write_logs(tmp_path / "logs" / "dt=1" / "b.parquet", example_rows(30, start=600))
    invoke("run", tmp_path / "logs", tmp_path / "out", "--config", config, "--budget-rows", "40")
    assert reads == ["dt=2"] and manifest(tmp_path / "out")["runs"][-1]["drift"]["history"] == ["dt=1", "dt=2"]


def test_drift_sets_the_exit_code(scored_once: Path, tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text("verdict: {drift: {ks: 0.0001}}\n")
    done = invoke("drift", scored_once, "--config", tmp_path / "job.yaml", "--fail-on-drift")
    assert done.returncode == 3 and "drifted" in done.stdout
    assert invoke("drift", scored_once, "--config", tmp_path / "job.yaml").returncode == 0


def test_run_report_and_drift_show_the_same(without_ray: None, tmp_path: Path) -> None:
    """Also if the last run scores an old day, if the job has limits of its own, and if the reader has no job file."""
    config = write_job(
        tmp_path / "job.yaml",
        members={"slms": [], "detectors": [{"name": "novelty", "kind": "novelty"}]},
        verdict={"drift": {"ks": 0.001, "min_sentences": 2}, "history": {"partitions": 2}},
    )
    for day in (3, 5, 4):
        changes = {"response": "The moon is far from the sea."} if day == 5 else {}
        rows = [{**row, **changes} for row in example_rows(10 + day)]
        write_logs(tmp_path / "logs" / f"dt={day}" / "a.parquet", rows)
        ran = invoke("run", tmp_path / "logs", tmp_path / "out", "--config", config)
        assert ran.returncode == 0, ran.stderr
        (line,) = [line for line in ran.stdout.splitlines() if line.startswith("drift")]
        text = " ".join(line.split()[1:])
        assert text.startswith("dt=3" if day == 3 else "dt=5")
        for more in ([], ["--config", str(config)]):
            assert f"drift  {text}" in invoke("drift", tmp_path / "out", *more).stdout
            assert invoke("report", tmp_path / "out", *more).returncode == 0
            assert text in unescape((tmp_path / "out" / "report.html").read_text())
        stored = DriftCheck(**{**manifest(tmp_path / "out")["runs"][-1]["drift"], "shifts": []})
        assert stored.limits["ks"] == 0.001 and stored.limits["history"] == 2
    assert "values (KS) of novelty" in text and "against 2 earlier partitions" in text
