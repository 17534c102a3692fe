"""LoRA adapters as folders: peft's own files, and `slm.json` with the SLM settings of the training.

The folder pipeline/verifiers contains the bundled adapters, by name.
"""

import json
from pathlib import Path
from typing import Any

from ragassay.pipeline.engines import errors
from ragassay.pipeline.errors import ModelError

BUNDLED = Path(__file__).parents[1] / "verifiers"
WEIGHTS = "adapter_model.safetensors"
CONFIG = "adapter_config.json"
SETTINGS = "slm.json"


def locate_adapter(adapter: str) -> Path:
    """Return the folder of an adapter.

    Args:
        adapter: Name of a bundled adapter, or a folder.

    Raises:
        ModelError: There is no such adapter.
    """
    names = sorted(path.name for path in BUNDLED.iterdir() if (path / WEIGHTS).exists()) if BUNDLED.exists() else []
    folder = BUNDLED / adapter if adapter in names else Path(adapter).expanduser()
    if not (folder / WEIGHTS).exists():
        raise ModelError(errors.UNKNOWN_ADAPTER, adapter=adapter, file=WEIGHTS, known=", ".join(names))
    return folder


def trained_with(adapter: str) -> dict[str, Any]:
    """Read the SLM settings that an adapter was trained with, and `base`, the identity of its model; empty without a settings
    file.

    Raises:
        ModelError: There is no such adapter, or its settings can't be read.
    """
    path = locate_adapter(adapter) / SETTINGS
    if not path.exists():
        return {}
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise ModelError(errors.UNREADABLE_ADAPTER, adapter=adapter, file=SETTINGS, reason=error) from error
