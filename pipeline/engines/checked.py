"""Check a model once: to load its tokenizer takes longer than the rest of what a run does before it starts."""

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ragassay.pipeline.engines.model import Model
from ragassay.pipeline.engines.prepare import weights_identity
from ragassay.pipeline.engines.weights import home, locate


def check_once(model: Model, check: Callable[[], None]) -> None:
    """Check a model, unless this machine did so with the same settings, files and packages. One of a hub is checked each time.

    Args:
        model: The model, with all that the job file says of it.
        check: Raises where something is wrong; it is remembered only that nothing is.
    """
    if isinstance(locate(model.model), str):
        check()
    else:
        once_a_machine([model.model_dump(mode="json"), weights_identity(model)], check)


def once_a_machine(what: Sequence[Any], check: Callable[[], None]) -> None:
    """Check something, unless this machine did so with the same packages.

    Args:
        what: Tells it from all else; fit for JSON.
        check: Raises where something is wrong; it is remembered only that nothing is.
    """
    done = _mark(what)
    with suppress(OSError):
        if done.exists():
            return
    check()
    with suppress(OSError):  # where nothing can be kept, it is checked again
        done.parent.mkdir(parents=True, exist_ok=True)
        part = done.with_name(f"{done.name}.{os.getpid()}")
        part.touch()
        part.replace(done)


def _mark(what: Sequence[Any]) -> Path:
    packages = {name: version(name) for name in ("ragassay", "transformers", "tokenizers", "jinja2")}
    parts = json.dumps([*what, packages], sort_keys=True)
    return home() / "checked" / hashlib.sha256(parts.encode()).hexdigest()
