"""What each member says of a sentence, on the scale that the verdicts were made on."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ragassay.jobs.evaluation.compare import limits_of
from ragassay.pipeline.members import ValueKind, convert_logprobs
from ragassay.schemas.manifest import Manifest, MemberFit


@dataclass(frozen=True)
class MemberScore:
    """What a member says of a sentence.

    Attributes:
        name: The member.
        value: Its value, higher = better supported; null where it has nothing to go by.
        z: (value - mu) / sigma, by the fit that judged the row; null without a value or a fit.
        low: Whether the value lies below the one under which the member alone is suspicious; of a member without such a limit,
            below its mu.
        note: Why it has no value; empty where nobody says.
    """

    name: str
    value: float | None
    z: float | None = None
    low: bool = False
    note: str = ""


@dataclass(frozen=True)
class Scales:
    """By what values are read.

    Attributes:
        fits: Run -> member -> its mu and sigma.
        last: Those of the last run that fitted, for rows of a run that is not known.
        limits: Member -> value below which it alone is suspicious.
        language: ISO 639-1 code of the responses.
    """

    fits: Mapping[str, Mapping[str, MemberFit]] = field(default_factory=dict)
    last: Mapping[str, MemberFit] = field(default_factory=dict)
    limits: Mapping[str, float] = field(default_factory=dict)
    language: str = "en"


def scales_of(manifest: Manifest, below: Mapping[str, float] | None = None) -> Scales:
    """The scales of an output folder.

    Args:
        manifest: Its manifest.
        below: Member -> limit, in place of the manifest's.
    """
    last = manifest.last_fit
    return Scales(
        fits={run.run_id: run.fit.members for run in manifest.runs if run.fit and run.fit.members},
        last=last.members if last else {},
        limits=limits_of(manifest) | dict(below or {}),
        language=manifest.fingerprint.get("splitter", {}).get("language", "en"),
    )


def member_scores(row: Mapping[str, Any], sentence: int, scales: Scales) -> tuple[MemberScore, ...]:
    """What each member says of a sentence.

    Args:
        row: A row of `scored/`, with `members`, `evidence` and its `run_id`.
        sentence: Number of the sentence, from 0.
        scales: By which it is read.
    """
    fits = scales.fits.get(row.get("run_id") or "", scales.last)
    notes = [note.partition(": ") for note in row["evidence"][sentence]["notes"] or []] if row["evidence"] else []
    why = {name: text for name, _, text in notes}
    return tuple(
        _member_score(member, sentence, fits.get(member["name"]), scales.limits, why) for member in row.get("members") or []
    )


def _member_score(
    member: Mapping[str, Any], sentence: int, fit: MemberFit | None, limits: Mapping[str, float], why: Mapping[str, str]
) -> MemberScore:
    name = member["name"]
    value = _value(member, sentence, fit)
    if value is None:
        return MemberScore(name, None, note=why.get(name, ""))
    below = limits.get(name, fit.mu if fit else None)
    return MemberScore(name, value, (value - fit.mu) / fit.sigma if fit else None, below is not None and value < below)


def _value(member: Mapping[str, Any], sentence: int, fit: MemberFit | None) -> float | None:
    """The number that the verdict went by: an SLM's scores stand there as the run that scored it had them."""
    if fit and ValueKind(fit.value).is_from_logprobs and member["log_p_yes"]:
        return float(convert_logprobs(ValueKind(fit.value), member["log_p_yes"][sentence], member["log_p_no"][sentence]))
    scores = member["sentence_scores"]
    return scores[sentence] if scores else None
