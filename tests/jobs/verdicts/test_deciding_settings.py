"""A run states that it decides by other settings than the verdicts before it, and the report states which partitions differ."""

from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from ragassay.jobs.config.job import Job, make_job
from ragassay.jobs.output.manifest import open_output, read_manifest
from ragassay.jobs.report.first_screen.headline import list_notes
from ragassay.jobs.run import finalize_job, run_job
from ragassay.jobs.verdicts.deciding_settings import describe_mixture
from ragassay.schemas.manifest import Manifest
from tests.conftest import example_rows, write_logs
from tests.jobs.verdicts.test_resolve_parts import NOVELTY
from tests.without_ray import without_ray


def decide_by(**verdict: Any) -> Job:
    return make_job({**NOVELTY, "verdict": verdict})


class Output:
    """An output of logs that get a partition per run."""

    def __init__(self, folder: Path) -> None:
        self.logs, self.folder, self.days = folder / "logs", folder / "out", 0

    def run(self, job: Job) -> str:
        self.days += 1
        write_logs(self.logs / f"dt={self.days}" / "a.parquet", example_rows(10, start=self.days * 10))
        console = Console(record=True, width=1000)
        with without_ray():
            run_job(job, str(self.logs), str(self.folder), console)
        return next((line for line in console.export_text().split("\n") if line.startswith("warning: this run decides")), "")

    def finalize(self, job: Job) -> None:
        with without_ray():
            finalize_job(job, str(self.folder), Console(quiet=True))

    @property
    def manifest(self) -> Manifest:
        return read_manifest(open_output(str(self.folder)))


@pytest.fixture
def output(tmp_path: Path) -> Output:
    return Output(tmp_path)


def test_a_run_that_mixes_settings_after_finalize_warns_before_it_scores(output: Output) -> None:
    assert output.run(decide_by()) == "" == output.run(decide_by())
    output.finalize(decide_by(threshold={"value": 0.5}))
    assert describe_mixture(output.manifest) == []
    warning = output.run(decide_by())
    assert "threshold was 0.5, is quantile 0.2" in warning and "keep them (dt=1, dt=2)" in warning and "finalize" in warning
    (note,) = describe_mixture(output.manifest)
    assert note in list_notes(output.manifest, output.manifest.runs[-1], compares_runs=False)
    assert note.startswith("dt=3 and dt=1, dt=2 were decided by different settings") and "threshold was 0.5" in note
    output.finalize(decide_by())
    assert describe_mixture(output.manifest) == []


def test_settings_that_changed_on_purpose_are_stated_once_per_run_and_stay_in_the_report(output: Output) -> None:
    output.run(decide_by())
    assert "mean was harmonic, is geometric" in output.run(decide_by(aggregate={"mean": "geometric"}))
    assert output.run(decide_by(aggregate={"mean": "geometric"})) == ""
    (note,) = describe_mixture(output.manifest)
    assert note.startswith("dt=2, dt=3 and dt=1 were decided")


def test_moments_and_quantiles_of_each_run_are_the_same_settings(output: Output) -> None:
    history = {"threshold": {"quantile": 0.3, "of": "history"}, "normalize": {"source": "history"}}
    assert output.run(decide_by(**history)) == "" == output.run(decide_by(**history))
    assert describe_mixture(output.manifest) == []
    assert "is quantile 0.2" in output.run(decide_by(normalize={"source": "history"}))


def test_a_run_that_decides_all_rows_again_mixes_nothing(tmp_path: Path) -> None:
    for number, job in enumerate([decide_by(), decide_by(threshold={"value": 0.5})]):
        write_logs(tmp_path / "logs" / f"{number}.parquet", example_rows(10, start=number * 10))
        console = Console(record=True, width=1000)
        with without_ray():
            run_job(job, str(tmp_path / "logs"), str(tmp_path / "out"), console)
        assert "warning" not in console.export_text()
