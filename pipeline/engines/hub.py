"""Check that a model hub answers, before a library waits for it. A model in the hub's cache needs no network."""

import os
import sys
import threading
import urllib.error
import urllib.request
from functools import cache
from pathlib import Path

from ragassay.pipeline.engines import errors
from ragassay.pipeline.errors import ModelError

HUB_SECONDS = 6.0
"""Maximum time to wait for an answer of the hub, including the search for its address."""

OFFLINE = "HF_HUB_OFFLINE"
"""Environment variable with which the libraries of the hub read only their cache."""


def check_hub(model: str) -> None:
    """Check that a hub model is in the cache of this machine, or that the hub answers.

    If the hub does not answer and the model is in the cache, this process and the workers that it starts go offline: otherwise
    every file waits for the hub.

    Args:
        model: Hub id, `owner/name`.

    Raises:
        ModelError: The model is not in the cache, and the hub does not answer or must not be asked.
    """
    if _is_offline():
        reason = f"{OFFLINE} is set"
    else:
        reason = _find_hub_fault(os.environ.get("HF_ENDPOINT") or "https://huggingface.co")
        if not reason:
            return
    if not is_cached(model):
        raise ModelError(errors.HUB_UNREACHABLE, model=model, reason=reason, cache=_cache_folder())
    _go_offline()


def is_cached(model: str) -> bool:
    """Return whether a version of a hub model is in the cache of this machine."""
    snapshots = _cache_folder() / f"models--{model.replace('/', '--')}" / "snapshots"
    return any(snapshots.glob("*/config.json"))


def _cache_folder() -> Path:
    home = os.environ.get("HF_HOME") or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "huggingface"
    return Path(os.environ.get("HF_HUB_CACHE") or os.environ.get("HUGGINGFACE_HUB_CACHE") or Path(home) / "hub").expanduser()


def _is_offline() -> bool:
    return any(os.environ.get(name, "").upper() in ("1", "ON", "YES", "TRUE") for name in (OFFLINE, "TRANSFORMERS_OFFLINE"))


def _go_offline() -> None:
    os.environ[OFFLINE] = "1"
    constants = sys.modules.get("huggingface_hub.constants")  # read at its import, which may be over
    if constants is not None:
        constants.HF_HUB_OFFLINE = True  # type: ignore[attr-defined]


@cache
def _find_hub_fault(endpoint: str) -> str:
    """Return why the hub does not answer; an empty text if it does. Asked once per process.

    The request runs in a thread: no timeout limits the search for an address.
    """
    fault = [f"{endpoint} gave no answer within {HUB_SECONDS:g} s"]
    thread = threading.Thread(target=lambda: fault.__setitem__(0, _request(endpoint)), daemon=True, name="hub")
    thread.start()
    thread.join(HUB_SECONDS)
    return fault[0]


def _request(endpoint: str) -> str:
    try:
        with urllib.request.urlopen(urllib.request.Request(endpoint, method="HEAD"), timeout=HUB_SECONDS):
            return ""
    except urllib.error.HTTPError as error:
        return f"{endpoint} answers with HTTP {error.code}" if error.code >= 500 else ""
    except (OSError, ValueError) as error:
        return f"{endpoint}: {getattr(error, 'reason', error)}"
