"""Measure the agreement of two reviewers beyond chance."""

from collections.abc import Sequence
from dataclasses import dataclass

from ragassay.pipeline.calibration.certify import clopper_pearson_lower_bound

DELTA = 0.025
"""Each end of the interval is wrong with at most this probability."""


@dataclass(frozen=True)
class PairAgreement:
    """Agreement of two reviewers' yes and no labels for the same items.

    Attributes:
        count: Number of items.
        agreed: Number of items with equal labels.
        low: Lower end of the 95 % Clopper-Pearson interval of the share of equal labels, 0 to 1.
        high: Upper end.
        kappa: Cohen's kappa, -1 to 1; None if both reviewers use only one and the same label, so that chance agrees as well.
    """

    count: int
    agreed: int
    low: float
    high: float
    kappa: float | None

    @property
    def share(self) -> float:
        """Share of items with equal labels, 0 to 1."""
        return self.agreed / self.count


def measure_agreement(labels: Sequence[tuple[bool, bool]]) -> PairAgreement | None:
    """Compute Cohen's kappa (1960) and the raw agreement.

        kappa = (p_o - p_e) / (1 - p_e),    p_e = p_1 q_1 + (1 - p_1) (1 - q_1)

    where p_o is the share of items with equal labels, and p_1 and q_1 are the shares of yes of the two reviewers.

    Args:
        labels: The two labels of each item.

    Returns:
        The agreement; None without items.
    """
    if not labels:
        return None
    count, agreed = len(labels), sum(first == second for first, second in labels)
    first_yes, second_yes = (sum(pair[i] for pair in labels) for i in (0, 1))
    chance = first_yes * second_yes + (count - first_yes) * (count - second_yes)  # multiplied by count^2
    kappa = (agreed * count - chance) / (count**2 - chance) if chance < count**2 else None
    low = clopper_pearson_lower_bound(agreed, count, DELTA)
    high = 1 - clopper_pearson_lower_bound(count - agreed, count, DELTA)
    return PairAgreement(count, agreed, low, high, kappa)
