"""By how much one score is better than another on the same rows: in pairs, which tells more than two intervals that overlap."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ragassay.pipeline.arrays import Bools, Floats, Ints
from ragassay.pipeline.calibration.metrics import auroc, aurocs, interval, of_both, resample_parts


@dataclass(frozen=True)
class Difference:
    """AUROC of a score less that of the first, on the rows that have both.

    Attributes:
        name: The score.
        rows: Rows that have both.
        value: The difference, -1 to 1; above 0 the score is better than the first.
        low: Lower end of its bootstrap 95 % interval, of resamples that both share; null where none could be drawn.
        high: Upper end.
    """

    name: str
    rows: int
    value: float
    low: float | None
    high: float | None

    @property
    def beyond_noise(self) -> bool | None:
        """Whether the interval leaves 0 out; None where there is no interval."""
        return None if self.low is None or self.high is None else self.low > 0 or self.high < 0


def differences(scores: Mapping[str, Floats], first: str, good: Bools, groups: Ints, resamples: int) -> list[Difference]:
    """Compare scores with one of them.

    Args:
        scores: Name -> a score a row, NaN where there is none.
        first: The one that the others are compared with.
        good: Whether each row is of the positive class.
        groups: Number of each row's item, from 0; whole items are resampled.
        resamples: Bootstrap resamples; 0 leaves intervals out.

    Returns:
        One a score, in their order, the first left out, and those whose rows are of one class.
    """
    theirs = {name: ~np.isnan(score) & ~np.isnan(scores[first]) for name, score in scores.items() if name != first}
    theirs = {name: there for name, there in theirs.items() if good[there].any() and not good[there].all()}
    spread: dict[str, list[Floats]] = {name: [] for name in theirs}
    for weights in resample_parts(groups, resamples):
        of_first: dict[bytes, Floats] = {}  # most scores are there for the same rows
        for name, there in theirs.items():
            mine = of_both(weights[:, there], good[there])
            key = there.tobytes()
            if key not in of_first:
                of_first[key] = aurocs(scores[first][there], good[there], mine)
            spread[name].append(aurocs(scores[name][there], good[there], mine) - of_first[key])
    found = []
    for name, there in theirs.items():
        mine, right = scores[name][there], good[there]
        value = auroc(mine, right) - auroc(scores[first][there], right)
        low, high = interval(np.concatenate(spread[name])) if resamples else (None, None)
        found.append(Difference(name, int(there.sum()), value, low, high))
    return found
