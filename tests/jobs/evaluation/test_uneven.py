"""Labels that were drawn with different probabilities: said by whoever does not weigh by them, and nothing is certified."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.jobs.conftest import here, read_rows, resamples

SAID = "The labels were drawn unevenly"
Probabilities = list[float | None]


def write(scored: Path, path: Path, probabilities: Probabilities) -> Path:
    """Labels of all scored rows, each with the next of these probabilities."""
    rows = [row for row in read_rows(scored) if row["status"] == "ok"]
    lines: list[dict[str, Any]] = []
    for number, row in enumerate(rows):
        label = "supported" if row["label"] == "correct" else "unsupported"
        chance = probabilities[number % len(probabilities)]
        drawn = {} if chance is None else {"inclusion_probability": chance}
        lines.append({"row_id": row["row_id"], "partition": f"dt={row['dt']}", "label": label, **drawn})
    lines.append({"row_id": "of another output", "label": "supported", "inclusion_probability": 0.01})
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return path


@pytest.mark.parametrize(
    ("probabilities", "uneven"), [([None], False), ([0.5], False), ([0.5, 0.1], True), ([0.5, None], True)]
)
def test_uneven_labels_are_said_to_be_uneven(scored: Path, tmp_path: Path, probabilities: Probabilities, uneven: bool) -> None:
    labels = write(scored, tmp_path / "r.jsonl", probabilities)
    calibrate = ("calibrate", scored, "--labels", labels, "--target", "supported-precision>=0.5", "--threshold-only")
    for command in (
        ("evaluate", scored, "--labels", labels, *resamples(tmp_path, 0)),
        ("evaluate", scored, "--labels", labels, *resamples(tmp_path, 0), "--all"),
        ("report", scored, "--labels", labels, *resamples(tmp_path, 0)),
        calibrate,
    ):
        done = here(*command)
        assert done.returncode == 0, done.stderr
        assert " ".join(done.stdout.split()).count(SAID) == int(uneven), command
    for record in ("evaluation.json", "calibration.json"):
        assert ("drawn unevenly" in json.loads((scored / record).read_text())["label"]) == uneven
    assert (SAID in (scored / "report.html").read_text()) == uneven
    certified = here(*calibrate, "--certify", "0.2")
    assert ("error[calibrate.drawn-unevenly]" in certified.stderr) == uneven
    assert certified.returncode == int(uneven), certified.stderr
