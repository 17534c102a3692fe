"""The training loop: packs of token trees, AdamW, cosine decay, held-out contexts, resumable."""
# Not the Trainer of transformers: a step has as many packs as its labels take, a look measures several logs over whole
# contexts, and a checkpoint keeps the LoRA matrices alone. All of these would have to be overridden, which is no shorter.

import json
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score
from sklearn.utils import compute_class_weight

from ragassay.jobs.training.examples import Group
from ragassay.pipeline.token_tree.tree import grow
from ragassay.pipeline.training.lora import label_logprobs
from ragassay.pipeline.training.loss import Unit, places_of, unit_loss

CHECKPOINT = "checkpoint.pt"
WARM_UP = 0.03
"""Share of the steps over which the learning rate rises."""


@dataclass(frozen=True)
class Recipe:
    """How to train.

    Attributes:
        epochs: Passes over the training groups.
        learning_rate: Its peak; rises over the first 3 % of the steps, falls to 0 by a cosine.
        rank: Rank of the LoRA matrices.
        layers: Upper layers that get them; None for all.
        batch: Labels an optimizer step.
        pack: Tokens of one forward pass: groups are packed together up to it.
        check_every: Steps between two looks at the held-out contexts.
        patience: Looks without gain after which training stops.
        seed: Of the first values and of the order.
    """

    epochs: float = 1.0
    learning_rate: float = 6e-4
    rank: int = 16
    layers: int | None = None
    batch: int = 32
    pack: int = 2048
    check_every: int = 50
    patience: int = 5
    seed: int = 0


@dataclass
class Look:
    """A look at the held-out contexts: steps and tokens trained so far, mean loss, AUROC of the labels' l, and that of the
    watched logs."""

    step: int
    tokens: int
    labels: int
    seconds: float
    train_loss: float
    loss: float
    auroc: float
    watched: dict[str, float] = field(default_factory=dict)

    @property
    def worth(self) -> float:
        """What the best look has most of: the mean AUROC of the watched logs; without any, minus the held-out loss."""
        return float(np.mean(list(self.watched.values()))) if self.watched else -self.loss


def train(
    model: Any,
    training: Sequence[Group],
    held_out: Sequence[Group],
    labels: tuple[Sequence[int], Sequence[int]],
    recipe: Recipe,
    out: Path,
    say: Callable[[str], None],
    tick: Callable[[int], None] = lambda tokens: None,
    watched: Mapping[str, Sequence[Group]] | None = None,
) -> list[Look]:
    """Train the LoRA matrices of a model; the best ones by `Look.worth` are in it afterwards.

    Args:
        model: From `pipeline.training.lora.load_for_training`.
        training: Groups to train on.
        held_out: Groups of other contexts.
        labels: Token ids of yes and of no.
        recipe: How to.
        out: Folder for the checkpoint; one that lies there under the same recipe is taken up.
        say: Told of every look, in words.
        tick: Told of every step, the tokens so far.
        watched: Name -> groups of a log of other origin, which every look measures too.

    Returns:
        The looks.
    """
    import torch
    from transformers import get_cosine_schedule_with_warmup

    steps = _steps(training, recipe)
    weights = _class_weights([unit for group in training for unit in group.units])
    parameters = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(parameters, lr=recipe.learning_rate, weight_decay=0.0)
    schedule = get_cosine_schedule_with_warmup(optimizer, round(WARM_UP * len(steps)), len(steps))
    state = _State(
        model, optimizer, schedule, out / CHECKPOINT, asdict(recipe) | {"steps": len(steps), "watched": sorted(watched or {})}
    )
    looks = state.resume()
    done = looks[-1].step if looks else 0
    tokens, seen, seconds = (looks[-1].tokens, looks[-1].labels, looks[-1].seconds) if looks else (0, 0, 0.0)
    best = max((look.worth for look in looks), default=-float("inf"))
    since = len(looks) - 1 - int(np.argmax([look.worth for look in looks])) if looks else 0
    started, losses = time.perf_counter() - seconds, []
    for step in range(done, len(steps)):
        count = sum(len(group.units) for pack in steps[step] for group in pack)
        for pack in steps[step]:
            units = [unit for group in pack for unit in group.units]
            tree = grow([prompt for unit in units for prompt in unit.prompts])
            pairs = places_of([pair for group in pack for pair in group.pairs], units)
            loss, _ = unit_loss(label_logprobs(model, tree, *labels), units, weights, pairs)
            (loss / count).backward()
            losses.append(loss.item() / len(units))
            tokens += len(tree.tokens)
        seen += count
        tick(tokens)
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        if (step + 1) % recipe.check_every == 0 or step + 1 == len(steps):
            seconds = time.perf_counter() - started
            loss_out, area = evaluate(model, held_out, labels, weights)
            seen_elsewhere = {name: evaluate(model, groups, labels)[1] for name, groups in (watched or {}).items()}
            look = Look(step + 1, tokens, seen, seconds, float(np.mean(losses)), loss_out, area, seen_elsewhere)
            looks.append(look)
            better = look.worth > best
            since = 0 if better else since + 1
            state.save(looks, best=better)
            best = max(best, look.worth)
            left = seconds / (step + 1) * (len(steps) - step - 1)
            say(
                f"step {step + 1} of {len(steps)}: {tokens:,} tokens, loss {look.train_loss:.3f}, held out {loss_out:.3f}, "
                f"AUROC {area:.3f}, "
                + "".join(f"{name} {value:.3f}, " for name, value in seen_elsewhere.items())
                + f"{tokens / max(seconds, 1e-9):.0f} tokens/s, {left / 60:.0f} min left"
            )
            losses = []
            if since >= recipe.patience:
                say(f"stopped early: {since} looks without gain")
                break
    state.take_best()
    return looks


def evaluate(
    model: Any, groups: Sequence[Group], labels: tuple[Sequence[int], Sequence[int]], weights: tuple[float, float] = (1.0, 1.0)
) -> tuple[float, float]:
    """Mean loss a label, and AUROC of the labels' l, over groups."""
    import torch

    total, count, values, truth = 0.0, 0, [], []
    model.eval()
    with torch.inference_mode():
        for group in groups:
            tree = grow([prompt for unit in group.units for prompt in unit.prompts])
            loss, lowest = unit_loss(label_logprobs(model, tree, *labels), group.units, weights)
            total += loss.item()
            count += len(group.units)
            values += lowest.tolist()
            truth += [unit.supported for unit in group.units]
    model.train()
    both = 0 < sum(truth) < len(truth)
    return total / count, float(roc_auc_score(truth, values)) if both else float("nan")


def _steps(groups: Sequence[Group], recipe: Recipe) -> list[list[list[Group]]]:
    """Every step's packs, over all epochs, in a seeded order."""
    order = random.Random(recipe.seed)
    queue: list[Group] = []
    whole, part = divmod(recipe.epochs, 1)
    for epoch in range(int(whole) + (part > 0)):
        shuffled = order.sample(list(groups), len(groups))
        queue += shuffled if epoch < whole else shuffled[: round(part * len(groups))]
    steps: list[list[list[Group]]] = []
    batch: list[Group] = []
    for group in queue:
        batch.append(group)
        if sum(len(g.units) for g in batch) >= recipe.batch:
            steps.append(list(_packs(batch, recipe.pack)))
            batch = []
    return [*steps, list(_packs(batch, recipe.pack))] if batch else steps


def _packs(groups: Sequence[Group], limit: int) -> Iterator[list[Group]]:
    """Groups of similar size together, each pack within the limit; a larger group alone."""
    pack: list[Group] = []
    for group in sorted(groups, key=lambda g: g.tokens):
        if pack and sum(g.tokens for g in pack) + group.tokens > limit:
            yield pack
            pack = []
        pack.append(group)
    if pack:
        yield pack


def _class_weights(units: Sequence[Unit]) -> tuple[float, float]:
    """Weights under which both classes count the same."""
    truth, counts = [unit.supported for unit in units], [unit.weight for unit in units]
    yes, no = compute_class_weight("balanced", classes=np.array([True, False]), y=truth, sample_weight=counts)
    return float(yes), float(no)


@dataclass
class _State:
    """What a broken training goes on from: matrices, optimizer, schedule, looks, and the best matrices so far."""

    model: Any
    optimizer: Any
    schedule: Any
    path: Path
    recipe: dict[str, Any]
    best: Any = None

    def save(self, looks: Sequence[Look], *, best: bool) -> None:
        import torch

        now = {name: p.detach().cpu().clone() for name, p in self.model.named_parameters() if p.requires_grad}
        if best:
            self.best = now
        held = {
            "recipe": json.dumps(self.recipe),
            "looks": [asdict(look) for look in looks],
            "now": now,
            "best": self.best,
            "optimizer": self.optimizer.state_dict(),
            "schedule": self.schedule.state_dict(),
        }
        self.path.parent.mkdir(parents=True, exist_ok=True)
        part = self.path.with_suffix(".part")
        torch.save(held, part)
        part.replace(self.path)

    def resume(self) -> list[Look]:
        import torch

        if not self.path.exists():
            return []
        held = torch.load(self.path, weights_only=True)
        if held["recipe"] != json.dumps(self.recipe):
            return []
        self._load(held["now"])
        self.best = held["best"]
        self.optimizer.load_state_dict(held["optimizer"])
        self.schedule.load_state_dict(held["schedule"])
        return [Look(**look) for look in held["looks"]]

    def take_best(self) -> None:
        if self.best is not None:
            self._load(self.best)

    def _load(self, values: dict[str, Any]) -> None:
        import torch

        with torch.no_grad():
            for name, p in self.model.named_parameters():
                if p.requires_grad:
                    p.copy_(values[name])
