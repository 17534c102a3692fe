"""Name the member that lowers the score of a sentence most: the main reason why the sentence is flagged or doubtful."""

from collections.abc import Mapping, Sequence
from math import exp
from typing import Any

from ragassay.pipeline.member_values import ValueKind, compute_values_from_logprobs
from ragassay.schemas.manifest import MemberFit


def describe_lowest_member(
    members: Sequence[Mapping[str, Any]], sentence: int, fits: Mapping[str, MemberFit], weights: Mapping[str, float] | None
) -> str | None:
    """Describe the member with the lowest weighted z-score, such as `facts: P(yes) 0.08` or `novelty: 0.20, on average 0.81`.

    Args:
        members: Column `members` of a row.
        sentence: Number of the sentence, from 0.
        fits: Member -> mu and sigma by which the row was decided.
        weights: Member -> weight; None for equal weights.

    Returns:
        The description; None if no member is below its mean.
    """
    lowest, description = 0.0, None
    for member in members:
        name = member["name"]
        fit = fits.get(name)
        value = None if fit is None else read_value(member, sentence, fit)
        if fit is None or value is None:
            continue
        share = (value - fit.mu) / fit.sigma * (1.0 if weights is None else weights.get(name, 0.0))
        if share < lowest:
            text = f"P(yes) {exp(member['log_p_yes'][sentence]):.2f}" if member["log_p_yes"] else None
            lowest, description = share, f"{name}: {text or f'{value:.2f}, on average {fit.mu:.2f}'}"
    return description


def read_value(member: Mapping[str, Any], sentence: int, fit: MemberFit | None) -> float | None:
    """Return the value that the verdict used: an SLM's is computed from its logprobs, because its stored scores are those
    of the scoring run.
    """
    if fit and ValueKind(fit.value).is_from_logprobs and member["log_p_yes"]:
        return float(
            compute_values_from_logprobs(ValueKind(fit.value), member["log_p_yes"][sentence], member["log_p_no"][sentence])
        )
    scores = member["sentence_scores"]
    return scores[sentence] if scores else None
