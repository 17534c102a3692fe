"""The loss of labelled prompts: cross-entropy of yes against no, margins between minimal pairs, and a small term that keeps
the label mass high."""

from collections.abc import Sequence
from typing import Any, NamedTuple

MASS_WEIGHT = 0.05
PAIR_WEIGHT = 0.5
MARGIN = 2.0

Prompt = tuple[int, ...]


class Unit(NamedTuple):
    """One label: of a sentence, or of the lowest of a response's sentences.

    Attributes:
        prompts: Token ids of each sentence that the label is about. A label "unsupported" of several says that at least
            one of them is (multiple-instance learning); which one is not known.
        supported: The label.
        weight: How much it counts, above 0.
        smoothing: Chance that the label is wrong, 0 to below 0.5.
    """

    prompts: tuple[Prompt, ...]
    supported: bool
    weight: float = 1.0
    smoothing: float = 0.0


class Pair(NamedTuple):
    """Prompts of two statements that differ in little, one supported and one not."""

    supported: Prompt
    unsupported: Prompt


def unit_loss(
    logprobs: Any, units: Sequence[Unit], weights: tuple[float, float], pairs: Sequence[tuple[int, int]] = ()
) -> tuple[Any, Any]:
    """Loss of the units of one tree.

    With l_j = log P(yes) - log P(no) of sentence j, l = min_j l_j over a unit, and s = l if it is supported, else -l:
    w (-(1 - e) log sigma(s) - e log sigma(-s)), w the unit's weight times that of its class, e its smoothing;
    -PAIR_WEIGHT w log sigma(l_a - l_b - MARGIN) for a pair, a supported and b not, w the mean of their units' weights;
    and -MASS_WEIGHT log(P(yes) + P(no)) for every prompt.

    Args:
        logprobs: Tensor (prompts, 2): log P(yes) and log P(no), the units' prompts one after the other.
        units: The labels.
        weights: Of supported and of unsupported units.
        pairs: Places of pairs among the units: the supported one, the other.

    Returns:
        The sum of the losses, and the tensor (units) of l.
    """
    import torch

    odds = (logprobs[:, 0] - logprobs[:, 1]).split([len(unit.prompts) for unit in units])
    lowest = torch.stack([values.min() for values in odds])
    device = lowest.device
    supported = torch.tensor([unit.supported for unit in units], device=device)
    signed = torch.where(supported, lowest, -lowest)
    own = torch.tensor([unit.weight for unit in units], device=device)
    smoothing = torch.tensor([unit.smoothing for unit in units], device=device)
    weight = own * torch.where(supported, weights[0], weights[1])
    softplus = torch.nn.functional.softplus
    loss = (weight * ((1 - smoothing) * softplus(-signed) + smoothing * softplus(signed))).sum()
    if pairs:
        a, b = torch.tensor(pairs, device=device).T
        loss = loss + PAIR_WEIGHT * ((own[a] + own[b]) / 2 * softplus(lowest[b] - lowest[a] + MARGIN)).sum()
    mass = torch.logaddexp(logprobs[:, 0], logprobs[:, 1])
    return loss - MASS_WEIGHT * mass.sum(), lowest.detach()


def places_of(pairs: Sequence[Pair], units: Sequence[Unit]) -> list[tuple[int, int]]:
    """Where pairs stand among units; those of which one is not there are left out."""
    place = {unit.prompts[0]: i for i, unit in enumerate(units) if len(unit.prompts) == 1}
    return [(place[a], place[b]) for a, b in pairs if a in place and b in place]
