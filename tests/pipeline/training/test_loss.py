"""The packed loss is the loss of the prompts one by one, gradients too."""

import math
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM

from ragassay.pipeline.slm.config import Slm
from ragassay.pipeline.token_tree.attention import NAME
from ragassay.pipeline.token_tree.tree import grow
from ragassay.pipeline.training.lora import label_logprobs, load_for_training
from ragassay.pipeline.training.loss import MARGIN, MASS_WEIGHT, PAIR_WEIGHT, Pair, Unit, places_of, unit_loss

YES, NO = (10, 11), (20,)
CONTEXT = (1, 500, 501, 502, 503, 504, 505)
UNITS = [
    Unit(((*CONTEXT, 600, 601, 9),), True),
    Unit(((*CONTEXT, 600, 602, 603, 9), (*CONTEXT, 700, 9)), False),
    Unit(((1, 800, 801, 9),), True),
]
WEIGHTS = (0.75, 1.5)


def of_packed(model: Any, units: Sequence[Unit]) -> Any:
    tree = grow([prompt for unit in units for prompt in unit.prompts])
    return unit_loss(label_logprobs(model, tree, YES, NO), units, WEIGHTS)[0]


def of_each(model: Any, units: Sequence[Unit]) -> Any:
    """The same without any packing: plain calls of transformers, a prompt each."""
    total = torch.tensor(0.0)
    for unit in units:
        odds = []
        for prompt in unit.prompts:
            logits = model(input_ids=torch.tensor([prompt])).logits[0, -1].float()
            chances = torch.log_softmax(logits, dim=-1)
            yes, no = chances[list(YES)].logsumexp(0), chances[list(NO)].logsumexp(0)
            odds.append(yes - no)
            total = total - MASS_WEIGHT * torch.logaddexp(yes, no)
        lowest = torch.stack(odds).min()
        total = total - (
            WEIGHTS[0] * torch.nn.functional.logsigmoid(lowest)
            if unit.supported
            else WEIGHTS[1] * torch.nn.functional.logsigmoid(-lowest)
        )
    return total


def test_packed_equals_one_by_one_with_gradients(tiny_model: str) -> None:
    model = load_for_training(Slm(name="tiny", model=tiny_model, dtype="float32"), rank=4, layers=1, seed=3)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "lora_B" in name:  # zero at first: nothing of the lower matrices would be seen
                parameter.normal_(std=0.05)
    found = {}
    for name, loss_of in (("packed", of_packed), ("one by one", of_each)):
        model.zero_grad()
        model.get_base_model().set_attn_implementation("sdpa" if name == "one by one" else NAME)
        loss = loss_of(model, UNITS)
        loss.backward()
        found[name] = (loss.item(), {n: p.grad.clone() for n, p in model.named_parameters() if p.requires_grad})
    assert found["packed"][0] == pytest.approx(found["one by one"][0], rel=1e-5)
    for name, gradient in found["packed"][1].items():
        assert torch.allclose(gradient, found["one by one"][1][name], atol=1e-5, rtol=1e-3), name
        assert gradient.abs().max() > 0, name


def test_merged_matrices_are_those_of_peft(tiny_model: str) -> None:
    model = load_for_training(Slm(name="tiny", model=tiny_model, dtype="float32"), rank=4, layers=None, seed=3)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "lora_B" in name:
                parameter.normal_(std=0.05)
    merged = [module for module in model.modules() if "forward" in vars(module)]
    assert merged
    found = []
    for own in (True, False):
        if not own:
            for module in merged:
                del module.forward  # peft's own
        model.zero_grad()
        loss = of_packed(model, UNITS)
        loss.backward()
        found.append((loss.item(), {n: p.grad.clone() for n, p in model.named_parameters() if p.requires_grad}))
    assert found[0][0] == pytest.approx(found[1][0], rel=1e-5)
    for name, gradient in found[0][1].items():
        assert torch.allclose(gradient, found[1][1][name], atol=1e-4, rtol=1e-3), name


def test_only_the_upper_layers_get_matrices(tiny_model: str) -> None:
    model = load_for_training(Slm(name="tiny", model=tiny_model), rank=4, layers=1, seed=3)
    trained = [name for name, parameter in model.named_parameters() if parameter.requires_grad]
    assert trained
    assert all(".layers.1." in name for name in trained)


def test_the_model_is_as_it_was_before_training(tiny_model: str) -> None:
    plain = AutoModelForCausalLM.from_pretrained(tiny_model, dtype=torch.float32)
    model = load_for_training(Slm(name="tiny", model=tiny_model, dtype="float32"), rank=4, layers=None, seed=3)
    assert of_packed(model, UNITS).item() == pytest.approx(of_each(plain, UNITS).item(), rel=1e-5)


def test_by_hand() -> None:
    logprobs = torch.log(torch.tensor([[0.6, 0.2], [0.5, 0.25], [0.1, 0.4]]))
    units = [Unit(((1,),), True), Unit(((2,), (3,)), False)]
    loss, lowest = unit_loss(logprobs, units, (1.0, 2.0))
    # l = log 3 for the first; of the second, min(log 2, -log 4) = -log 4: sigma(log 3) = 3/4, sigma(log 4) = 4/5
    mass = math.log(0.8) + math.log(0.75) + math.log(0.5)
    assert loss.item() == pytest.approx(-math.log(3 / 4) - 2 * math.log(4 / 5) - MASS_WEIGHT * mass)
    assert lowest.tolist() == pytest.approx([math.log(3), -math.log(4)])


def sigma(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def test_weights_smoothing_and_pairs_by_hand() -> None:
    logprobs = torch.log(torch.tensor([[0.6, 0.2], [0.1, 0.4]]))
    units = [Unit(((1,),), True, weight=0.5), Unit(((2,),), False, weight=2.0, smoothing=0.1)]
    plain = -0.5 * math.log(3 / 4) - 2 * (0.9 * math.log(4 / 5) + 0.1 * math.log(1 / 5))
    mass = math.log(0.8) + math.log(0.5)
    assert unit_loss(logprobs, units, (1.0, 1.0))[0].item() == pytest.approx(plain - MASS_WEIGHT * mass)
    pair = -PAIR_WEIGHT * 1.25 * math.log(sigma(math.log(3) + math.log(4) - MARGIN))
    loss, _ = unit_loss(logprobs, units, (1.0, 1.0), [(0, 1)])
    assert loss.item() == pytest.approx(plain + pair - MASS_WEIGHT * mass)


def test_pairs_are_found_among_units_and_left_out_where_one_is_missing() -> None:
    units = [Unit(((1,), (2,)), False), Unit(((3,),), False), Unit(((4,),), True)]
    assert places_of([Pair((4,), (3,)), Pair((4,), (2,)), Pair((9,), (3,))], units) == [(2, 1)]
