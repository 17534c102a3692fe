"""A threshold whose precision holds with probability 1 - delta.

Learn then Test (Angelopoulos, Bates, Candès, Jordan and Lei 2021, arXiv 2110.01052) with split fixed-sequence testing: every
candidate threshold lambda stands for the null hypothesis "precision at lambda < p". One half of the labelled rows ranks the
candidates; the other half tests them in that order, each at level delta, and stops at the first that is not rejected. The
sequence does not depend on the half that tests, so the chance that any true null is rejected is at most delta. Among n rows
that a threshold selects, the correct ones are Binomial(n, precision), and so the null is rejected where the lower bound of
Clopper and Pearson (1934, Biometrika 26) at level delta is at least p.
"""

import math

import numpy as np

from ragassay.pipeline.arrays import Bools, Floats
from ragassay.schemas.calibration import Certificate

CANDIDATES = 50


def lower_bound(correct: int, selected: int, delta: float) -> float:
    """One-sided Clopper-Pearson bound: the precision is at least this with probability 1 - delta; 0 of nothing.

    L = BetaInv(delta; k, n - k + 1)
    """
    from scipy.stats import beta

    return float(beta.ppf(delta, correct, selected - correct + 1)) if correct else 0.0


def rows_needed(precision: float, delta: float) -> int:
    """The fewest selected rows, all of them right, that certify a precision: p^n <= delta."""
    return math.ceil(math.log(delta) / math.log(precision))


def certify(
    ranking: tuple[Floats, Bools], testing: tuple[Floats, Bools], precision: float, delta: float
) -> tuple[float | None, Certificate]:
    """Find the threshold that selects the most rows among those whose precision is certified.

    The rows of both halves must be exchangeable with those that the threshold is later used on, and independent of each
    other: one response an item.

    Args:
        ranking: Scores of one half, and whether each is of the wanted class; a row is selected if its score is >= lambda.
        testing: The same of the other half.
        precision: p.
        delta: Probability that the certificate may be wrong.

    Returns:
        lambda and its certificate; or None, and the counts of the most promising candidate, which failed.
    """
    from scipy.stats import binom

    scores, right = ranking
    candidates = np.unique(np.quantile(scores, np.linspace(0, 1, CANDIDATES + 1), method="lower"))
    chosen = [scores >= cut for cut in candidates]
    # P(at least this many right | precision = p): small is promising.
    p_values = [float(binom.sf(int(right[c].sum()) - 1, int(c.sum()), precision)) for c in chosen]
    best: tuple[float, Certificate] | None = None
    failed: Certificate | None = None
    for i in sorted(range(len(candidates)), key=lambda i: (p_values[i], -int(chosen[i].sum()))):
        mine = testing[0] >= candidates[i]
        selected, correct = int(mine.sum()), int(testing[1][mine].sum())
        tested = Certificate(precision, delta, selected, correct, lower_bound(correct, selected, delta))
        if not tested.bound >= precision:
            failed = tested
            break
        if best is None or candidates[i] < best[0]:
            best = (float(candidates[i]), tested)
    if best is not None:
        return best
    assert failed is not None
    return None, failed
