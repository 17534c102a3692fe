"""Tonight against history, on partitions whose statistics are known."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ragassay.jobs.evaluation.labelled import member_values_of, stats_of
from ragassay.jobs.output.manifest import read_manifest
from ragassay.jobs.output.partitions import history
from ragassay.jobs.storage.folder import open_folder
from ragassay.jobs.verdicts.drift import check_drift
from ragassay.pipeline.verdict.moments import moments_of
from ragassay.schemas.manifest import Manifest, PartitionVerdicts
from ragassay.schemas.stats import PartitionStats
from tests.jobs.conftest import here
from tests.jobs.evaluation.conftest import job


def night(seed: int, *, shift: float = 0, mass: float = 0.9, failed: int = 0, sentences: int = 300) -> PartitionStats:
    rng = np.random.default_rng(seed)
    values = {"a": moments_of(rng.normal(shift, 1, sentences))}
    mass_of = {"a": moments_of(rng.normal(mass, 0.01, sentences))}
    return PartitionStats("", values, {"a": "log_odds"}, mass_of, {"ok": 100, "no_context": failed}, sentences, [])


def check(tonight: PartitionStats, flagged: int = 10, **settings: Any) -> dict[str, bool]:
    stats = {f"dt={d}": night(d) for d in range(1, 6)} | {"dt=6": tonight}
    finalized = {f"dt={d}": PartitionVerdicts("r", 100, 10) for d in range(1, 6)} | {
        "dt=6": PartitionVerdicts("r", 100, flagged)
    }
    found = check_drift(job(**settings).verdict, Manifest(finalized=finalized), stats)
    assert found.latest == ["dt=6"] and found.note is None
    return {shift.metric: shift.drifted for shift in found.shifts}


def test_a_night_like_the_others_has_not_drifted() -> None:
    got = check(night(9))
    assert set(got) == {"psi", "ks", "label_mass", "flagged", "error_rate", "sentences"} and not any(got.values())


@pytest.mark.parametrize(
    ("tonight", "flagged", "what"),
    [
        (night(9, shift=1), 10, {"psi", "ks"}),
        (night(9, mass=0.6), 10, {"label_mass"}),
        (night(9), 25, {"flagged"}),
        (night(9, failed=10), 10, {"error_rate"}),
        (night(9, sentences=150), 10, {"sentences"}),
    ],
)
def test_what_moved_is_named_and_nothing_else(tonight: PartitionStats, flagged: int, what: set[str]) -> None:
    assert {name for name, drifted in check(tonight, flagged).items() if drifted} == what


def test_rows_that_lost_their_score_in_finalize_count_as_errors() -> None:
    """The statistics are of `raw/`, where the row had one."""
    stats = {"dt=1": night(1), "dt=2": night(2)}
    finalized = {"dt=1": PartitionVerdicts("r", 100, 10), "dt=2": PartitionVerdicts("r", 90, 9)}
    found = check_drift(job().verdict, Manifest(finalized=finalized), stats)
    assert [(shift.metric, round(shift.distance, 6)) for shift in found.drifted] == [("error_rate", 0.1)]


def test_thresholds_come_from_the_job() -> None:
    assert not any(check(night(9), 25, verdict={"drift": {"flagged": 0.2}}).values())


def test_fewer_failures_are_no_drift() -> None:
    stats = {f"dt={d}": night(d, failed=20) for d in range(1, 6)} | {"dt=6": night(9)}
    found = check_drift(job().verdict, Manifest(), stats)
    assert not found.drifted and "flagged" not in {shift.metric for shift in found.shifts}


def test_too_little_to_compare_is_said() -> None:
    assert "no partition before" in (check_drift(job().verdict, Manifest(), {"dt=1": night(1)}).note or "")
    few = check_drift(job().verdict, Manifest(), {"dt=1": night(1), "dt=2": night(2, sentences=20)})
    assert "20 sentences are too few" in (few.note or "") and not few.shifts


def test_a_night_that_failed_whole_is_drift() -> None:
    dead = PartitionStats("", {"a": moments_of([])}, {"a": "log_odds"}, {"a": moments_of([])}, {"no_context": 50}, 0, [])
    found = check_drift(job().verdict, Manifest(), {"dt=1": night(1), "dt=2": dead})
    assert [shift.metric for shift in found.drifted] == ["error_rate"] and found.note is None


def test_tonight_is_all_folders_of_the_last_night_in_the_order_of_numbers() -> None:
    stats = {f"month={m}/tn={t}": night(m) for m in (9, 10, 2) for t in "ab"}
    found = check_drift(job().verdict, Manifest(), stats)
    assert found.latest == ["month=10/tn=a", "month=10/tn=b"]
    assert found.history == ["month=2/tn=a", "month=2/tn=b", "month=9/tn=a", "month=9/tn=b"]


def test_history_goes_back_by_nights_not_by_folders() -> None:
    places = [f"dt={d}/tenant={t}" for d in range(1, 6) for t in "xy"]
    assert history(places, ["dt=5/tenant=x", "dt=5/tenant=y"], 2) == places[4:8]
    assert history(places, ["dt=1/tenant=x"], 3) == []
    assert history(["dt=1"], [], 3) == []


def test_on_the_command_line(scored_once: Path) -> None:
    folder = open_folder(str(scored_once))
    manifest = read_manifest(folder)
    assert not check_drift(job().verdict, manifest, stats_of(folder, member_values_of(manifest))).drifted
    done = here("drift", scored_once, "--fail-on-drift")
    assert done.returncode == 0 and "dt=2026-11-07 against 5 partition(s) before, from dt=2026-11-02" in done.stdout


def test_drift_sets_the_exit_code(scored_once: Path, tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text("verdict: {drift: {ks: 0.0001}}\n")
    done = here("drift", scored_once, "--config", tmp_path / "job.yaml", "--fail-on-drift")
    assert done.returncode == 3 and "drifted" in done.stdout
    assert here("drift", scored_once, "--config", tmp_path / "job.yaml").returncode == 0
