"""Which job an answer, or a table, is judged by."""

from typing import Any

from ragassay.jobs.api import errors
from ragassay.jobs.config.job import Job, load_job, make_job
from ragassay.jobs.config.members import default_members
from ragassay.jobs.output.manifest import open_output
from ragassay.jobs.output.snapshot import read_readable_manifest
from ragassay.pipeline.errors import ConfigError
from ragassay.schemas.manifest import Manifest


def job_of(job: dict[str, Any] | str | None, like: str | None = None, *, fast: bool = False) -> Job:
    """The job that is meant.

    Args:
        job: As its file has it, or the path of one; None takes that of `like`, if it has detectors alone, or the default.
        like: An output folder.
        fast: The three detectors of the default alone.

    Raises:
        RagassayError: It is wrong, or both are given.
    """
    if fast and job is not None:
        raise ConfigError(errors.FAST_AND_JOB)
    if isinstance(job, dict):
        return make_job(job)
    if fast:
        return detectors_alone()
    if job is None and like is not None:
        manifest = read_readable_manifest(open_output(like))
        known = manifest.fingerprint
        if known and not (known["slms"] or known.get("uncertainty")):
            return _of_detectors(manifest)
    return load_job(job)


def detectors_alone() -> Job:
    """The default job without its SLM: no engine is needed."""
    return make_job({"members": {"slms": [], "detectors": default_members()["detectors"]}})


def _of_detectors(manifest: Manifest) -> Job:
    """The job of an output that needs no model; what a detector's values depend on says all of it."""
    known = manifest.fingerprint
    weights = (manifest.last_fit.weights if manifest.last_fit else None) or {}
    detectors = [
        {"name": name, **identity, "in_ensemble": weights.get(name) != 0, "ner": _pipeline(identity.get("ner"))}
        for name, identity in known["detectors"].items()
    ]
    splitting = {"pipeline": known["splitter"]["name"], "language": known["splitter"]["language"]}
    return make_job({"members": {"slms": [], "detectors": detectors}, "splitting": splitting})


def _pipeline(ner: str | None) -> str | None:
    return None if ner == "rules" else ner
