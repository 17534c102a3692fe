"""Measure 8-bit products on a CPU: speed, and how far the scores of the bundled verifier move.

    python -m tests.benchmarks.int8 FOLDER [--sets NAME …] [--rows 80]

FOLDER is written by `tests.benchmarks.dev_sets`. Prints for each set and way: tokens per second, AUROC of sentences, and the
difference of the log-odds from float32; for the second way the 95 % interval of the difference in AUROC, resampled by response.
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

from ragassay.jobs.config.job import load_job
from ragassay.pipeline.engines import llama
from ragassay.pipeline.engines.light_tokenizer import load_light_tokenizer
from ragassay.pipeline.engines.protocol import Engine
from ragassay.pipeline.engines.torch_engine import TorchSettings
from ragassay.pipeline.slm.config import Slm
from ragassay.pipeline.slm.prompt import PromptBuilder
from tests.benchmarks.labeled_prompts import compute_log_odds, read_set, resample_difference

ACTIVATION_LIMIT = 127

WEIGHT_LIMIT = 63
"""7 bits: processors without VNNI add two products in 16 bits, where products of 8 bits overflow."""

SETS = ("ragtruth", "begin", "handbook", "everyday", "written_answers", "written_new")


class Int8Linear:
    """A linear layer with an int8 weight.

    With s_i = max_k |x_ik| / 127 for a token and t_j = max_k |w_jk| / 63 for an output,

        y_ij = s_i t_j sum_k round(x_ik / s_i) round(w_jk / t_j) + b_j
    """

    def __init__(self, weight: Any, bias: Any | None = None) -> None:
        import torch

        weight = weight.float()
        self._scales = weight.abs().amax(dim=1) / WEIGHT_LIMIT
        quantized = torch.round(weight / self._scales[:, None]).to(torch.int8)
        self._weight = torch.ops.onednn.qlinear_prepack(quantized, None)
        self._zeros = torch.zeros(len(weight), dtype=torch.int64)
        self._bias = bias

    def __call__(self, states: Any) -> Any:
        import torch

        scales = states.abs().amax(dim=1, keepdim=True).clamp_(min=1e-20) / ACTIVATION_LIMIT
        zero = ACTIVATION_LIMIT + 1
        quantized = (states * (1 / scales)).add_(zero + 0.5).to(torch.uint8)  # the cast drops the fraction
        product = torch.ops.onednn.qlinear_pointwise(
            quantized, 1.0, zero, self._weight, self._scales, self._zeros, None, 1.0, 0, torch.float32, "none", [], ""
        )
        product.mul_(scales)
        return product if self._bias is None else product.add_(self._bias)


def load_int8(slm: Slm, load: Callable[[], Engine]) -> Engine:
    """Load an engine whose layers multiply in 8 bits."""
    load_layer = llama.load_layer

    def load_int8_layer(weights: dict[str, Any], name: str) -> llama.Layer:
        layer = load_layer(weights, name)
        products = ("project_attention", "project_output", "project_gate_up", "project_down")
        return llama.Layer(**vars(layer) | {part: Int8Linear(**getattr(layer, part).keywords) for part in products})

    llama.load_layer = load_int8_layer
    engine = load()
    llama.load_layer = load_layer
    return engine


def main() -> None:
    """Print one line per set and way."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sets", nargs="*", default=SETS)
    parser.add_argument("--rows", type=int, default=80)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    slm = load_job(None).members.slms[0]
    settings = TorchSettings(dtype="float32")

    def load() -> Engine:
        return settings.load_engine(slm, labels=6, gpus=0, threads=options.threads)

    engines = {"float32": load(), "int8": load_int8(slm, load)}
    builder = PromptBuilder(slm, load_light_tokenizer(slm))
    for name in options.sets:
        labeled = read_set(options.folder, name, options.rows, builder)
        prompts = [prompt for row in labeled for prompt in row.prompts.prompts()]
        labels = [row.supported for row in labeled]
        truth, ends = np.concatenate(labels), np.cumsum(list(map(len, labels)))[:-1]
        reference = None
        for engine in engines.values():
            compute_log_odds(engine, builder, prompts[:8])
        for way, engine in engines.items():
            started = time.perf_counter()
            odds, tokens = compute_log_odds(engine, builder, prompts)
            speed = tokens / (time.perf_counter() - started)
            reference = odds if reference is None else reference
            difference = np.abs(odds - reference)
            change = ""
            if reference is not odds:
                low, high = resample_difference(labels, np.split(reference, ends), np.split(odds, ends))
                change = f" ({low:+.3f} to {high:+.3f})"
            print(
                f"{name:16} {way:8} {speed:5.0f} tokens/s, AUROC of {len(truth)} sentences "
                f"{roc_auc_score(truth, odds):.3f}{change}, "
                f"difference of log-odds {difference.mean():.2f} in the mean, {difference.max():.2f} at most",
                flush=True,
            )


if __name__ == "__main__":
    main()
