"""Write a trained adapter: peft's files in bfloat16, `slm.json`, `training.json` and a model card."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ragassay.jobs.training.train import Look, Recipe
from ragassay.pipeline.engines.adapter import SETTINGS_FILE, WEIGHTS_FILE, find_adapter
from ragassay.pipeline.engines.weights import identify_weights
from ragassay.pipeline.slm.config import ADAPTER_SETTINGS, Slm

TRAINING = "training.json"


def write_adapter(
    model: Any, slm: Slm, recipe: Recipe, counts: dict[str, int], data: str, looks: Sequence[Look], folder: Path
) -> None:
    """Write what `adapter:` of an SLM reads.

    Args:
        model: The trained peft model.
        slm: The SLM that it was trained as.
        recipe: How.
        counts: What it was trained on.
        data: Its name.
        looks: The held-out figures.
        folder: Where to.
    """
    import torch
    from peft import get_peft_model_state_dict
    from safetensors.torch import save_file

    folder.mkdir(parents=True, exist_ok=True)
    config = model.peft_config["default"]
    config.base_model_name_or_path = slm.model
    config.inference_mode = True
    config.save_pretrained(str(folder))
    weights = get_peft_model_state_dict(model)
    save_file(
        {name: value.detach().cpu().to(torch.bfloat16).contiguous() for name, value in weights.items()}, folder / WEIGHTS_FILE
    )
    settings = slm.model_dump(mode="json", include=set(ADAPTER_SETTINGS)) | {"base": identify_weights(slm.model)}
    _write(folder / SETTINGS_FILE, settings)
    training = {"data": data, "recipe": asdict(recipe), "counts": counts, "looks": [asdict(look) for look in looks]}
    before = _trainings(slm.adapter) if slm.adapter else []
    _write(folder / TRAINING, training | ({"before": before} if before else {}))
    (folder / "README.md").write_text(_card(slm, config, recipe, counts, data, looks, before), encoding="utf-8")


def _trainings(adapter: str) -> list[dict[str, Any]]:
    """The trainings that made an adapter, oldest first; empty where it does not tell."""
    path = find_adapter(adapter) / TRAINING
    if not path.exists():
        return []
    last = json.loads(path.read_text(encoding="utf-8"))
    return [*last.pop("before", []), last]


def _write(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _card(
    slm: Slm,
    config: Any,
    recipe: Recipe,
    counts: dict[str, int],
    data: str,
    looks: Sequence[Look],
    before: Sequence[dict[str, Any]],
) -> str:
    best = max(looks, key=lambda look: look.worth)
    watched = list(looks[0].watched)
    earlier = sum(training["looks"][-1]["tokens"] for training in before)
    lines = [
        f"# A verifier: LoRA adapter for {slm.model}",
        "",
        f"Trained by `ragassay tune` on {data}: "
        + ", ".join(f"{count:,} {what}" for what, count in sorted(counts.items()))
        + ".",
        f"Rank {config.r} on {len(config.target_modules)} matrices, peak learning rate {recipe.learning_rate:g}, "
        f"{recipe.batch} labels a step, seed {recipe.seed}"
        + (f"; it went on from the adapter {slm.adapter}" if slm.adapter else "")
        + (f", trained on {earlier:,} tokens before ({TRAINING})." if earlier else "."),
        "",
        f"Best on {'the watched logs' if watched else 'held-out contexts'} after {best.tokens:,} tokens "
        f"({best.labels:,} labels): held-out loss {best.loss:.3f}, AUROC {best.auroc:.3f}.",
        "Held-out contexts of the training data say little about other data: measure with `ragassay evaluate` on your own.",
        "",
        f"| {' | '.join(['tokens', 'labels', 'training loss', 'held-out loss', 'held-out AUROC', *watched])} |",
        f"|{' --- |' * (5 + len(watched))}",
        *map(_look_line, looks),
        "",
    ]
    return "\n".join(lines)


def _look_line(look: Look) -> str:
    figures = (look.train_loss, look.loss, look.auroc, *look.watched.values())
    return f"| {look.tokens:,} | {look.labels:,} | {' | '.join(f'{figure:.3f}' for figure in figures)} |"
