"""Load a causal language model with transformers."""

from typing import Any

from ragassay.pipeline.engines import errors
from ragassay.pipeline.engines.dtype import Dtype, resolve_dtype
from ragassay.pipeline.engines.model import Model
from ragassay.pipeline.errors import ModelError


def load_causal_lm(model: Model, folder: str, dtype: Dtype, gpus: float, attention: str | None = None) -> Any:
    """Load a model, on the GPU if there is one.

    Args:
        model: The model, for its revision and for messages.
        folder: Folder of its weights in Hugging Face format, or a hub id.
        dtype: Type of weights and activations.
        gpus: GPUs of a replica.
        attention: Name of the attention function; None uses the default of transformers.

    Raises:
        ModelError: The model can't be loaded.
    """
    import torch
    from transformers import AutoModelForCausalLM

    try:
        loaded = AutoModelForCausalLM.from_pretrained(
            folder,
            dtype=getattr(torch, resolve_dtype(dtype, gpus or torch.cuda.is_available())),
            attn_implementation=attention,
            revision=model.revision,
            trust_remote_code=model.trust_remote_code,
            use_safetensors=True,  # a pickle can run code
        ).eval()
    except Exception as error:
        fields = {"member": model.name, "engine": "transformers", "model": model.model, "reason": error}
        raise ModelError(errors.ENGINE_CANNOT_LOAD, **fields) from error
    return loaded.cuda() if torch.cuda.is_available() else loaded
