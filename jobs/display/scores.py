"""Format scores and thresholds so that they can be compared."""

from ragassay.schemas.manifest import FitRecord, ThresholdRecord

MAX_DIGITS = 17


def format_both(score: float, threshold: float, digits: int = 2) -> tuple[str, str]:
    """Format a score and its threshold with as many digits after the point as it takes to show which of them is lower.

    Args:
        score: The score.
        threshold: The threshold.
        digits: Minimum number of digits.
    """
    while score != threshold and digits < MAX_DIGITS and f"{score:.{digits}f}" == f"{threshold:.{digits}f}":
        digits += 1
    return f"{score:.{digits}f}", f"{threshold:.{digits}f}"


def describe_threshold(value: float, probability: float | None) -> str:
    """Describe the threshold of responses.

    Args:
        value: tau.
        probability: P(supported) of a response with that score; None without one.
    """
    return f"{value:.6g}" + ("" if probability is None else f", which is P(supported) {probability:.3f}")


def describe_sentence_limits(threshold: ThresholdRecord, fit: FitRecord | None) -> str:
    """Describe the limits below which a sentence is flagged or doubtful; empty without a threshold."""
    if threshold.value is None or fit is None:
        return ""
    if threshold.flagged_probability is None or threshold.doubtful_probability is None:
        name, flagged, doubtful = "score", None if fit.sentence is None else fit.sentence * threshold.value, threshold.value
    else:
        name, flagged, doubtful = "P(supported)", threshold.flagged_probability, threshold.doubtful_probability
    flagged_text = "" if fit.sentence is None else f"flagged at {name} <= {flagged:.3g}, which decides the response; "
    return f"{flagged_text}doubtful at {name} <= {doubtful:.3g}"
