"""`estimate` of an output of which a share of the rows was scored: all rows are what it speaks of."""

import json
from pathlib import Path

import pytest

from ragassay.jobs.evaluation.estimate import estimate
from ragassay.jobs.evaluation.labels import LabelSource
from ragassay.jobs.storage.folder import open_folder
from tests.jobs.conftest import here, manifest


def test_scored_rows_stand_for_those_that_were_sampled_out(scored: Path) -> None:
    folder, source = open_folder(str(scored)), LabelSource("label")
    whole = estimate(folder, source).overall
    assert whole.population is None and whole.powered and whole.powered.high - whole.powered.low < 1e-3
    state = manifest(scored)
    rows = [file["rows"] for file in state["files"]]
    for number, file in enumerate(state["files"]):
        file["share"] = 0.5 if number % 2 else 0.25
        file["sampled_out"] = file["rows"]
    (scored / "manifest.json").write_text(json.dumps(state))
    found = estimate(folder, source, ["tenant"])
    mine = found.overall
    assert mine.population == pytest.approx(sum((whole.rows / len(rows)) * (2 if n % 2 else 4) for n in range(len(rows))))
    assert mine.powered and mine.powered.value == pytest.approx(2 / 3, abs=0.01)
    assert 0.05 < mine.powered.high - mine.powered.low < 0.2 and mine.more_labels == 0
    assert sum(part.population or 0 for part in found.slices["tenant"]) == pytest.approx(mine.population)
    done = here("estimate", scored, "--label", "label")
    assert "a random sample" in done.stdout and "score a larger share" in done.stdout, done.stdout
    report = here("report", scored)
    assert report.returncode == 0 and "A sample: of 6 files" in (scored / "report.html").read_text()
