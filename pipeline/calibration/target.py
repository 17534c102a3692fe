"""What a threshold shall reach, and the threshold that reaches it."""

import re
from dataclasses import dataclass

import numpy as np

from ragassay.pipeline.arrays import Bools, Floats
from ragassay.pipeline.calibration import errors
from ragassay.pipeline.calibration.metrics import threshold_above, threshold_below
from ragassay.pipeline.errors import ConfigError
from ragassay.schemas.columns import SUPPORTED

FORMS = "precision>=0.95, recall>=0.9, f1, flagged=0.1 (no labels needed) or mean (of the history's scores; no labels needed)"


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
        """As it was written."""
        sign = {"precision": ">=", "recall": ">=", "flagged": "="}.get(self.metric)
        return self.metric + (f"{sign}{self.level:g}" if sign else "")


def parse_target(text: str, of: str = SUPPORTED) -> Target:
    """Read a target such as `precision>=0.95`.

    Raises:
        ConfigError: It is none.
    """
    found = re.fullmatch(r"(precision|recall)\s*>=\s*([0-9.]+)|(flagged)\s*=\s*([0-9.]+)|(f1|mean)", text.strip().lower())
    if found is None:
        raise ConfigError(errors.UNKNOWN_TARGET, target=text, forms=FORMS)
    metric = found[1] or found[3] or found[5]
    number = found[2] or found[4]
    try:
        level = float(number or 0)
    except ValueError as error:
        raise ConfigError(errors.TARGET_NO_NUMBER, target=text, number=number) from error
    if number is not None and not 0 < level < 1:
        raise ConfigError(errors.TARGET_OUT_OF_RANGE, target=text)
    return Target(metric, level, of)


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
