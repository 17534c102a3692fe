"""Merge an SLM's adapter into its weights once, so that every engine serves the same plain weights and returns the same
P(yes)."""

import hashlib
import json
from pathlib import Path
from typing import Any

from ragassay.pipeline.engines import errors
from ragassay.pipeline.engines.adapter import CONFIG_FILE, WEIGHTS_FILE, find_adapter, read_adapter_settings
from ragassay.pipeline.engines.model import Model
from ragassay.pipeline.engines.weights import MAX_WINDOW, hash_file, identify_weights, make_once, prepare_weights
from ragassay.pipeline.errors import ModelError


def prepare_model(slm: Model) -> str:
    """Prepare a model for an engine, with its adapter merged if it has one.

    Returns:
        A Hugging Face folder, or a hub id.

    Raises:
        ModelError: Model or adapter is unknown, can't be read, or they do not belong together.
    """
    model = prepare_weights(slm.model)
    if slm.adapter is None:
        return model
    adapter = find_own_adapter(slm)
    name = f"{Path(model).name}-{adapter.name}-{_merged_key(slm)}"
    try:
        return str(make_once(name, lambda folder: _merge_adapter(slm, model, adapter, folder)))
    except Exception as error:
        raise ModelError(
            errors.ADAPTER_NOT_MERGED,
            member=slm.name,
            adapter=slm.adapter,
            model=slm.model,
            type=type(error).__name__,
            reason=error,
        ) from error


def _merged_key(slm: Model) -> str:
    """Return a short hash of everything in merged weights: folders of the same name may contain different models."""
    content = json.dumps([identify_model(slm), slm.revision], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()[:12]


def find_own_adapter(slm: Model) -> Path:
    """Return the folder of a model's adapter.

    Raises:
        ModelError: There is no such adapter, or it was trained on another model.
    """
    folder = find_adapter(slm.adapter or "")
    base = read_adapter_settings(str(folder)).get("base")
    if base is not None and base != (actual := identify_weights(slm.model)):
        raise ModelError(
            errors.ADAPTER_OF_OTHER_MODEL, member=slm.name, adapter=slm.adapter, model=slm.model, base=base, actual=actual
        )
    return folder


def load_tokenizer(slm: Model) -> Any:
    """Load a model's Hugging Face tokenizer.

    Raises:
        ModelError: The model is unknown or can't be loaded.
    """
    from transformers import AutoTokenizer

    model = prepare_weights(slm.model)
    try:
        return AutoTokenizer.from_pretrained(model, revision=slm.revision, trust_remote_code=slm.trust_remote_code)
    except Exception as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ModelError(errors.NOT_LOADED, member=slm.name, model=slm.model, reason=reason) from error


def resolve_window(slm: Model, max_model_len: int | None) -> int:
    """Return the context window of a model's engine in tokens: the setting, else the model's own, at most `MAX_WINDOW`.

    Raises:
        ModelError: The model's config can't be read.
    """
    if max_model_len:
        return max_model_len
    from transformers import AutoConfig

    try:
        config = AutoConfig.from_pretrained(
            prepare_weights(slm.model), revision=slm.revision, trust_remote_code=slm.trust_remote_code
        ).get_text_config()
    except Exception as error:
        raise ModelError(errors.UNREADABLE_CONFIG, member=slm.name, model=slm.model, reason=error) from error
    return min(int(config.max_position_embeddings), MAX_WINDOW)


def identify_model(slm: Model) -> dict[str, Any]:
    """Return what identifies a model's weights: its files, and its adapter's files."""
    files: dict[str, Any] = dict(identify_weights(slm.model))
    if slm.adapter is not None:
        folder = find_adapter(slm.adapter)
        files["adapter"] = {name: hash_file(folder / name) for name in (WEIGHTS_FILE, CONFIG_FILE)}
    return files


def _merge_adapter(slm: Model, model: str, adapter: Path, folder: Path) -> None:
    """Save W + (alpha / r) B A, computed in float32 and stored in bfloat16."""
    import torch
    from peft import PeftModel
    from transformers import AutoModelForCausalLM, AutoTokenizer

    options = {"revision": slm.revision, "trust_remote_code": slm.trust_remote_code}
    base = AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32, use_safetensors=True, **options)
    merged = PeftModel.from_pretrained(base, str(adapter)).merge_and_unload()
    merged.to(torch.bfloat16).save_pretrained(folder)
    AutoTokenizer.from_pretrained(model, **options).save_pretrained(folder)
