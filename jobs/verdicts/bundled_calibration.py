"""The bundled calibrations: they map the default members' scores to verdicts and probabilities.

Without labels, the mean and deviation of a run do not show how good its responses are, least of all in a run of few rows, and a
quantile flags the same share of good and bad runs. `python -m tests.benchmarks.defaults` makes the file
from labeled sets of many origins;
docs/background/method.md shows its quality.
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

_IRRELEVANT_SETTINGS = ("dtype", "engine", "name", "revision", "quantization", "max_model_len", "whole_response")
"""Settings of an SLM that its values do not depend on, or only within rounding."""


@lru_cache(maxsize=1)
def load_bundled_calibration() -> Calibration:
    """Load the calibration of the default members."""
    return Calibration.from_json(FILE.read_text(encoding="utf-8"))


@lru_cache(maxsize=1)
def load_bundled_detectors_calibration() -> Calibration:
    """Load the calibration of the three detectors alone.

    It was measured with word frequencies of each row's own context. Those of a whole log change the moments little.
    `python -m tests.benchmarks.detectors_only` makes the file.
    """
    return Calibration.from_json(DETECTORS_FILE.read_text(encoding="utf-8"))


def list_bundled_calibrations() -> tuple[Calibration, Calibration]:
    """List the bundled calibrations: of the default members, and of their detectors alone."""
    return load_bundled_calibration(), load_bundled_detectors_calibration()


def is_fitted_for(calibration: Calibration, members: MembersConfig, fingerprint: dict[str, Any]) -> bool:
    """Return whether a bundled calibration was fitted for exactly these members: same models, prompts, values and weights.

    Args:
        calibration: The calibration.
        members: The members of a job.
        fingerprint: Fingerprint of the job's scores.
    """
    ensemble = members.ensemble_value_kinds
    if {name: member.value for name, member in calibration.members.items()} != ensemble:
        return False
    weights = members.ensemble_weights or dict.fromkeys(ensemble, 1 / len(ensemble))
    has_same_weights = all(isclose(member.weight, weights[name], rel_tol=1e-6) for name, member in calibration.members.items())
    return has_same_weights and select_value_settings(calibration.fingerprint, ensemble) == select_value_settings(
        fingerprint, ensemble
    )


def has_same_members(calibration: Calibration, values: Mapping[str, str], fingerprint: Mapping[str, Any]) -> bool:
    """Return whether members are those of a bundled calibration. Their weights and the splitter may differ.

    Args:
        calibration: The calibration.
        values: Member of the ensemble -> kind of its value that is used.
        fingerprint: Fingerprint of the scores.
    """
    if {name: member.value for name, member in calibration.members.items()} != dict(values):
        return False
    if not {"slms", "detectors", "splitter", "method"} <= fingerprint.keys():
        return False
    fitted, current = select_value_settings(calibration.fingerprint, values), select_value_settings(fingerprint, values)
    return all(fitted[part] == current[part] for part in ("slms", "detectors"))


def select_value_settings(fingerprint: Mapping[str, Any], ensemble: Container[str]) -> dict[str, Any]:
    """Select the settings that the values of an ensemble's members depend on.

    Args:
        fingerprint: Fingerprint of the scores.
        ensemble: Names of the members of the ensemble.
    """
    slms = {
        name: {key: value for key, value in slm.items() if key not in _IRRELEVANT_SETTINGS}
        for name, slm in fingerprint["slms"].items()
    }
    splitter = {key: fingerprint["splitter"][key] for key in ("name", "language")}
    detectors = {name: detector for name, detector in fingerprint["detectors"].items() if name in ensemble}
    return {"method": fingerprint["method"], "splitter": splitter, "slms": slms, "detectors": detectors}
