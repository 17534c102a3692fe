"""By what a row is judged that stands alone: an output's last verdicts, a calibration, or what comes with the package."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ragassay.jobs.api import errors
from ragassay.jobs.config.job import Job
from ragassay.jobs.config.verdict import BUNDLED
from ragassay.jobs.output.calibration_file import check_calibration_scores, read_calibration
from ragassay.jobs.output.fingerprint import find_differences, make_fingerprint, setting_of, shorten
from ragassay.jobs.output.manifest import open_output
from ragassay.jobs.output.snapshot import read_readable_manifest
from ragassay.jobs.scoring.frequencies import read_frequencies
from ragassay.jobs.storage.folder import Folder
from ragassay.jobs.verdicts.bundled_calibration import (
    is_fitted_for,
    load_bundled_calibration,
    load_bundled_detectors_calibration,
    select_value_settings,
)
from ragassay.jobs.verdicts.languages import choose_languages
from ragassay.jobs.verdicts.parts import name_calibration
from ragassay.jobs.verdicts.settings import resolve_standalone_settings, restore_settings
from ragassay.pipeline.detectors.frequencies import DocumentFrequencies
from ragassay.pipeline.errors import ConfigError, OutputError
from ragassay.pipeline.stages.finalize import VerdictSettings
from ragassay.schemas.calibration import Calibration
from ragassay.schemas.manifest import Manifest, Run
from ragassay.schemas.origins import Origins

RUN_ID = "check"


@dataclass(frozen=True)
class Judging:
    """How single rows are judged.

    Attributes:
        settings: From values to verdicts.
        source: Where that comes from, in words.
        frequencies: Document frequencies of an output; None has each row judged by those of its own context.
    """

    settings: VerdictSettings
    source: str
    frequencies: DocumentFrequencies | None = None


def judging(job: Job, like: str | None, calibration: str | None) -> Judging:
    """How rows are judged one by one.

    Args:
        job: The job; its members are those of `like` and of the calibration.
        like: An output folder: its last moments and threshold, and its word frequencies.
        calibration: A file of `calibrate`, whose moments and threshold come first, or bundled, or none; None takes the job's.

    Raises:
        RagassayError: One can't be read or is of other members, or a job leaves its threshold to a whole run.
    """
    known = make_fingerprint(job)
    job = job.with_calibration(calibration)
    folder = open_output(like) if like else None
    manifest = read_readable_manifest(folder) if folder else None
    if folder and manifest and like:
        _refuse_others(like, manifest.fingerprint, known, job.members.values)
    if job.verdict.calibration_file is not None:
        found = _by_file(job, job.verdict.calibration_file, known)
    elif folder and manifest:
        found = _by_output(job, folder, manifest)
    else:
        found = _by_itself(job, known)
    if folder is None:
        return found
    frequencies = read_frequencies(folder)
    missing = (
        "; it has no word frequencies: those of each answer's own context"
        if job.members.detectors and frequencies is None
        else ""
    )
    return replace(found, frequencies=frequencies, source=found.source + missing)


def last_run(manifest: Manifest, uri: str) -> Run:
    """The run that last gave verdicts.

    Raises:
        OutputError: There is none, or no row of it had a score.
    """
    run = next((run for run in reversed(manifest.runs) if run.fit and run.fit.members), None)
    if run is None or run.threshold is None or run.threshold.value is None:
        raise OutputError(errors.NO_VERDICTS, output=uri)
    return run


def _by_file(job: Job, uri: str, known: dict[str, Any]) -> Judging:
    calibration = read_calibration(uri)
    members = calibration.members
    check_calibration_scores(uri, calibration, _differences(calibration.fingerprint, known, members), job.members.values)
    return _by_parts(job, calibration, f"{name_calibration(calibration)}, made for {calibration.target}", known)


def _by_output(job: Job, output: Folder, manifest: Manifest) -> Judging:
    run = last_run(manifest, output.uri)
    assert run.fit and run.threshold
    used = _calibration_of(output, run.origins)
    curve = used.probability if used and run.origins and run.origins.probability is not None else None
    settings = restore_settings(run, RUN_ID, curve)
    if settings.values != job.members.values:
        raise ConfigError(
            errors.OTHER_MEMBERS, output=output.uri, members=_members(settings.values), wanted=_members(job.members.values)
        )
    settings = replace(settings, languages=choose_languages(job, manifest.fingerprint, used))
    return Judging(settings, f"the last verdicts of {output.uri} (fit: {run.fit.source}; threshold: {run.threshold.source})")


def _by_itself(job: Job, known: dict[str, Any]) -> Judging:
    for calibration in (
        (load_bundled_calibration(), load_bundled_detectors_calibration()) if job.verdict.calibration == BUNDLED else ()
    ):
        if is_fitted_for(calibration, job.members, known):
            rows, sets = sum(calibration.rows.values()), ", ".join(calibration.rows)
            source = f"bundled statistics, measured on {rows:,} labelled answers of public sets ({sets}), not on yours"
            return _by_parts(job, calibration, source, known)
    return _by_parts(job, None, "", known)


def _by_parts(job: Job, calibration: Calibration | None, source: str, known: dict[str, Any]) -> Judging:
    """By a calibration, the job's own parts, or both; `source` names the calibration."""
    settings, origins = resolve_standalone_settings(job, calibration, RUN_ID)
    if job.verdict.normalize.source == "frozen":
        source = f"the job's frozen statistics ({job.verdict.normalize.file})"
    if origins.threshold != origins.moments:
        source += f"; threshold: {origins.threshold}"
    if job.verdict.threshold.measured_on:
        source += f", measured on {job.verdict.threshold.measured_on}"
    return Judging(replace(settings, languages=choose_languages(job, known, calibration)), source)


def _calibration_of(output: Folder, origins: Origins | None) -> Calibration | None:
    """The calibration that an output's verdicts were made with, where it can be read."""
    if origins is None or origins.calibration is None:
        return None
    if origins.calibration == load_bundled_calibration().calibration_id:
        return load_bundled_calibration()
    text = output.read("calibration.json")
    try:
        found = Calibration.from_json(text) if text else None
    except ValueError:
        return None
    return found if found and found.calibration_id == origins.calibration else None


def _refuse_others(uri: str, then: dict[str, Any], now: dict[str, Any], values: Mapping[str, str]) -> None:
    found = _differences(then, now, values)
    if found:
        lines = [f"  {setting_of(part)}: {shorten(was)} there, {shorten(is_)} here" for part, was, is_ in found]
        raise ConfigError(errors.OTHER_SCORES, output=uri, lines="\n".join(lines))


def _differences(then: dict[str, Any], now: dict[str, Any], names: Mapping[str, Any]) -> list[tuple[str, Any, Any]]:
    """In what two fingerprints differ that the members' values depend on; not in names of columns, nor in the machine."""

    def part(known: dict[str, Any]) -> dict[str, Any]:
        reading = {name: model for name, model in known.get("uncertainty", {}).items() if name in names}
        return {**select_value_settings(known, names), "uncertainty": reading, "rerank": known.get("rerank")}

    return find_differences(part(then), part(now))


def _members(values: Mapping[str, str]) -> str:
    return ", ".join(f"{name} ({value})" for name, value in values.items())
