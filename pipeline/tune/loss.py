"""The loss of labelled prompts: cross-entropy of yes against no, and a small term that keeps the label mass high."""

from collections.abc import Sequence
from typing import Any, NamedTuple

MASS_WEIGHT = 0.05


class Unit(NamedTuple):
    """One label: of a sentence, or of the lowest of a response's sentences.

    Attributes:
        prompts: Token ids of each sentence that the label is about. A label "unsupported" of several says that at least
            one of them is (multiple-instance learning); which one is not known.
        supported: The label.
    """

    prompts: tuple[tuple[int, ...], ...]
    supported: bool


def unit_loss(logprobs: Any, units: Sequence[Unit], weights: tuple[float, float]) -> tuple[Any, Any]:
    """Loss of the units of one tree.

    With l_j = log P(yes) - log P(no) of sentence j and l = min_j l_j over a unit:
    -w_y log sigma(l) if supported, else -w_n log sigma(-l), and MASS_WEIGHT times -log(P(yes) + P(no)).

    Args:
        logprobs: Tensor (prompts, 2): log P(yes) and log P(no), the units' prompts one after the other.
        units: The labels.
        weights: w_y and w_n.

    Returns:
        The sum of the losses, and the tensor (units) of l.
    """
    import torch

    odds = (logprobs[:, 0] - logprobs[:, 1]).split([len(unit.prompts) for unit in units])
    lowest = torch.stack([values.min() for values in odds])
    supported = torch.tensor([unit.supported for unit in units], device=lowest.device)
    signed = torch.where(supported, lowest, -lowest)
    weight = torch.where(supported, weights[0], weights[1])
    mass = torch.logaddexp(logprobs[:, 0], logprobs[:, 1])
    return (weight * torch.nn.functional.softplus(-signed)).sum() - MASS_WEIGHT * mass.sum(), lowest.detach()
