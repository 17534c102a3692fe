"""Compute the loss of labeled prompts: cross-entropy, margins of minimal pairs, and a term for high label mass."""

from collections.abc import Sequence
from typing import Any, NamedTuple

MASS_WEIGHT = 0.05
PAIR_WEIGHT = 0.5
MARGIN = 2.0

PromptIds = tuple[int, ...]


class LabeledExample(NamedTuple):
    """A label of a sentence, or of a response with several sentences.

    Attributes:
        prompts: Token ids of the prompt of each sentence. "Unsupported" for several sentences means that at least one of them
            is unsupported, without stating which (multiple-instance learning).
        supported: The label.
        weight: Weight in the loss, above 0.
        smoothing: Probability that the label is wrong, 0 to below 0.5.
    """

    prompts: tuple[PromptIds, ...]
    supported: bool
    weight: float = 1.0
    smoothing: float = 0.0


class StatementPair(NamedTuple):
    """Prompts of two statements with a small difference, one supported and one not."""

    supported: PromptIds
    unsupported: PromptIds


def compute_loss(
    logprobs: Any, examples: Sequence[LabeledExample], weights: tuple[float, float], pairs: Sequence[tuple[int, int]] = ()
) -> tuple[Any, Any]:
    """Compute the loss of the examples of one tree.

    With l_j = log P(yes) - log P(no) of sentence j, l = min_j l_j over the sentences of an example, s = l for a supported
    example and s = -l for an unsupported one, the loss is the sum of

        w (-(1 - e) log sigma(s) - e log sigma(-s))      per example
        -PAIR_WEIGHT v log sigma(l_a - l_b - MARGIN)     per pair of a supported example a and an unsupported example b
        -MASS_WEIGHT log(P(yes) + P(no))                 per prompt

    where w is the weight of the example times the weight of its class, e its smoothing, and v the mean weight of a and b.

    Args:
        logprobs: Tensor (prompts, 2): log P(yes) and log P(no) of the examples' prompts, in order.
        examples: The labeled examples.
        weights: Weights of the classes supported and unsupported.
        pairs: Pairs as indices of the supported and of the unsupported example.

    Returns:
        The loss, and the tensor (examples) of l.
    """
    import torch

    log_odds = (logprobs[:, 0] - logprobs[:, 1]).split([len(example.prompts) for example in examples])
    lowest = torch.stack([values.min() for values in log_odds])
    device = lowest.device
    supported = torch.tensor([example.supported for example in examples], device=device)
    example_weights = torch.tensor([example.weight for example in examples], device=device)
    smoothing = torch.tensor([example.smoothing for example in examples], device=device)
    return sum_losses(logprobs, lowest, supported, example_weights, smoothing, weights, pairs), lowest.detach()


def sum_losses(
    logprobs: Any,
    lowest: Any,
    supported: Any,
    example_weights: Any,
    smoothing: Any,
    weights: tuple[float, float],
    pairs: Sequence[tuple[int, int]],
) -> Any:
    """Sum the terms of `compute_loss` over examples whose lowest log-odds are known.

    Args:
        logprobs: Tensor (prompts, 2): log P(yes) and log P(no).
        lowest: Tensor (examples) of l.
        supported: Tensor (examples) of labels.
        example_weights: Tensor (examples) of weights without those of the classes.
        smoothing: Tensor (examples) of e.
        weights: Weights of the classes supported and unsupported.
        pairs: Pairs as indices of the supported and of the unsupported example.
    """
    import torch

    signed = torch.where(supported, lowest, -lowest)
    weight = example_weights * torch.where(supported, weights[0], weights[1])
    softplus = torch.nn.functional.softplus
    loss = (weight * ((1 - smoothing) * softplus(-signed) + smoothing * softplus(signed))).sum()
    if pairs:
        a, b = torch.tensor(pairs, device=lowest.device).T
        pair_weights = (example_weights[a] + example_weights[b]) / 2
        loss = loss + PAIR_WEIGHT * (pair_weights * softplus(lowest[b] - lowest[a] + MARGIN)).sum()
    return loss - MASS_WEIGHT * torch.logaddexp(logprobs[:, 0], logprobs[:, 1]).sum()


def find_pair_indices(pairs: Sequence[StatementPair], examples: Sequence[LabeledExample]) -> list[tuple[int, int]]:
    """Find the indices of pairs among the examples. A pair with a missing example is omitted."""
    index = {example.prompts[0]: i for i, example in enumerate(examples) if len(example.prompts) == 1}
    return [(index[a], index[b]) for a, b in pairs if a in index and b in index]
