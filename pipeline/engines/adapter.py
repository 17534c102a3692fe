"""LoRA adapters as folders: peft's own files, and `slm.json` with the SLM settings of the training.

`slm.json` also has `base`, the identity of the model that the adapter was trained on, or a list of identities of the same
model in several forms, and optionally `model`, the model of an SLM that names only the adapter. The folder
pipeline/verifiers contains the bundled adapters, by name.
"""

import json
from pathlib import Path
from typing import Any

from ragassay.pipeline.engines import errors
from ragassay.pipeline.errors import ModelError

BUNDLED_FOLDER = Path(__file__).parents[1] / "verifiers"
WEIGHTS_FILE = "adapter_model.safetensors"
CONFIG_FILE = "adapter_config.json"
SETTINGS_FILE = "slm.json"


def find_adapter(adapter: str) -> Path:
    """Return the folder of an adapter.

    Args:
        adapter: Name of a bundled adapter, or a folder.

    Raises:
        ModelError: There is no such adapter.
    """
    names = (
        sorted(path.name for path in BUNDLED_FOLDER.iterdir() if (path / WEIGHTS_FILE).exists())
        if BUNDLED_FOLDER.exists()
        else []
    )
    folder = BUNDLED_FOLDER / adapter if adapter in names else Path(adapter).expanduser()
    if not (folder / WEIGHTS_FILE).exists():
        raise ModelError(errors.UNKNOWN_ADAPTER, adapter=adapter, file=WEIGHTS_FILE, known=", ".join(names))
    return folder


def read_adapter_settings(adapter: str) -> dict[str, Any]:
    """Read the SLM settings that an adapter was trained with, `base` and `model`; empty without a settings file.

    Raises:
        ModelError: There is no such adapter, or its settings can't be read.
    """
    path = find_adapter(adapter) / SETTINGS_FILE
    if not path.exists():
        return {}
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise ModelError(errors.UNREADABLE_ADAPTER, adapter=adapter, file=SETTINGS_FILE, reason=error) from error
