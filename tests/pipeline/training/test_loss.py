"""The loss over a token tree equals that of single prompts, with gradients."""

import math
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM

from ragassay.pipeline.slm.config import Slm
from ragassay.pipeline.token_tree.attention import ATTENTION_NAME
from ragassay.pipeline.token_tree.tree import build_tree
from ragassay.pipeline.training.loss import (
    MARGIN,
    MASS_WEIGHT,
    PAIR_WEIGHT,
    LabeledExample,
    StatementPair,
    compute_loss,
    find_pair_indices,
)
from ragassay.pipeline.training.trainable_model import compute_label_logprobs, load_for_training

YES, NO = (10, 11), (20,)
CONTEXT = (1, 500, 501, 502, 503, 504, 505)
EXAMPLES = [
    LabeledExample(((*CONTEXT, 600, 601, 9),), True),
    LabeledExample(((*CONTEXT, 600, 602, 603, 9), (*CONTEXT, 700, 9)), False),
    LabeledExample(((1, 800, 801, 9),), True),
]
WEIGHTS = (0.75, 1.5)


def compute_packed(model: Any, examples: Sequence[LabeledExample]) -> Any:
    tree = build_tree([prompt for example in examples for prompt in example.prompts])
    return compute_loss(compute_label_logprobs(model, tree, YES, NO), examples, WEIGHTS)[0]


def compute_single(model: Any, examples: Sequence[LabeledExample]) -> Any:
    """Compute the loss without packing, with one call of transformers per prompt."""
    total = torch.tensor(0.0)
    for example in examples:
        odds = []
        for prompt in example.prompts:
            logits = model(input_ids=torch.tensor([prompt])).logits[0, -1].float()
            logprobs = torch.log_softmax(logits, dim=-1)
            yes, no = logprobs[list(YES)].logsumexp(0), logprobs[list(NO)].logsumexp(0)
            odds.append(yes - no)
            total = total - MASS_WEIGHT * torch.logaddexp(yes, no)
        lowest = torch.stack(odds).min()
        total = total - (
            WEIGHTS[0] * torch.nn.functional.logsigmoid(lowest)
            if example.supported
            else WEIGHTS[1] * torch.nn.functional.logsigmoid(-lowest)
        )
    return total


def test_the_packed_loss_and_gradients_equal_those_of_single_prompts(tiny_model: str) -> None:
    model = load_for_training(Slm(name="tiny", model=tiny_model, dtype="float32"), rank=4, layers=1, seed=3)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "lora_B" in name:  # initially zero, so that lora_A would have no gradient
                parameter.normal_(std=0.05)
    results = {}
    for name, loss_of in (("packed", compute_packed), ("single", compute_single)):
        model.zero_grad()
        model.get_base_model().set_attn_implementation("sdpa" if name == "single" else ATTENTION_NAME)
        loss = loss_of(model, EXAMPLES)
        loss.backward()
        results[name] = (loss.item(), {n: p.grad.clone() for n, p in model.named_parameters() if p.requires_grad})
    assert results["packed"][0] == pytest.approx(results["single"][0], rel=1e-5)
    for name, gradient in results["packed"][1].items():
        assert torch.allclose(gradient, results["single"][1][name], atol=1e-5, rtol=1e-3), name
        assert gradient.abs().max() > 0, name


def test_the_merged_product_equals_that_of_peft(tiny_model: str) -> None:
    model = load_for_training(Slm(name="tiny", model=tiny_model, dtype="float32"), rank=4, layers=None, seed=3)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "lora_B" in name:
                parameter.normal_(std=0.05)
    merged = [module for module in model.modules() if "forward" in vars(module)]
    assert merged
    results = []
    for is_merged in (True, False):
        if not is_merged:
            for module in merged:
                del module.forward  # restores peft's method
        model.zero_grad()
        loss = compute_packed(model, EXAMPLES)
        loss.backward()
        results.append((loss.item(), {n: p.grad.clone() for n, p in model.named_parameters() if p.requires_grad}))
    assert results[0][0] == pytest.approx(results[1][0], rel=1e-5)
    for name, gradient in results[0][1].items():
        assert torch.allclose(gradient, results[1][1][name], atol=1e-4, rtol=1e-3), name


def test_only_the_upper_layers_are_trained(tiny_model: str) -> None:
    model = load_for_training(Slm(name="tiny", model=tiny_model), rank=4, layers=1, seed=3)
    trained = [name for name, parameter in model.named_parameters() if parameter.requires_grad]
    assert trained
    assert all(".layers.1." in name for name in trained)


def test_new_matrices_do_not_change_the_model(tiny_model: str) -> None:
    plain = AutoModelForCausalLM.from_pretrained(tiny_model, dtype=torch.float32)
    model = load_for_training(Slm(name="tiny", model=tiny_model, dtype="float32"), rank=4, layers=None, seed=3)
    assert compute_packed(model, EXAMPLES).item() == pytest.approx(compute_single(plain, EXAMPLES).item(), rel=1e-5)


def test_the_loss_equals_that_computed_by_hand() -> None:
    logprobs = torch.log(torch.tensor([[0.6, 0.2], [0.5, 0.25], [0.1, 0.4]]))
    examples = [LabeledExample(((1,),), True), LabeledExample(((2,), (3,)), False)]
    loss, lowest = compute_loss(logprobs, examples, (1.0, 2.0))
    # l = log 3 for the first; of the second, min(log 2, -log 4) = -log 4: sigma(log 3) = 3/4, sigma(log 4) = 4/5
    mass = math.log(0.8) + math.log(0.75) + math.log(0.5)
    assert loss.item() == pytest.approx(-math.log(3 / 4) - 2 * math.log(4 / 5) - MASS_WEIGHT * mass)
    assert lowest.tolist() == pytest.approx([math.log(3), -math.log(4)])


def sigma(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def test_weights_smoothing_and_pairs_equal_those_computed_by_hand() -> None:
    logprobs = torch.log(torch.tensor([[0.6, 0.2], [0.1, 0.4]]))
    examples = [LabeledExample(((1,),), True, weight=0.5), LabeledExample(((2,),), False, weight=2.0, smoothing=0.1)]
    plain = -0.5 * math.log(3 / 4) - 2 * (0.9 * math.log(4 / 5) + 0.1 * math.log(1 / 5))
    mass = math.log(0.8) + math.log(0.5)
    assert compute_loss(logprobs, examples, (1.0, 1.0))[0].item() == pytest.approx(plain - MASS_WEIGHT * mass)
    pair = -PAIR_WEIGHT * 1.25 * math.log(sigma(math.log(3) + math.log(4) - MARGIN))
    loss, _ = compute_loss(logprobs, examples, (1.0, 1.0), [(0, 1)])
    assert loss.item() == pytest.approx(plain + pair - MASS_WEIGHT * mass)


def test_a_pair_with_a_missing_example_is_omitted() -> None:
    examples = [LabeledExample(((1,), (2,)), False), LabeledExample(((3,),), False), LabeledExample(((4,),), True)]
    assert find_pair_indices([StatementPair((4,), (3,)), StatementPair((4,), (2,)), StatementPair((9,), (3,))], examples) == [
        (2, 1)
    ]
