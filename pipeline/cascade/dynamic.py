"""Compute the dynamic threshold (Adaptive Invocation, section 3.3 and Algorithm 1) exactly.

    theta_i = (S_1 + … + S_{i-1}) / (i - 1)        row i > 5 is escalated if and only if S_i >= theta_i

Floating-point sums depend on their order. float32 scores are integer multiples of 2^-172, so integer sums are exact and
independent of the order and of partitions.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ragassay.pipeline.arrays import Bools, Ints

WARM_UP_ROWS = 5
"""Number of first rows that are never escalated; their mean is the first threshold."""

Scores = npt.NDArray[np.float32]

_MANTISSA_BITS = 24  # of a float32
_UNIT_EXPONENT = 172  # 2^-172 is the smallest float32, 2^-149, shifted by the other 23 bits of the mantissa
_CHUNK_ROWS = 1 << 16


@dataclass(frozen=True)
class ScoreTotal:
    """The exact sum of the scores of some rows.

    Attributes:
        count: Number of rows.
        total: Sum of the scores, in units of 2^-172.
    """

    count: int = 0
    total: int = 0

    def __add__(self, other: "ScoreTotal") -> "ScoreTotal":
        """Add the counts and sums."""
        return ScoreTotal(self.count + other.count, self.total + other.total)


def sum_scores(scores: Scores) -> ScoreTotal:
    """Sum scores.

    Args:
        scores: Finite score of each row, in any order; higher = more doubtful.
    """
    mantissas, shifts = _to_integers(scores)
    total = 0
    for shift in np.unique(shifts).tolist():
        total += int(mantissas[shifts == shift].sum()) << shift
    return ScoreTotal(len(scores), total)


def select_escalated(scores: Scores, before: ScoreTotal = ScoreTotal()) -> Bools:
    """Return whether each row is escalated: its score is at least the mean of all rows before it.

    Args:
        scores: Finite score of each row, in the order of the rows; higher = more doubtful.
        before: Scores of all earlier rows.
    """
    is_escalated = np.zeros(len(scores), dtype=bool)
    count, total = before.count, before.total
    mantissas, shifts = _to_integers(scores)
    for start in range(0, len(scores), _CHUNK_ROWS):
        chunk = slice(start, start + _CHUNK_ROWS)
        for i, (mantissa, shift) in enumerate(zip(mantissas[chunk].tolist(), shifts[chunk].tolist(), strict=True), start):
            score = mantissa << shift
            is_escalated[i] = count >= WARM_UP_ROWS and score * count >= total
            count, total = count + 1, total + score
    return is_escalated


def _to_integers(scores: Scores) -> tuple[Ints, Ints]:
    """Convert scores to integers in units of 2^-172, each as a mantissa and a left shift."""
    parts, exponents = np.frexp(np.asarray(scores, dtype=np.float32).astype(np.float64))
    mantissas = np.ldexp(parts, _MANTISSA_BITS).astype(np.int64)
    return mantissas, exponents.astype(np.int64) - _MANTISSA_BITS + _UNIT_EXPONENT
