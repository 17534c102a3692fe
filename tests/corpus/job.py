"""A job without a model."""

from typing import Any

from ragassay.jobs.config.job import make_job

DETECTORS = [{"name": kind, "kind": kind} for kind in ("entities", "attribution", "novelty")]
AGGREGATE = {"positive": "cdf"}


def without_slm(**settings: Any) -> Any:
    return make_job({"slms": [], "detectors": DETECTORS, "aggregate": AGGREGATE, "languages": "any", **settings})
