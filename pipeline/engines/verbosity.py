"""How much the libraries of engines report."""

import os

VERBOSE = "RAGASSAY_VERBOSE"
"""Environment variable of `--verbose`; workers inherit it."""


def is_verbose() -> bool:
    """Return whether messages of libraries are shown."""
    return os.environ.get(VERBOSE, "").lower() in ("1", "true", "yes", "on")


def limit_library_messages() -> None:
    """Set how much libraries report, before they are imported: faults, or everything with `--verbose`. stdout stays free.

    Set variables are kept.
    """
    os.environ.setdefault("VLLM_LOGGING_STREAM", "ext://sys.stderr")
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "INFO" if is_verbose() else "WARNING")
    if not is_verbose():
        os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
        os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
