"""Which languages a job's rows are judged in: those that the job file names, or those that its members were measured in."""

from collections.abc import Mapping
from typing import Any

from ragassay.jobs.config.job import Job
from ragassay.jobs.config.splitting import ANY, SplittingConfig
from ragassay.jobs.verdicts import errors
from ragassay.jobs.verdicts.bundled_calibration import bundled_calibration, bundled_detectors, is_of_members
from ragassay.jobs.verdicts.parts import calibration_of
from ragassay.pipeline.errors import OutputError
from ragassay.schemas.calibration import Calibration
from ragassay.schemas.columns import Status
from ragassay.schemas.manifest import Manifest
from ragassay.schemas.stats import PartitionStats

Languages = tuple[str, ...] | None
"""ISO 639-1 codes; None is every language."""


def languages_of(job: Job, fingerprint: Mapping[str, Any], calibration: Calibration | None) -> Languages:
    """The languages in which rows are judged.

    The job file decides, then what the output folder was scored with, then a calibration's file, then whether the members are
    those of the package, which were measured in the languages of the bundled calibration.

    Args:
        job: The job.
        fingerprint: Of the scores.
        calibration: The calibration that judges; None without one.
    """
    languages = job.splitting.languages if job.splitting.languages is not None else fingerprint.get("languages")
    if languages is not None:
        return None if languages == ANY else tuple(languages)
    if calibration is not None:
        return calibration.languages
    return languages_of_members(job.members.ensemble_values, fingerprint)


def languages_of_members(values: Mapping[str, str], fingerprint: Mapping[str, Any]) -> Languages:
    """The languages that members were measured in by this project; None where they are not members of the package.

    Args:
        values: Member of the ensemble -> which of its numbers is used.
        fingerprint: Of the scores.
    """
    known = (bundled_calibration(), bundled_detectors())
    return next((found.languages for found in known if is_of_members(found, values, fingerprint)), None)


def settle_languages(job: Job, fingerprint: dict[str, Any]) -> Job:
    """The job with its languages written down, for the stages that score.

    Args:
        job: The job.
        fingerprint: Of its scores.

    Raises:
        ConfigError: Its calibration can't be read, or belongs to other scores.
    """
    return with_languages(job, languages_of(job, fingerprint, calibration_of(job, fingerprint)))


def with_languages(job: Job, languages: Languages) -> Job:
    """A job that judges rows in these languages."""
    splitting = job.splitting.model_copy(update={"languages": ANY if languages is None else languages})
    return job.model_copy(update={"splitting": splitting})


def refuse_more_languages(splitting: SplittingConfig, manifest: Manifest, stats: Mapping[str, PartitionStats]) -> None:
    """Refuse verdicts in languages whose rows were not scored.

    Args:
        splitting: The job's languages.
        manifest: Of the output folder.
        stats: Statistics of its partitions.

    Raises:
        OutputError: The job file names more languages than its rows were scored with, and rows were left out.
    """
    left_out = sum(part.rows.get(Status.LANGUAGE_NOT_MEASURED.value, 0) for part in stats.values())
    then, now = manifest.fingerprint.get("languages"), splitting.languages
    if not left_out or now is None or (then is not None and now != ANY and set(now) <= set(then)):
        return
    before = "those of the members" if then is None else ", ".join(then)
    raise OutputError(errors.MORE_LANGUAGES, languages=now if now == ANY else ", ".join(now), rows=left_out, before=before)
