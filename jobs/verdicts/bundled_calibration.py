"""The calibration that comes with the package: what the default members' scores mean, by labelled sets of many origins.

Without labels a run can't tell where it stands: its own mean and deviation say nothing of how good it is, least of all those of
a few rows, and a fifth of it would be flagged whether it is good or bad. `python -m tests.benchmarks.defaults` makes the file;
docs/background/method.md tells what it is worth.
"""

from collections.abc import Container, Mapping
from functools import lru_cache
from math import isclose
from pathlib import Path
from typing import Any

from ragassay.jobs.config.members import MembersConfig
from ragassay.schemas.calibration import Calibration

FILE = Path(__file__).parent / "bundled_calibration.json"
DETECTORS_FILE = Path(__file__).parent / "bundled_detectors.json"

_NOT_THE_SCORE = ("dtype", "engine", "name", "revision", "quantization", "max_model_len", "whole_response")


@lru_cache(maxsize=1)
def bundled_calibration() -> Calibration:
    """The calibration."""
    return Calibration.from_json(FILE.read_text(encoding="utf-8"))


@lru_cache(maxsize=1)
def bundled_detectors() -> Calibration:
    """That of the three detectors alone, for rows that are judged one by one: each by the word frequencies of its own context
    (`python -m tests.benchmarks.alone` makes the file). A run has a quantile of its own instead."""
    return Calibration.from_json(DETECTORS_FILE.read_text(encoding="utf-8"))


def is_fitted_for(calibration: Calibration, members: MembersConfig, fingerprint: dict[str, Any]) -> bool:
    """Return whether a bundled calibration was fitted for exactly these members: same models, prompts, values and weights.

    Args:
        calibration: The calibration.
        members: The members of a job.
        fingerprint: Of the job's scores.
    """
    ensemble = members.ensemble_values
    if {name: member.value for name, member in calibration.members.items()} != ensemble:
        return False
    weights = members.ensemble_weights or dict.fromkeys(ensemble, 1 / len(ensemble))
    same = all(isclose(member.weight, weights[name], rel_tol=1e-6) for name, member in calibration.members.items())
    return same and values_depend_on(calibration.fingerprint, ensemble) == values_depend_on(fingerprint, ensemble)


def is_of_members(calibration: Calibration, values: Mapping[str, str], fingerprint: Mapping[str, Any]) -> bool:
    """Return whether members are those of a bundled calibration, whatever their weights and however responses are split.

    Args:
        calibration: The calibration.
        values: Member of the ensemble -> which of its numbers is used.
        fingerprint: Of the scores.
    """
    if {name: member.value for name, member in calibration.members.items()} != dict(values):
        return False
    if not {"slms", "detectors", "splitter", "method"} <= fingerprint.keys():
        return False
    then, now = values_depend_on(calibration.fingerprint, values), values_depend_on(fingerprint, values)
    return all(then[part] == now[part] for part in ("slms", "detectors"))


def values_depend_on(fingerprint: Mapping[str, Any], ensemble: Container[str]) -> dict[str, Any]:
    """What the values of an ensemble's members depend on, but for how and where they are computed.

    Args:
        fingerprint: Of the scores.
        ensemble: Names of its members.
    """
    slms = {
        name: {key: value for key, value in slm.items() if key not in _NOT_THE_SCORE}
        for name, slm in fingerprint["slms"].items()
    }
    splitter = {key: fingerprint["splitter"][key] for key in ("name", "language")}
    detectors = {name: detector for name, detector in fingerprint["detectors"].items() if name in ensemble}
    return {"method": fingerprint["method"], "splitter": splitter, "slms": slms, "detectors": detectors}
