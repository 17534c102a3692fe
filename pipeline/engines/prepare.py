"""Merge an SLM's adapter into its weights, once, so that every engine serves plain weights and both give the same P(yes)."""

import hashlib
import json
from pathlib import Path
from typing import Any

from ragassay.pipeline.engines import errors
from ragassay.pipeline.engines.adapter import CONFIG, WEIGHTS, locate_adapter, trained_with
from ragassay.pipeline.engines.model import Model
from ragassay.pipeline.engines.weights import MAX_WINDOW, digest, identity, made_once, prepare
from ragassay.pipeline.errors import ModelError


def prepare_slm(slm: Model) -> str:
    """Make an SLM ready for an engine: its model, with its adapter merged in if it has one.

    Returns:
        A Hugging Face folder, or a hub id.

    Raises:
        ModelError: Model or adapter is unknown, can't be read, or the one does not belong to the other.
    """
    model = prepare(slm.model)
    if slm.adapter is None:
        return model
    adapter = own_adapter(slm)
    name = f"{Path(model).name}-{adapter.name}-{_merged_key(slm)}"
    try:
        return str(made_once(name, lambda folder: _merge(slm, model, adapter, folder)))
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
    """Short hash of what goes into merged weights: folders of one name may hold different models."""
    parts = json.dumps([weights_identity(slm), slm.revision], sort_keys=True)
    return hashlib.sha256(parts.encode()).hexdigest()[:12]


def own_adapter(slm: Model) -> Path:
    """Folder of an SLM's adapter.

    Raises:
        ModelError: There is none, or it belongs to another model.
    """
    folder = locate_adapter(slm.adapter or "")
    base = trained_with(str(folder)).get("base")
    if base is not None and base != (found := identity(slm.model)):
        raise ModelError(
            errors.ADAPTER_OF_OTHER_MODEL, member=slm.name, adapter=slm.adapter, model=slm.model, base=base, found=found
        )
    return folder


def load_tokenizer(slm: Model) -> Any:
    """Load an SLM's Hugging Face tokenizer.

    Raises:
        ModelError: Its model is unknown or can't be loaded.
    """
    from transformers import AutoTokenizer

    model = prepare(slm.model)
    try:
        return AutoTokenizer.from_pretrained(model, revision=slm.revision, trust_remote_code=slm.trust_remote_code)
    except Exception as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ModelError(errors.NOT_LOADED, member=slm.name, model=slm.model, reason=reason) from error


def window_of(slm: Model, max_model_len: int | None) -> int:
    """Tokens that an SLM's engine has room for: as its settings say, else as its model's config, at most `MAX_WINDOW`.

    Raises:
        ModelError: The model's config can't be read.
    """
    if max_model_len:
        return max_model_len
    from transformers import AutoConfig

    try:
        config = AutoConfig.from_pretrained(
            prepare(slm.model), revision=slm.revision, trust_remote_code=slm.trust_remote_code
        ).get_text_config()
    except Exception as error:
        raise ModelError(errors.UNREADABLE_CONFIG, member=slm.name, model=slm.model, reason=error) from error
    return min(int(config.max_position_embeddings), MAX_WINDOW)


def weights_identity(slm: Model) -> dict[str, Any]:
    """What tells an SLM's weights from others: those of its model, and of its adapter."""
    found: dict[str, Any] = dict(identity(slm.model))
    if slm.adapter is not None:
        folder = locate_adapter(slm.adapter)
        found["adapter"] = {name: digest(folder / name) for name in (WEIGHTS, CONFIG)}
    return found


def _merge(slm: Model, model: str, adapter: Path, folder: Path) -> None:
    """W + (alpha / r) B A, computed in float32 and kept in bfloat16."""
    import torch
    from peft import PeftModel
    from transformers import AutoModelForCausalLM, AutoTokenizer

    options = {"revision": slm.revision, "trust_remote_code": slm.trust_remote_code}
    base = AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32, use_safetensors=True, **options)
    merged = PeftModel.from_pretrained(base, str(adapter)).merge_and_unload()
    merged.to(torch.bfloat16).save_pretrained(folder)
    AutoTokenizer.from_pretrained(model, **options).save_pretrained(folder)
