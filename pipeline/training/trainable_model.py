"""Add LoRA matrices to the upper layers of an SLM, and run it over token trees."""

import re
from collections.abc import Sequence
from typing import Any

from ragassay.pipeline.engines.causal_lm import load_causal_lm
from ragassay.pipeline.engines.prepare import find_checked_adapter
from ragassay.pipeline.engines.weights import prepare_weights
from ragassay.pipeline.errors import ModelError
from ragassay.pipeline.slm.config import Slm
from ragassay.pipeline.token_tree.attention import ATTENTION_NAME, register_attention, split_into_blocks
from ragassay.pipeline.token_tree.tree import TokenTree
from ragassay.pipeline.training import errors
from ragassay.pipeline.training.merged_lora import use_merged_forward


def add_lora(model: Any, *, rank: int, layers: int | None, seed: int) -> Any:
    """Add trainable LoRA matrices to every linear module of a model's upper layers, and freeze all other parameters.

    Args:
        model: A causal language model of transformers.
        rank: Rank of the matrices; their product is scaled by 2.
        layers: Number of upper layers that get matrices; None for all layers.
        seed: Seed of the initial values.

    Returns:
        The peft model; its trainable parameters are float32.

    Raises:
        ModelError: The model has no layers of linear modules that peft supports.
    """
    import torch
    from peft import LoraConfig, get_peft_model

    layers_of_modules = {
        name: int(match[1])
        for name, module in model.named_modules()
        if isinstance(module, torch.nn.Linear) and (match := re.search(r"\.layers\.(\d+)\.", name))
    }
    lowest_layer = max(layers_of_modules.values(), default=0) + 1 - layers if layers else 0
    torch.manual_seed(seed)
    config = LoraConfig(
        r=rank,
        lora_alpha=2 * rank,
        target_modules=[name for name, layer in layers_of_modules.items() if layer >= lowest_layer],
        task_type="CAUSAL_LM",
    )
    try:
        return get_peft_model(model, config)
    except ValueError as error:
        raise ModelError(errors.NO_LORA, model=model.config.name_or_path, reason=error) from error


def load_for_training(slm: Slm, *, rank: int, layers: int | None, seed: int) -> Any:
    """Load an SLM's model, on the GPU if there is one, with the adapter whose training continues or with new LoRA matrices.

    Args:
        slm: The SLM.
        rank: Rank of new matrices.
        layers: Number of upper layers that get new matrices; None for all layers.
        seed: Seed of the initial values of new matrices.

    Returns:
        The peft model; its trainable parameters are float32.

    Raises:
        ModelError: The model can't be loaded.
    """
    from peft import PeftModel

    register_attention()
    model = load_causal_lm(slm, prepare_weights(slm.model), slm.local_engine.dtype, slm.replicas.num_gpus, ATTENTION_NAME)
    if slm.adapter is not None:
        return use_merged_forward(PeftModel.from_pretrained(model, str(find_checked_adapter(slm)), is_trainable=True))
    return use_merged_forward(add_lora(model, rank=rank, layers=layers, seed=seed))


def compute_label_logprobs(model: Any, tree: TokenTree, yes: Sequence[int], no: Sequence[int]) -> Any:
    """Compute log P(yes) and log P(no) after each prompt of a tree.

    Args:
        model: A model from `load_for_training`.
        tree: The prompts.
        yes: Token ids that mean "supported".
        no: Token ids that mean "not supported".

    Returns:
        Tensor (prompts, 2), float32, with gradients if they are enabled.
    """
    import torch

    base = model.get_base_model() if hasattr(model, "get_base_model") else model
    device, dtype = base.device, base.dtype
    with torch.autocast(device.type, dtype, enabled=dtype != torch.float32):
        states = base.model(
            input_ids=torch.from_numpy(tree.tokens).to(device)[None],
            position_ids=torch.from_numpy(tree.positions).to(device)[None],
            use_cache=False,
            blocks=split_into_blocks(tree, device),
        ).last_hidden_state[0]
        logits = base.lm_head(states[torch.from_numpy(tree.prompt_ends).to(device)])
    logprobs = torch.log_softmax(logits.float(), dim=-1)
    return torch.stack([logprobs[:, list(yes)].logsumexp(-1), logprobs[:, list(no)].logsumexp(-1)], dim=1)
