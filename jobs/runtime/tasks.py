"""Run functions as tasks: in Ray's workers, or, for a small input, at once in this process (`local_session`)."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Generic, ParamSpec, Protocol, TypeVar

from ragassay.jobs.runtime.clean_output import clean_errors, clean_task

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
Result_co = TypeVar("Result_co", covariant=True)

_is_local: ContextVar[bool] = ContextVar("ragassay_is_local", default=False)


class Task(Protocol[Result_co]):
    """A task that was started."""

    def result(self) -> Result_co:
        """Wait for the result. It can be asked for in this process and in another task, and raises the task's error."""


@contextmanager
def local_session() -> Iterator[None]:
    """Run the tasks and plans that the block starts in this process, without Ray."""
    token = _is_local.set(True)
    try:
        yield
    finally:
        _is_local.reset(token)


def is_local() -> bool:
    """Return whether tasks run in this process."""
    return _is_local.get()


def make_task(function: Callable[..., Result], num_cpus: float) -> Callable[..., Task[Result]]:
    """Make a function that starts tasks.

    Args:
        function: What a task does.
        num_cpus: Logical CPUs of a task.

    Returns:
        Function that starts a task with arguments for `function`; an argument may be a task, whose result is passed on.
    """
    if is_local():
        return lambda *arguments: _Done(clean_errors()(function)(*map(_resolve, arguments)))
    import ray

    remote = ray.remote(num_cpus=num_cpus)(clean_task(function))
    return lambda *arguments: _RayTask(remote.remote(*map(_get_reference, arguments)))


def share(value: Result) -> Task[Result]:
    """Make a value available to tasks without a copy for each."""
    if is_local():
        return _Done(value)
    import ray

    return _RayTask(ray.put(value))


@dataclass(frozen=True)
class _Done(Generic[Result]):
    value: Result

    def result(self) -> Result:
        return self.value


@dataclass(frozen=True)
class _RayTask(Generic[Result]):
    reference: Any

    def result(self) -> Result:
        import ray

        value: Result = ray.get(self.reference)
        return value


def _resolve(argument: Any) -> Any:
    return argument.value if isinstance(argument, _Done) else argument


def _get_reference(argument: Any) -> Any:
    return argument.reference if isinstance(argument, _RayTask) else argument
