"""What a threshold shall reach, and the threshold that reaches it."""

import re
from dataclasses import dataclass

import numpy as np

from ragassay.pipeline.arrays import Bools, Floats
from ragassay.pipeline.calibration import errors
from ragassay.pipeline.calibration.metrics import threshold_above, threshold_below
from ragassay.pipeline.errors import ConfigError
from ragassay.schemas.columns import HALLUCINATED, SUPPORTED

FORMS = (
    "supported-precision>=0.95, supported-recall>=0.9, supported-f1, flag-precision>=0.8, flag-recall>=0.9, flag-f1, "
    "flagged=0.1 (needs no labels) or mean (of the history's scores; needs no labels)"
)
CLASSES = {"supported": SUPPORTED, "flag": HALLUCINATED}
"""Name of a class in a target -> the class."""

_TARGET = re.compile(
    r"(?:(?P<kind>supported|flag)-)?(?:(?P<rate>precision|recall)\s*>=\s*(?P<minimum>[0-9.]+)|(?P<f1>f1))"
    r"|(?P<share>flagged)\s*=\s*(?P<exact>[0-9.]+)|(?P<mean>mean)"
)


@dataclass(frozen=True)
class Target:
    """What is asked for.

    Attributes:
        metric: precision, recall, f1, flagged or mean.
        level: The number beside it; 0 where it has none.
        of: Class that precision, recall and F1 are of: supported or hallucinated.
    """

    metric: str
    level: float
    of: str

    @property
    def needs_labels(self) -> bool:
        """Whether a threshold can't be found without labels."""
        return self.metric in {"precision", "recall", "f1"}

    @property
    def text(self) -> str:
        """The target as users write it."""
        prefix = {kind: f"{name}-" for name, kind in CLASSES.items()}[self.of] if self.needs_labels else ""
        sign = {"precision": ">=", "recall": ">=", "flagged": "="}.get(self.metric)
        return prefix + self.metric + (f"{sign}{self.level:g}" if sign else "")


def parse_target(text: str) -> Target:
    """Parse a target such as `supported-precision>=0.95`.

    Raises:
        ConfigError: The text is not a target, or does not name the class that its metric is about.
    """
    match = _TARGET.fullmatch(text.strip().lower())
    if match is None:
        raise ConfigError(errors.UNKNOWN_TARGET, target=text, forms=FORMS)
    parts = match.groupdict()
    metric, number = parts["rate"] or parts["f1"] or parts["share"] or parts["mean"], parts["minimum"] or parts["exact"]
    if (parts["rate"] or parts["f1"]) and not parts["kind"]:
        rest = text.strip()
        raise ConfigError(errors.TARGET_WITHOUT_CLASS, target=text, supported=f"supported-{rest}", flag=f"flag-{rest}")
    try:
        level = float(number or 0)
    except ValueError as error:
        raise ConfigError(errors.TARGET_NO_NUMBER, target=text, number=number) from error
    if number is not None and not 0 < level < 1:
        raise ConfigError(errors.TARGET_OUT_OF_RANGE, target=text)
    return Target(metric, level, CLASSES[parts["kind"] or "supported"])


def find_threshold(target: Target, scores: Floats, good: Bools) -> float | None:
    """The threshold that reaches a target on labelled rows, with the best other side.

    precision: of all thresholds with that precision the one with the most recall. recall: of all with that recall the one
    with the most precision. f1: the one with the best F1.

    Args:
        target: A target that needs labels.
        scores: A score a response, higher = better supported.
        good: Whether it is correct; both classes are there.

    Returns:
        tau; None where no threshold reaches the target.
    """
    from sklearn.metrics import precision_recall_curve

    supported = target.of == SUPPORTED
    precision, recall, cuts = precision_recall_curve(good if supported else ~good, scores if supported else -scores)
    precision, recall = precision[:-1], recall[:-1]
    match target.metric:
        case "precision":
            rank = np.where(precision >= target.level, recall, -1.0)
        case "recall":
            rank = np.where(recall >= target.level, precision, -1.0)
        case _:
            rank = 2 * precision * recall / np.maximum(precision + recall, 1e-300)
    best = int(rank.argmax())
    if rank[best] < 0:
        return None
    return threshold_below(scores, cuts[best]) if supported else threshold_above(scores, -cuts[best])


def best_precision(target: Target, scores: Floats, good: Bools) -> float:
    """The best precision that any threshold gives the target's class, to say how far away a target is."""
    from sklearn.metrics import precision_recall_curve

    supported = target.of == SUPPORTED
    precision, *_ = precision_recall_curve(good if supported else ~good, scores if supported else -scores)
    return float(precision[:-1].max())


def reached(of: str, scores: Floats, good: Bools, threshold: Floats | float) -> dict[str, float | None]:
    """What a threshold gives on labelled rows.

    Args:
        of: Class that precision, recall and F1 are of: supported or hallucinated.
        scores: A score a response.
        good: Whether it is correct.
        threshold: tau, or one a response.

    Returns:
        precision, recall, f1 (null where nothing is selected, or nothing is of the class), and the share flagged.
    """
    passed = scores > threshold
    chosen, right = (passed, good) if of == SUPPORTED else (~passed, ~good)
    hits, selected, there = float((chosen & right).sum()), float(chosen.sum()), float(right.sum())
    return {
        "precision": hits / selected if selected else None,
        "recall": hits / there if there else None,
        "f1": 2 * hits / (selected + there) if selected + there else None,
        "flagged": float(1 - passed.mean()),
    }
