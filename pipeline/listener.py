"""Report progress within a batch to the listener of this process, if there is one."""

from contextlib import suppress
from typing import Protocol


class Listener(Protocol):
    """Receiver of progress reports, called on the working thread, so it must be quick. Warm-up calls of a model are reported
    too."""

    def on_loaded(self) -> None:
        """Handle that the model is loaded and its warm-up begins."""
        ...

    def on_answered(self, prompts: int, tokens: int) -> None:
        """Handle that a number of further prompts have answers.

        Args:
            prompts: Number of prompts.
            tokens: Tokens computed for them.
        """
        ...

    def on_call(self, computed: int, reused: int, seconds: float, idle_seconds: float) -> None:
        """Handle the end of a local engine's call.

        Args:
            computed: Tokens computed.
            reused: Tokens reused.
            seconds: Duration of the call.
            idle_seconds: Idle time of the engine before the call.
        """
        ...


_listener: list[Listener] = []


def set_listener(listener: Listener) -> None:
    """Replace the listener of this process. One is enough: a process with a model works for one stage."""
    _listener[:] = [listener]


def report_loaded() -> None:
    """See `Listener.on_loaded`."""
    _notify("on_loaded")


def report_answered(prompts: int, tokens: int) -> None:
    """See `Listener.on_answered`."""
    _notify("on_answered", prompts, tokens)


def report_call(computed: int, reused: int, seconds: float, idle_seconds: float) -> None:
    """See `Listener.on_call`."""
    _notify("on_call", computed, reused, seconds, idle_seconds)


def _notify(method: str, *values: float) -> None:
    for listener in _listener:
        with suppress(Exception):  # a listener's fault must not affect a score
            getattr(listener, method)(*values)
