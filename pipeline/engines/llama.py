"""Llama models in plain PyTorch over token trees, without transformers, whose import takes longer than to judge an answer.

The operations round where vLLM rounds: the norm of a layer reads the sum of hidden states in float32.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragassay.pipeline.token_tree.attention import split_into_blocks, tree_attention
from ragassay.pipeline.token_tree.tree import TokenTree

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


class Llama:
    """A loaded model.

    Attributes:
        config: Its sizes.
    """

    def __init__(self, folder: Path, config: LlamaConfig, dtype: str) -> None:
        """Map the weights into memory, or load them to the GPU if there is one.

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
        self._weights: Mapping[str, Any] = {name: tensor.to(self._device, self._dtype) for name, tensor in weights.items()}
        self._head = self._weights.get("lm_head.weight", self._weights["embed_tokens.weight"])
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

        def project(name: str, states: Any) -> Any:
            return linear(states, self._weights[f"{name}.weight"], self._weights.get(f"{name}.bias"))

        def split_heads(states: Any, heads: int) -> Any:
            return states.view(len(states), heads, config.head_size)

        with torch.inference_mode():
            hidden = self._weights["embed_tokens.weight"][torch.from_numpy(tree.tokens).to(device)]
            update = torch.zeros_like(hidden)
            for layer in range(config.layers):
                name = f"layers.{layer}"
                hidden, states = self._add_and_norm(hidden, update, f"{name}.input_layernorm")
                query, key = (
                    _rotate(split_heads(project(f"{name}.self_attn.{part}_proj", states), heads), cosines, sines)
                    for part, heads in (("q", config.heads), ("k", config.groups))
                )
                value = split_heads(project(f"{name}.self_attn.v_proj", states), config.groups)
                query, key, value = (part.transpose(0, 1)[None] for part in (query, key, value))
                attended, _ = tree_attention(self, query, key, value, None, config.head_size**-0.5, blocks=blocks)
                update = project(f"{name}.self_attn.o_proj", attended[0].reshape(len(hidden), -1))
                hidden, states = self._add_and_norm(hidden, update, f"{name}.post_attention_layernorm")
                gate, up = (project(f"{name}.mlp.{part}_proj", states) for part in ("gate", "up"))
                update = project(f"{name}.mlp.down_proj", silu(gate) * up)
            ends = torch.from_numpy(tree.prompt_ends).to(device)
            _, states = self._add_and_norm(hidden[ends], update[ends], "norm")
            return torch.log_softmax(linear(states, self._head).float(), dim=-1)[:, list(tokens)]

    def _add_and_norm(self, hidden: Any, update: Any, name: str) -> tuple[Any, Any]:
        """Return the sum of hidden states, and its norm."""
        import torch

        total = hidden.float() + update.float()
        normed = total * torch.rsqrt(total.pow(2).mean(dim=-1, keepdim=True) + self.config.norm_epsilon)
        return total.to(self._dtype), normed.to(self._dtype) * self._weights[f"{name}.weight"]


def _rotate(states: Any, cosines: Any, sines: Any) -> Any:
    """Rotate the heads of each token by its position."""
    import torch

    first, second = states.chunk(2, dim=-1)
    return torch.cat([first * cosines - second * sines, second * cosines + first * sines], dim=-1)
