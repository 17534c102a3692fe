"""Training learns what can be learned, stops where it should, and goes on where it broke."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from ragassay.jobs.training.examples import Group
from ragassay.jobs.training.train import Look, Recipe, evaluate, train
from ragassay.pipeline.slm.config import Slm
from ragassay.pipeline.training.lora import load_for_training
from ragassay.pipeline.training.loss import Unit

YES, NO = (10,), (20,)
RECIPE = Recipe(epochs=3, learning_rate=5e-3, rank=4, layers=None, batch=8, pack=100, check_every=5, patience=100)


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> Iterator[None]:
    """The model is so small that a second thread only waits."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def groups(first: int, count: int) -> list[Group]:
    """Contexts of other tokens each; a statement is supported if it has token 7, not if it has token 8."""
    found = []
    for number in range(first, first + count):
        context = (1, 1000 + number, 2000 + number)
        units = [Unit(((*context, 300 + number % 5, mark, 9),), mark == 7) for mark in (7, 8)]
        found.append(Group(str(number), units, 11))
    return found


class Broken(Exception):
    """Stands for a kill."""


def run(tiny: str, out: Path, *, breaks_at: int | None = None, recipe: Recipe = RECIPE) -> tuple[list[Look], dict[str, Any]]:
    model = load_for_training(Slm(name="tiny", model=tiny, dtype="float32"), rank=4, layers=None, seed=1)
    steps = 0

    def tick(_: int) -> None:
        nonlocal steps
        steps += 1
        if steps == breaks_at:
            raise Broken

    looks = train(model, groups(0, 60), groups(100, 10), (YES, NO), recipe, out, say=lambda _: None, tick=tick)
    return looks, {name: p.detach().clone() for name, p in model.named_parameters() if p.requires_grad}


@pytest.fixture(scope="module")
def whole(tiny_model: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[list[Look], dict[str, Any]]:
    return run(tiny_model, tmp_path_factory.mktemp("whole"))


def test_it_learns(whole: tuple[list[Look], dict[str, Any]]) -> None:
    looks, _ = whole
    assert looks[-1].auroc > 0.95
    assert looks[-1].loss < looks[0].loss


def test_a_broken_training_goes_on_to_the_same_end(
    whole: tuple[list[Look], dict[str, Any]], tiny_model: str, tmp_path: Path
) -> None:
    with pytest.raises(Broken):
        run(tiny_model, tmp_path, breaks_at=23)
    looks, weights = run(tiny_model, tmp_path)
    assert [(x.step, x.tokens) for x in looks] == [(x.step, x.tokens) for x in whole[0]]
    assert [x.loss for x in looks] == pytest.approx([x.loss for x in whole[0]], rel=1e-3)
    for name, value in weights.items():
        assert torch.allclose(value, whole[1][name], atol=1e-5), name


def test_another_recipe_starts_anew(tiny_model: str, tmp_path: Path) -> None:
    with pytest.raises(Broken):
        run(tiny_model, tmp_path, breaks_at=23)
    other = Recipe(**{**RECIPE.__dict__, "epochs": 1})
    looks, _ = run(tiny_model, tmp_path, recipe=other)
    assert looks[0].step == other.check_every


def test_it_stops_where_nothing_is_gained(tiny_model: str, tmp_path: Path) -> None:
    still = Recipe(**{**RECIPE.__dict__, "learning_rate": 0.0, "patience": 2})
    looks, _ = run(tiny_model, tmp_path, recipe=still)
    assert len(looks) == 3


def test_every_look_is_told(tiny_model: str, tmp_path: Path) -> None:
    told: list[str] = []
    say: Callable[[str], None] = told.append
    model = load_for_training(Slm(name="tiny", model=tiny_model), rank=4, layers=None, seed=1)
    looks = train(model, groups(0, 20), groups(100, 5), (YES, NO), RECIPE, tmp_path, say)
    assert len(told) == len(looks)
    assert all("tokens/s" in line for line in told)


def test_the_best_matrices_are_those_that_judge_watched_logs_best(tiny_model: str, tmp_path: Path) -> None:
    turned = [
        Group(g.context, [unit._replace(supported=not unit.supported) for unit in g.units], g.tokens) for g in groups(200, 10)
    ]
    model = load_for_training(Slm(name="tiny", model=tiny_model, dtype="float32"), rank=4, layers=None, seed=1)
    told: list[str] = []
    looks = train(model, groups(0, 60), groups(100, 10), (YES, NO), RECIPE, tmp_path, told.append, watched={"turned": turned})
    best = max(looks, key=lambda look: look.worth)
    assert best.watched["turned"] > looks[-1].watched["turned"] and looks[-1].auroc > best.auroc
    assert evaluate(model, turned, (YES, NO))[1] == pytest.approx(best.watched["turned"])
    assert all("turned 0." in line or "turned 1." in line for line in told)
