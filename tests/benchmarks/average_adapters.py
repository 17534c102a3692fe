"""Average LoRA adapters of one model: `python -m tests.benchmarks.average_adapters OUT ADAPTER… [--weights W…] [--rank 16]`.

The mean of the products s B A of each matrix is reduced to a rank by its singular values. For adapters that were trained on
from the same adapter, the mean model scores like the mean of their scores, at the cost of one. OUT gets peft's files and the
`slm.json` of the first adapter; a bundled adapter may be named.
"""

import argparse
import json
import shutil
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from ragassay.pipeline.engines.adapter import CONFIG_FILE, SETTINGS_FILE, WEIGHTS_FILE, find_adapter

A, B = ".lora_A.weight", ".lora_B.weight"


def read_products(folder: Path) -> dict[str, Any]:
    """Read matrix -> s B A, float32."""
    config = json.loads((folder / CONFIG_FILE).read_text(encoding="utf-8"))
    weights = {name: value.float() for name, value in load_file(folder / WEIGHTS_FILE).items()}
    scale = config["lora_alpha"] / config["r"]
    names = [name.removesuffix(A) for name in weights if name.endswith(A)]
    return {name: scale * weights[name + B] @ weights[name + A] for name in names}


def factor(product: Any, rank: int, scale: float) -> tuple[Any, Any, float]:
    """Return A and B of the nearest s B A of a rank, and the share of the energy that is lost."""
    u, s, v = torch.linalg.svd(product, full_matrices=False)
    root = (s[:rank] / scale).sqrt()
    lost = float((s[rank:] ** 2).sum() / (s**2).sum())
    return root[:, None] * v[:rank], u[:, :rank] * root, lost


def main() -> None:
    """Write the mean adapter."""
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("adapters", nargs="+")
    parser.add_argument("--weights", nargs="*", type=float)
    parser.add_argument("--rank", type=int, default=16)
    options = parser.parse_args()
    folders = [find_adapter(name) for name in options.adapters]
    weights = options.weights or [1.0] * len(folders)
    products = [read_products(folder) for folder in folders]
    config = json.loads((folders[0] / CONFIG_FILE).read_text(encoding="utf-8"))
    config |= {"r": options.rank, "lora_alpha": 2 * options.rank}
    matrices, lost = {}, []
    for name in products[0]:
        mean = sum(weight * product[name] for weight, product in zip(weights, products, strict=True)) / sum(weights)
        a, b, share = factor(mean, options.rank, 2.0)
        matrices[name + A], matrices[name + B] = (x.to(torch.bfloat16).contiguous() for x in (a, b))
        lost.append(share)
    options.out.mkdir(parents=True)
    save_file(matrices, options.out / WEIGHTS_FILE)
    (options.out / CONFIG_FILE).write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    shutil.copy(folders[0] / SETTINGS_FILE, options.out / SETTINGS_FILE)
    print(f"{len(matrices) // 2} matrices, energy lost: mean {sum(lost) / len(lost):.4f}, at most {max(lost):.4f}")


if __name__ == "__main__":
    main()
