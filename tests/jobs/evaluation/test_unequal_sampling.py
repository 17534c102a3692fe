"""Labels with unequal inclusion probabilities: commands that do not weight by them print a note, and certify nothing."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.jobs.conftest import invoke, read_rows, resamples

NOTE = "The labels have unequal inclusion probabilities"
Probabilities = list[float | None]


def write(scored: Path, path: Path, probabilities: Probabilities) -> Path:
    """Write labels of all scored rows, with these probabilities in turn."""
    rows = [row for row in read_rows(scored) if row["status"] == "ok"]
    lines: list[dict[str, Any]] = []
    for number, row in enumerate(rows):
        label = "supported" if row["label"] == "correct" else "unsupported"
        probability = probabilities[number % len(probabilities)]
        sampling = {} if probability is None else {"inclusion_probability": probability}
        lines.append({"row_id": row["row_id"], "partition": f"dt={row['dt']}", "label": label, **sampling})
    lines.append({"row_id": "of another output", "label": "supported", "inclusion_probability": 0.01})
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return path


@pytest.mark.parametrize(
    ("probabilities", "is_unequal"), [([None], False), ([0.5], False), ([0.5, 0.1], True), ([0.5, None], True)]
)
def test_unequal_sampling_is_noted_and_not_certified(
    scored: Path, tmp_path: Path, probabilities: Probabilities, is_unequal: bool
) -> None:
    labels = write(scored, tmp_path / "r.jsonl", probabilities)
    calibrate = ("calibrate", scored, "--labels", labels, "--target", "supported-precision>=0.5", "--threshold-only", "--force")
    for command in (
        ("evaluate", scored, "--labels", labels, *resamples(tmp_path, 0)),
        ("evaluate", scored, "--labels", labels, *resamples(tmp_path, 0), "--all"),
        ("report", scored, "--labels", labels, *resamples(tmp_path, 0)),
        calibrate,
    ):
        done = invoke(*command)
        assert done.returncode == 0, done.stderr
        assert " ".join(done.stdout.split()).count(NOTE) == int(is_unequal), command
    for record in ("evaluation.json", "calibration.json"):
        assert ("unequal inclusion probabilities" in json.loads((scored / record).read_text())["label"]) == is_unequal
    assert (NOTE in (scored / "report.html").read_text()) == is_unequal
    certified = invoke(*calibrate, "--certify", "0.2")
    assert ("error[calibrate.drawn-unevenly]" in certified.stderr) == is_unequal
    assert certified.returncode == int(is_unequal), certified.stderr
