"""A causal language model with LoRA matrices over padded batches of token trees."""

import json
import math
import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from gguf.constants import GGMLQuantizationType
from gguf.quants import dequantize
from safetensors.torch import load_file, save_file
from torch import nn
from torch.nn import functional
from transformers import AttentionInterface, AutoConfig, AutoModel

from ragassay.pipeline.arrays import Ints
from ragassay.pipeline.training.loss import sum_losses
from ragassay.pipeline.training.merged_lora import make_merged_product
from tests.benchmarks.gpu_training.examples import Tree, join, join_owners, join_pairs, pad

SCALE = 2.0
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
ATTENTION = "padded_trees"
PREFIX = "base_model.model.model."
"""What peft puts before a module's name."""

MODULES = {
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
}
"""GGUF name -> name of the module in transformers."""


class LoraModel(NamedTuple):
    """A model to train.

    Attributes:
        base: Transformer without head.
        head: (labels of the head, width) rows of the LM head.
        matrices: Module name -> its LoRA matrices.
        rows: (largest token id + 1) row of the embeddings of each token id; -1 for a token that was not carried.
        head_rows: Token id -> row of the head.
    """

    base: Any
    head: Any
    matrices: dict[str, "LoraLinear"]
    rows: Ints
    head_rows: dict[int, int]


class LoraLinear(nn.Module):  # type: ignore[misc]
    """A linear layer with weights W + SCALE B A, of which only A and B are trained."""

    def __init__(self, base: Any, rank: int, generator: Any) -> None:
        """Initialize A like peft, uniform up to 1 / sqrt(inputs), and B with 0."""
        super().__init__()
        bound = 1 / math.sqrt(base.in_features)
        self.base = base
        self.a = nn.Parameter(torch.empty(rank, base.in_features).uniform_(-bound, bound, generator=generator))
        self.b = nn.Parameter(torch.zeros(base.out_features, rank))

    def forward(self, x: Any) -> Any:
        """Compute x (W + SCALE B A)' and the bias."""
        y = make_merged_product()(x, self.base.weight, self.a, self.b, SCALE)
        return y if self.base.bias is None else y + self.base.bias


def attend(
    module: Any, query: Any, key: Any, value: Any, *_: Any, scaling: float, tree_mask: Any, **__: Any
) -> tuple[Any, None]:
    """Compute attention with the mask of each tree. This is the attention function that transformers calls."""
    groups = query.shape[1] // key.shape[1]
    key, value = key.repeat_interleave(groups, 1), value.repeat_interleave(groups, 1)
    output = functional.scaled_dot_product_attention(query, key, value, attn_mask=tree_mask, scale=scaling)
    return output.transpose(1, 2).contiguous(), None


def load_model(folder: Path, rank: int, seed: int, adapter: Path | None) -> LoraModel:
    """Load the weights that `prepare` wrote, with new LoRA matrices or those of an adapter."""
    carried = pickle.loads((folder / "model.pkl").read_bytes())
    settings = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    kind = settings.pop("model_type")
    config = AutoConfig.for_model(kind, **{name: value for name, value in settings.items() if not name.startswith("_")})
    config.vocab_size = len(carried["ids"])
    config.pad_token_id = config.bos_token_id = config.eos_token_id = None
    AttentionInterface.register(ATTENTION, attend)
    state = {
        _rename(name): _dequantize(name, kind_of_blocks, data, config)
        for name, (kind_of_blocks, data) in carried["tensors"].items()
    }
    head = state.pop("head")
    base = AutoModel.from_config(config, attn_implementation=ATTENTION)
    base.load_state_dict(state)
    base = base.to(torch.bfloat16 if DEVICE == "cuda" else torch.float32).to(DEVICE).requires_grad_(False)
    matrices = _add_lora(base, rank, torch.Generator().manual_seed(seed), load_file(adapter) if adapter else None)
    rows = np.full(carried["ids"].max() + 1, -1)
    rows[carried["ids"]] = np.arange(len(carried["ids"]))
    head_rows = {int(token): row for row, token in enumerate(carried["head_ids"])}
    return LoraModel(base, head.to(base.dtype).to(DEVICE), matrices, rows, head_rows)


def _rename(name: str) -> str:
    if not name.startswith("blk."):
        return {"token_embd.weight": "embed_tokens.weight", "output_norm.weight": "norm.weight", "output.weight": "head"}[name]
    _, layer, module, part = name.split(".")
    return f"layers.{layer}.{MODULES[module]}.{part}"


def _dequantize(name: str, kind: int, data: Any, config: Any) -> Any:
    is_plain = GGMLQuantizationType(kind) is GGMLQuantizationType.F32
    weights = torch.from_numpy(np.array(data if is_plain else dequantize(data, GGMLQuantizationType(kind)), dtype=np.float32))
    if config.model_type != "llama" or not name.endswith(("attn_q.weight", "attn_k.weight")):
        return weights
    heads = config.num_attention_heads if "attn_q" in name else config.num_key_value_heads  # GGUF orders these rows otherwise
    return weights.reshape(heads, -1, 2, weights.shape[1]).swapaxes(1, 2).reshape(weights.shape)


def _add_lora(base: Any, rank: int, generator: Any, adapter: dict[str, Any] | None) -> dict[str, LoraLinear]:
    matrices = {}
    for name, module in list(base.named_modules()):
        if isinstance(module, nn.Linear) and name.startswith("layers."):
            lora = LoraLinear(module, rank, generator)
            if adapter is not None:
                lora.a.data.copy_(adapter[f"{PREFIX}{name}.lora_A.weight"])
                lora.b.data.copy_(adapter[f"{PREFIX}{name}.lora_B.weight"])
            base.set_submodule(name, lora.to(DEVICE))
            matrices[name] = lora
    return matrices


def save_adapter(model: LoraModel, path: Path) -> None:
    """Write the matrices under peft's names, in bfloat16."""
    parts = {"A": "a", "B": "b"}
    save_file(
        {
            f"{PREFIX}{name}.lora_{letter}.weight": getattr(lora, part).detach().to(torch.bfloat16).cpu().contiguous()
            for name, lora in model.matrices.items()
            for letter, part in parts.items()
        },
        path,
    )


def compute_logprobs(model: LoraModel, batch: Sequence[Tree], yes: Sequence[int], no: Sequence[int]) -> Any:
    """Compute log P(yes) and log P(no) after each prompt of a batch, among the rows of the head: tensor (prompts, 2)."""
    tokens, positions, sizes, ends = (torch.from_numpy(array).to(DEVICE) for array in pad(batch))
    index = torch.arange(tokens.shape[1], device=DEVICE)
    is_before, is_inside = index <= index[:, None], index[:, None] < (index + sizes)[:, None, :]
    with torch.autocast(DEVICE, torch.bfloat16, enabled=DEVICE == "cuda"):
        states = model.base(
            input_ids=tokens, position_ids=positions, use_cache=False, tree_mask=(is_before & is_inside)[:, None]
        ).last_hidden_state
        logits = states.flatten(0, 1)[ends] @ model.head.T
    logprobs = torch.log_softmax(logits.float(), -1)
    rows = [[model.head_rows[token] for token in tokens] for tokens in (yes, no)]
    return torch.stack([logprobs[:, rows_of_label].logsumexp(-1) for rows_of_label in rows], dim=1)


def find_lowest(logprobs: Any, batch: Sequence[Tree]) -> Any:
    """Return the lowest log-odds of the prompts of each example."""
    owners = torch.from_numpy(join_owners(batch)).to(logprobs.device)
    lowest = torch.full((len(join(batch, "supported")),), float("inf"), device=logprobs.device)
    return lowest.scatter_reduce(0, owners, logprobs[:, 0] - logprobs[:, 1], "amin")


def compute_batch_loss(logprobs: Any, batch: Sequence[Tree], class_weights: tuple[float, float]) -> Any:
    """Compute the loss of `pipeline.training.loss` for all trees of a batch at once."""
    supported, weights, smoothing = (
        torch.from_numpy(join(batch, name)).to(logprobs.device) for name in ("supported", "weights", "smoothing")
    )
    lowest = find_lowest(logprobs, batch)
    return sum_losses(logprobs, lowest, supported, weights, smoothing, class_weights, join_pairs(batch))
