"""List each member's value of a sentence and its z-score."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ragassay.jobs.evaluation.compare_members import read_member_limits
from ragassay.pipeline.member_values import ValueKind, compute_values_from_logprobs
from ragassay.schemas.manifest import Manifest, MemberFit


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
        fits: Run -> member -> its mu and sigma.
        latest_fits: Member -> mu and sigma of the latest fit, for rows of unknown runs.
        limits: Member -> value below which it alone flags.
        language: ISO 639-1 code of the responses.
    """

    fits: Mapping[str, Mapping[str, MemberFit]] = field(default_factory=dict)
    latest_fits: Mapping[str, MemberFit] = field(default_factory=dict)
    limits: Mapping[str, float] = field(default_factory=dict)
    language: str = "en"


def read_member_scales(manifest: Manifest, limits: Mapping[str, float] | None = None) -> MemberScales:
    """Read the scales of an output folder.

    Args:
        manifest: Its manifest.
        limits: Member -> limit, instead of the manifest's.
    """
    fit = manifest.last_fit
    return MemberScales(
        fits={run.run_id: run.fit.members for run in manifest.runs if run.fit and run.fit.members},
        latest_fits=fit.members if fit else {},
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
    fits = scales.fits.get(row.get("run_id") or "", scales.latest_fits)
    notes = [note.partition(": ") for note in row["evidence"][sentence]["notes"] or []] if row["evidence"] else []
    notes_by_member = {name: text for name, _, text in notes}
    return tuple(
        _make_member_score(member, sentence, fits.get(member["name"]), scales.limits, notes_by_member)
        for member in row.get("members") or []
    )


def _make_member_score(
    member: Mapping[str, Any], sentence: int, fit: MemberFit | None, limits: Mapping[str, float], notes: Mapping[str, str]
) -> MemberScore:
    name = member["name"]
    value = _read_value(member, sentence, fit)
    if value is None:
        return MemberScore(name, None, note=notes.get(name, ""))
    limit = limits.get(name, fit.mu if fit else None)
    return MemberScore(name, value, (value - fit.mu) / fit.sigma if fit else None, limit is not None and value < limit)


def _read_value(member: Mapping[str, Any], sentence: int, fit: MemberFit | None) -> float | None:
    """Return the value that the verdict used: an SLM's is computed from its logprobs, because its stored scores are those
    of the scoring run.
    """
    if fit and ValueKind(fit.value).is_from_logprobs and member["log_p_yes"]:
        return float(
            compute_values_from_logprobs(ValueKind(fit.value), member["log_p_yes"][sentence], member["log_p_no"][sentence])
        )
    scores = member["sentence_scores"]
    return scores[sentence] if scores else None
