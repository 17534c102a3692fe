"""Run commands without Ray, whatever their size and their models: as a small input runs (`jobs.runtime.tasks`).

Ray takes seconds to start each worker. Tests with the fixture `shared_ray_session` cover Ray itself.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

from ragassay.jobs.runtime.tasks import local_session

USERS = ("run.commands", "second_pass.explain.command")
"""Modules that open a session."""


@contextmanager
def _open_local_session(*_: Any, **__: Any) -> Iterator[None]:
    with local_session():
        yield


@contextmanager
def without_ray() -> Iterator[None]:
    """Let commands in this process run without Ray while the block runs."""
    with ExitStack() as stack:
        for module in USERS:
            stack.enter_context(patch(f"ragassay.jobs.{module}.open_session", _open_local_session))
        yield
