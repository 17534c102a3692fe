"""A job without a model."""

from typing import Any

from ragassay.jobs.config.job import make_job
from tests.job_settings import merged

DETECTORS = [{"name": kind, "kind": kind} for kind in ("entities", "attribution", "novelty")]
AGGREGATE = {"positive": "cdf"}


def without_slm(**settings: Any) -> Any:
    base = {
        "members": {"slms": [], "detectors": DETECTORS},
        "verdict": {"aggregate": AGGREGATE},
        "splitting": {"languages": "any"},
    }
    return make_job(merged(base, settings))
