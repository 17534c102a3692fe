"""How far two people agree beyond chance."""

from collections.abc import Sequence
from dataclasses import dataclass

from ragassay.pipeline.calibration.certify import lower_bound

DELTA = 0.025
"""Each end of the interval fails with at most this probability."""


@dataclass(frozen=True)
class Agreement:
    """Two people's yes and no of the same things.

    Attributes:
        count: Things.
        same: Those of which they say the same.
        low: Lower end of the 95 % Clopper-Pearson interval of the share of these, 0 to 1.
        high: Upper end.
        kappa: Cohen's kappa, -1 to 1; null where both say nothing but one and the same word, and chance would agree as well.
    """

    count: int
    same: int
    low: float
    high: float
    kappa: float | None

    @property
    def share(self) -> float:
        """Raw agreement, 0 to 1."""
        return self.same / self.count


def agreement_of(said: Sequence[tuple[bool, bool]]) -> Agreement | None:
    """Cohen's kappa (1960), and raw agreement.

        kappa = (p_o - p_e) / (1 - p_e),    p_e = p_1 q_1 + (1 - p_1) (1 - q_1)

    where p_o is the share on which they agree, and p_1 and q_1 how often each says yes.

    Args:
        said: What the two say of each thing.

    Returns:
        None of nothing.
    """
    if not said:
        return None
    count, same = len(said), sum(a == b for a, b in said)
    first, second = (sum(pair[i] for pair in said) for i in (0, 1))
    chance = first * second + (count - first) * (count - second)  # of count^2
    kappa = (same * count - chance) / (count**2 - chance) if chance < count**2 else None
    return Agreement(count, same, lower_bound(same, count, DELTA), 1 - lower_bound(count - same, count, DELTA), kappa)
