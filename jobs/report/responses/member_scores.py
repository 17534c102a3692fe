"""List each member's value of a sentence and its z-score."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ragassay.jobs.display.lowest_member import describe_lowest_member, read_value
from ragassay.jobs.evaluation.compare_members import read_member_limits
from ragassay.schemas.columns import ENSEMBLE
from ragassay.schemas.manifest import FitRecord, Manifest, MemberFit


@dataclass(frozen=True)
class MemberScore:
    """A member's score of a sentence.

    Attributes:
        name: The member.
        value: Its value, higher = better supported; null if it has no evidence.
        z_score: (value - mu) / sigma, by the fit that decided the row; null without a value or a fit.
        is_low: Whether the value is below the member's limit, or below its mu if the member has no limit.
        note: Why it has no value; empty if unknown.
    """

    name: str
    value: float | None
    z_score: float | None = None
    is_low: bool = False
    note: str = ""


@dataclass(frozen=True)
class MemberScales:
    """Scales of the members' values.

    Attributes:
        fits: Run -> its fit.
        latest_fit: The latest fit, for rows of unknown runs; null without one.
        limits: Member -> value below which it alone flags.
        language: ISO 639-1 code of the responses.
    """

    fits: Mapping[str, FitRecord] = field(default_factory=dict)
    latest_fit: FitRecord | None = None
    limits: Mapping[str, float] = field(default_factory=dict)
    language: str = "en"


def read_member_scales(manifest: Manifest, limits: Mapping[str, float] | None = None) -> MemberScales:
    """Read the scales of an output folder.

    Args:
        manifest: Its manifest.
        limits: Member -> limit, instead of the manifest's.
    """
    return MemberScales(
        fits={run.run_id: run.fit for run in manifest.runs if run.fit and run.fit.members},
        latest_fit=manifest.last_fit,
        limits=read_member_limits(manifest) | dict(limits or {}),
        language=manifest.fingerprint.get("splitter", {}).get("language", "en"),
    )


def list_member_scores(row: Mapping[str, Any], sentence: int, scales: MemberScales) -> tuple[MemberScore, ...]:
    """List each member's score of a sentence.

    Args:
        row: A row of `scored/`, with `members`, `evidence` and its `run_id`.
        sentence: Number of the sentence, from 0.
        scales: Scales of the members' values.
    """
    fit = _find_fit(row, scales)
    fits = fit.members if fit else {}
    notes = [note.partition(": ") for note in row["evidence"][sentence]["notes"] or []] if row["evidence"] else []
    notes_by_member = {name: text for name, _, text in notes}
    return tuple(
        _make_member_score(member, sentence, fits.get(member["name"]), scales.limits, notes_by_member)
        for member in row.get("members") or []
    )


def find_cause(row: Mapping[str, Any], sentence: int, scales: MemberScales) -> str | None:
    """Describe the member that lowers a sentence's score most; None if no member does, or if a judge decided the row."""
    fit = _find_fit(row, scales)
    if fit is None or row["decided_by"] != ENSEMBLE:
        return None
    return describe_lowest_member(row["members"] or [], sentence, fit.members, fit.weights)


def _find_fit(row: Mapping[str, Any], scales: MemberScales) -> FitRecord | None:
    return scales.fits.get(row.get("run_id") or "", scales.latest_fit)


def _make_member_score(
    member: Mapping[str, Any], sentence: int, fit: MemberFit | None, limits: Mapping[str, float], notes: Mapping[str, str]
) -> MemberScore:
    name = member["name"]
    value = read_value(member, sentence, fit)
    if value is None:
        return MemberScore(name, None, note=notes.get(name, ""))
    limit = limits.get(name, fit.mu if fit else None)
    return MemberScore(name, value, (value - fit.mu) / fit.sigma if fit else None, limit is not None and value < limit)
