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


_listener: list[Listener] = []
_watchers: list[Listener] = []


def listen(listener: Listener) -> None:
    """Tell this one from now on, and no other: a process that holds a model works for one stage."""
    _listener[:] = [listener]


def watch(watcher: Listener) -> None:
    """Tell this one as well from now on, and no other watcher: it wants to know whether anything is done at all."""
    _watchers[:] = [watcher]


def loaded() -> None:
    """See `Listener.loaded`."""
    for listener in (*_listener, *_watchers):
        with suppress(Exception):  # no score waits for it, or fails by it
            listener.loaded()


def answered(prompts: int, tokens: int) -> None:
    """See `Listener.answered`."""
    for listener in (*_listener, *_watchers):
        with suppress(Exception):
            listener.answered(prompts, tokens)
