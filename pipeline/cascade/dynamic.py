"""The dynamic threshold (Adaptive Invocation, section 3.3 and Algorithm 1), as a prefix scan that is exact to the bit.

    theta_i = (S_1 + … + S_{i-1}) / (i - 1)        row i > 5 is escalated iff S_i >= theta_i

Floating-point sums depend on their order. Scores are float32, so each is a whole number of 2^-172, and whole numbers add up to
the same in whatever parts they are added: a `Segment` of rows is their count and that sum, and segments add associatively.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ragassay.pipeline.arrays import Bools, Ints

WARM_UP_ROWS = 5
"""Rows at the beginning of the order that are never escalated; they make the first threshold."""

Scores = npt.NDArray[np.float32]

_MANTISSA = 24  # bits of a float32's
_UNIT = 172  # scores are counted in 2^-172: the smallest float32, 2^-149, with its mantissa filled up
_CHUNK = 1 << 16


@dataclass(frozen=True)
class ScoreTotal:
    """What the rows behind or before others come down to.

    Attributes:
        count: How many.
        total: Sum of their scores, in units of 2^-172.
    """

    count: int = 0
    total: int = 0

    def __add__(self, other: "ScoreTotal") -> "ScoreTotal":
        """Both together."""
        return ScoreTotal(self.count + other.count, self.total + other.total)


def sum_scores(scores: Scores) -> ScoreTotal:
    """The segment that rows make.

    Args:
        scores: A finite score a row, higher = more doubtful; in any order.
    """
    mantissas, shifts = _whole(scores)
    total = 0
    for shift in np.unique(shifts).tolist():
        total += int(mantissas[shifts == shift].sum()) << shift
    return ScoreTotal(len(scores), total)


def select_escalated(scores: Scores, before: ScoreTotal = ScoreTotal()) -> Bools:
    """Which rows are escalated: each is compared with the mean of those before it, and counts for those behind it.

    Args:
        scores: A finite score a row, higher = more doubtful, in the order of the rows.
        before: The rows before them.
    """
    found = np.zeros(len(scores), dtype=bool)
    count, total = before.count, before.total
    mantissas, shifts = _whole(scores)
    for start in range(0, len(scores), _CHUNK):
        part = slice(start, start + _CHUNK)
        for i, (mantissa, shift) in enumerate(zip(mantissas[part].tolist(), shifts[part].tolist(), strict=True), start):
            score = mantissa << shift
            found[i] = count >= WARM_UP_ROWS and score * count >= total
            count, total = count + 1, total + score
    return found


def scan(parts: Sequence[Scores], before: ScoreTotal = ScoreTotal()) -> list[Bools]:
    """`escalated` of consecutive parts of an order, each of which needs of those before it the segment alone."""
    found = []
    for part in parts:
        found.append(select_escalated(part, before))
        before = before + sum_scores(part)
    return found


def _whole(scores: Scores) -> tuple[Ints, Ints]:
    """Scores as whole numbers: mantissa << shift, in units of 2^-172."""
    parts, exponents = np.frexp(np.asarray(scores, dtype=np.float32).astype(np.float64))
    mantissas = np.ldexp(parts, _MANTISSA).astype(np.int64)
    # A 0 has no exponent of its own.
    return mantissas, np.where(mantissas == 0, 0, exponents.astype(np.int64) - _MANTISSA + _UNIT)
