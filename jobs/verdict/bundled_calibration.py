"""The calibration that comes with the package: what the default members' scores mean, by labelled sets of many origins.

Without labels a run can't tell where it stands: its own mean and deviation say nothing of how good it is, least of all those of
a few rows, and a fifth of it would be flagged whether it is good or bad. `python -m tests.benchmarks.defaults` makes the file;
docs/method.md tells what it is worth.
"""

from collections.abc import Container
from functools import lru_cache
from math import isclose
from pathlib import Path
from typing import Any

from ragassay.jobs.config import Job
from ragassay.schemas.calibration import Calibration

FILE = Path(__file__).parent / "bundled_calibration.json"

_NOT_THE_SCORE = ("dtype", "engine", "name", "revision", "quantization", "max_model_len", "whole_response")


@lru_cache(maxsize=1)
def bundled_calibration() -> Calibration:
    """The calibration."""
    return Calibration.from_json(FILE.read_text(encoding="utf-8"))


def speaks_of(job: Job, fingerprint: dict[str, Any]) -> bool:
    """Whether the bundled calibration is about a job's members, and the job says nothing of its own about its verdicts.

    Args:
        job: The job.
        fingerprint: Of its scores.
    """
    if {"normalize", "aggregate", "threshold", "calibration"} & job.model_fields_set:
        return False
    calibration = bundled_calibration()
    ensemble = {name: value for name, value in job.values.items() if name not in job.beside}
    if {name: member.value for name, member in calibration.members.items()} != ensemble:
        return False
    weights = job.ensemble_weights or dict.fromkeys(ensemble, 1 / len(ensemble))
    same = all(isclose(member.weight, weights[name], rel_tol=1e-6) for name, member in calibration.members.items())
    return same and _members(calibration.fingerprint, ensemble) == _members(fingerprint, ensemble)


def _members(fingerprint: dict[str, Any], ensemble: Container[str]) -> dict[str, Any]:
    """What the values of the ensemble's members depend on, but for how and where they are computed."""
    slms = {
        name: {key: value for key, value in slm.items() if key not in _NOT_THE_SCORE}
        for name, slm in fingerprint["slms"].items()
    }
    splitter = {key: fingerprint["splitter"][key] for key in ("name", "language")}
    detectors = {name: detector for name, detector in fingerprint["detectors"].items() if name in ensemble}
    return {"method": fingerprint["method"], "splitter": splitter, "slms": slms, "detectors": detectors}
