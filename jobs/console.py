"""How every command ends: with its output, or with one message."""

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console

from pipeline.errors import RagassayError

DRIFT_EXIT = 3
"""Exit code of --fail-on-drift: 1 is an error, 2 a wrong command line."""

PLAIN_WIDTH = 200
"""Columns where the output is no terminal: tables go to files and schedulers' logs unfolded."""


@contextmanager
def our_errors() -> Iterator[Console]:
    """Our own errors end in one message and exit code 1; anything else is a fault of the program, and shows its traceback."""
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
    logging.basicConfig(level=logging.WARNING)
    try:
        plain = None if sys.stdout.isatty() or "COLUMNS" in os.environ else PLAIN_WIDTH
        yield Console(soft_wrap=True, width=plain)
    except RagassayError as error:
        Console(stderr=True, soft_wrap=True, markup=False, highlight=False).print(f"error: {error}")
        sys.exit(1)
    except KeyboardInterrupt:
        Console(stderr=True).print("stopped; the same command goes on where it stopped")
        sys.exit(130)
