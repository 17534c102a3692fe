"""Certify a threshold whose precision holds with probability 1 - delta.

Learn then Test (Angelopoulos, Bates, Candès, Jordan and Lei 2021, arXiv 2110.01052) with split fixed-sequence testing. Each
candidate threshold lambda has the null hypothesis "precision at lambda < p". One half of the labeled rows ranks the candidates.
The other half tests them in that order, each at level delta, and stops at the first candidate that is not rejected. The order
does not depend on the half that tests, so the probability that any true null hypothesis is rejected is at most delta. Among the
n rows that a threshold selects, the number of correct rows is Binomial(n, precision). Therefore a null hypothesis is rejected
if the lower bound of Clopper and Pearson (1934, Biometrika 26) at level delta is at least p.
"""

import math

import numpy as np

from ragassay.pipeline.arrays import Bools, Floats
from ragassay.schemas.calibration import Certificate

MAX_CANDIDATES = 50


def clopper_pearson_lower_bound(correct: int, selected: int, delta: float) -> float:
    """Return the one-sided Clopper-Pearson bound L: the precision is at least L with probability 1 - delta; 0 for no rows.

    L = BetaInv(delta; k, n - k + 1)
    """
    from scipy.stats import beta

    return float(beta.ppf(delta, correct, selected - correct + 1)) if correct else 0.0


def min_rows_to_certify(precision: float, delta: float) -> int:
    """Return the smallest number n of selected rows, all correct, that certifies a precision p: p^n <= delta."""
    return math.ceil(math.log(delta) / math.log(precision))


def certify_threshold(
    ranking: tuple[Floats, Bools], testing: tuple[Floats, Bools], precision: float, delta: float
) -> tuple[float | None, Certificate]:
    """Find the certified threshold that selects the most rows.

    The rows of both halves must be exchangeable with the rows that the threshold is later used on, and independent of each
    other: one response per item.

    Args:
        ranking: Scores of one half, and whether each row is of the target's class. A row is selected if its score is >= lambda.
        testing: The same for the other half.
        precision: p.
        delta: Probability that the certificate is wrong.

    Returns:
        lambda and its certificate; or None and the counts of the most promising candidate, which failed.
    """
    from scipy.stats import binom

    scores, is_correct = ranking
    candidates = np.unique(np.quantile(scores, np.linspace(0, 1, MAX_CANDIDATES + 1), method="lower"))
    selections = [scores >= candidate for candidate in candidates]
    # P(at least this many correct rows | precision = p): small is promising.
    p_values = [float(binom.sf(int(is_correct[rows].sum()) - 1, int(rows.sum()), precision)) for rows in selections]
    best: tuple[float, Certificate] | None = None
    failed: Certificate | None = None
    for i in sorted(range(len(candidates)), key=lambda i: (p_values[i], -int(selections[i].sum()))):
        is_selected = testing[0] >= candidates[i]
        selected, correct = int(is_selected.sum()), int(testing[1][is_selected].sum())
        bound = clopper_pearson_lower_bound(correct, selected, delta)
        certificate = Certificate(precision, delta, selected, correct, bound)
        if not certificate.bound >= precision:
            failed = certificate
            break
        if best is None or candidates[i] < best[0]:
            best = (float(candidates[i]), certificate)
    if best is not None:
        return best
    assert failed is not None
    return None, failed
