"""Llama models in plain PyTorch over token trees, without transformers, whose import takes longer than to judge an answer.

The operations round where vLLM rounds: the norm of a layer reads the sum of hidden states in float32.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ragassay.pipeline.token_tree.attention import AttentionBlock, split_into_blocks
from ragassay.pipeline.token_tree.tree import TokenTree

Product = Callable[[Any], Any]
"""Multiplies states (tokens, inputs) by a weight: (tokens, outputs)."""

MODEL_TYPES = ("llama", "qwen2")
"""Values of `model_type` with this architecture."""

REQUIRED = {
    "hidden_act": ("silu",),
    "use_sliding_window": (None, False),
    "rope_scaling": (None,),
    "quantization_config": (None,),
}
"""Setting of config.json -> values that this code computes."""


@dataclass(frozen=True)
class LlamaConfig:
    """Sizes of a model.

    Attributes:
        layers: Number of layers.
        heads: Number of query heads.
        groups: Number of key heads.
        head_size: Size of a head.
        norm_epsilon: Added to the variance in norms.
        rope_base: Base of the rotation angles.
        window: Maximum number of positions.
    """

    layers: int
    heads: int
    groups: int
    head_size: int
    norm_epsilon: float
    rope_base: float
    window: int


def read_llama_config(folder: Path) -> LlamaConfig | None:
    """Read a model's config; None if the model has another architecture, or files that this code does not read."""
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    rope = config.get("rope_parameters") or {}
    if (
        config.get("model_type") not in MODEL_TYPES
        or any(config.get(name) not in values for name, values in REQUIRED.items())
        or rope.get("rope_type", "default") != "default"
        or rope.get("partial_rotary_factor", 1.0) != 1.0
        or not (folder / "model.safetensors").exists()
    ):
        return None
    try:
        heads = int(config["num_attention_heads"])
        return LlamaConfig(
            layers=int(config["num_hidden_layers"]),
            heads=heads,
            groups=int(config.get("num_key_value_heads") or heads),
            head_size=int(config.get("head_dim") or config["hidden_size"] // heads),
            norm_epsilon=float(config["rms_norm_eps"]),
            rope_base=float(rope.get("rope_theta") or config.get("rope_theta") or 10_000),
            window=int(config["max_position_embeddings"]),
        )
    except (KeyError, TypeError, ValueError):
        return None


@dataclass(frozen=True)
class Layer:
    """One layer: products with its weights, and the weights of its norms.

    Attributes:
        project_attention: Hidden states (n, size) -> queries, keys and values of all heads in one tensor.
        project_output: Attended values -> an update of the hidden states.
        project_gate_up: Hidden states -> gate and input of the feed-forward network in one tensor.
        project_down: Its activations -> an update of the hidden states.
        attention_norm: (size).
        feed_forward_norm: (size).
    """

    project_attention: Product
    project_output: Product
    project_gate_up: Product
    project_down: Product
    attention_norm: Any
    feed_forward_norm: Any


class Llama:
    """A loaded model.

    Attributes:
        config: Its sizes.
    """

    def __init__(self, folder: Path, config: LlamaConfig, dtype: str) -> None:
        """Load the weights, to the GPU if there is one.

        Args:
            folder: Folder in Hugging Face format.
            config: Result of `read_llama_config`.
            dtype: Type of weights and activations, resolved.
        """
        import torch
        from safetensors import safe_open

        self.config = config
        self._device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self._dtype = getattr(torch, dtype)
        with safe_open(folder / "model.safetensors", framework="pt") as file:
            weights = {name.removeprefix("model."): file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        weights = {name: tensor.to(self._device, self._dtype) for name, tensor in weights.items()}
        self._embeddings, self._norm = weights["embed_tokens.weight"], weights["norm.weight"]
        self._head = weights.get("lm_head.weight", self._embeddings)
        self._layers = [load_layer(weights, f"layers.{number}") for number in range(config.layers)]
        frequencies = 1.0 / config.rope_base ** (torch.arange(0, config.head_size, 2, dtype=torch.float32) / config.head_size)
        angles = torch.arange(config.window, dtype=torch.float32)[:, None] * frequencies
        self._cosines, self._sines = (turn(angles).to(self._device, self._dtype) for turn in (torch.cos, torch.sin))

    def compute_logprobs(self, tree: TokenTree, tokens: Sequence[int]) -> Any:
        """Return a float32 tensor (prompts, tokens): log P(token follows the prompt), over the whole vocabulary."""
        import torch
        from torch.nn.functional import linear, silu

        config, device = self.config, self._device
        blocks = split_into_blocks(tree, device)
        positions = torch.from_numpy(tree.positions).to(device)
        cosines, sines = self._cosines[positions][:, None], self._sines[positions][:, None]
        with torch.inference_mode():
            hidden = self._embeddings[torch.from_numpy(tree.tokens).to(device)]
            update = torch.zeros_like(hidden)
            for layer in self._layers:
                hidden, states = self._add_and_norm(hidden, update, layer.attention_norm)
                heads = layer.project_attention(states).view(len(states), -1, config.head_size)
                query, key, value = heads.split([config.heads, config.groups, config.groups], dim=1)
                query, key = (_rotate(part, cosines, sines) for part in (query, key))
                query, key, value = (part.transpose(0, 1).contiguous() for part in (query, key, value))
                attended = attend(query, key, value, blocks)
                update = layer.project_output(attended.transpose(0, 1).reshape(len(states), -1))
                hidden, states = self._add_and_norm(hidden, update, layer.feed_forward_norm)
                gate, up = layer.project_gate_up(states).chunk(2, dim=1)
                update = layer.project_down(silu(gate) * up)
            ends = torch.from_numpy(tree.prompt_ends).to(device)
            _, states = self._add_and_norm(hidden[ends], update[ends], self._norm)
            return torch.log_softmax(linear(states, self._head).float(), dim=-1)[:, list(tokens)]

    def _add_and_norm(self, hidden: Any, update: Any, weight: Any) -> tuple[Any, Any]:
        """Return the sum of hidden states, and its norm."""
        import torch

        total = hidden.float() + update.float()
        normed = total * torch.rsqrt(total.pow(2).mean(dim=-1, keepdim=True) + self.config.norm_epsilon)
        return total.to(self._dtype), normed.to(self._dtype) * weight


def load_layer(weights: dict[str, Any], name: str) -> Layer:
    """Take the weights of a layer out of a model's weights.

    Args:
        weights: Name -> tensor.
        name: Prefix of the layer's names.
    """
    import torch

    def join(*modules: str) -> Product:
        parts = [weights.pop(f"{name}.{module}.weight") for module in modules]
        biases = [weights.pop(f"{name}.{module}.bias", None) for module in modules]
        bias = None if biases[0] is None else torch.cat(biases)
        weight = parts[0] if len(parts) == 1 else torch.cat(parts)
        return partial(torch.nn.functional.linear, weight=weight, bias=bias)

    return Layer(
        project_attention=join("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
        project_output=join("self_attn.o_proj"),
        project_gate_up=join("mlp.gate_proj", "mlp.up_proj"),
        project_down=join("mlp.down_proj"),
        attention_norm=weights.pop(f"{name}.input_layernorm.weight"),
        feed_forward_norm=weights.pop(f"{name}.post_attention_layernorm.weight"),
    )


def attend(query: Any, key: Any, value: Any, blocks: Sequence[AttentionBlock]) -> Any:
    """Compute the attention of a token tree, block by block, with PyTorch's fused kernel.

    Args:
        query: (heads, tokens, size).
        key: (groups, tokens, size).
        value: Like key.
        blocks: Blocks of the tree.

    Returns:
        (heads, tokens, size).
    """
    import torch

    heads, groups = len(query), len(key)
    outputs = []
    for block in blocks:
        rows = block.stop - block.start
        # The query heads of a group become further queries of its key head: the kernel reads its keys once.
        queries = query[:, block.start : block.stop].reshape(1, groups, heads // groups * rows, -1)
        keys, values = (states.index_select(1, block.keys)[None] for states in (key, value))
        mask = block.mask.to(query.dtype).repeat(heads // groups, 1)
        attended = torch.nn.functional.scaled_dot_product_attention(queries, keys, values, attn_mask=mask)
        outputs.append(attended.view(heads, rows, -1))
    return torch.cat(outputs, dim=1)


def _rotate(states: Any, cosines: Any, sines: Any) -> Any:
    """Rotate the heads of each token by its position."""
    import torch

    first, second = states.chunk(2, dim=-1)
    return torch.cat([first * cosines - second * sines, second * cosines + first * sines], dim=-1)
