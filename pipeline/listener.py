"""Who is told how far the work on a batch is, while it is being done; nobody, unless the process was asked to `listen`."""

from contextlib import suppress
from typing import Protocol


class Listener(Protocol):
    """Told by whoever does the work, on the thread that does it; so it must be quick. A model's trials are told as well."""

    def loaded(self) -> None:
        """The model is loaded, and is being warmed up."""
        ...

    def answered(self, prompts: int, tokens: int) -> None:
        """So many more prompts have their answers, for which so many tokens were computed."""
        ...

    def called(self, computed: int, reused: int, seconds: float, idle_seconds: float) -> None:
        """A call of a local engine ended: tokens computed and reused, its seconds, and those that the engine had idled."""
        ...


_listener: list[Listener] = []


def listen(listener: Listener) -> None:
    """Tell this one from now on, and no other: a process that holds a model works for one stage."""
    _listener[:] = [listener]


def loaded() -> None:
    """See `Listener.loaded`."""
    _tell("loaded")


def answered(prompts: int, tokens: int) -> None:
    """See `Listener.answered`."""
    _tell("answered", prompts, tokens)


def called(computed: int, reused: int, seconds: float, idle_seconds: float) -> None:
    """See `Listener.called`."""
    _tell("called", computed, reused, seconds, idle_seconds)


def _tell(method: str, *values: float) -> None:
    for listener in _listener:
        with suppress(Exception):  # no score waits for it, or fails by it
            getattr(listener, method)(*values)
