"""What a process prints and logs besides results: tracebacks, warnings and log records, without the secrets of URIs.

Errors of ours are clean by themselves (`pipeline.errors`). Here are the choke points for what libraries raise, log and warn of.
"""

import logging
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import wraps
from types import TracebackType
from typing import Any, ParamSpec, TextIO, TypeVar

from ragassay.pipeline.address import without_secrets

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")
Item = TypeVar("Item")

RAY_DATA_FORMAT = "%(asctime)s\t%(levelname)s %(filename)s:%(lineno)s -- %(message)s"

_MARK = "_ragassay_clean"
"""Attribute of hooks that are ours, so that a second call changes nothing."""


class RayDataFormatter(logging.Formatter):
    """Formats records of Ray Data for its log file (`ray_data_logging.yaml`), in drivers and workers."""

    def __init__(self) -> None:
        """Use the one format; Ray passes no arguments."""
        super().__init__(RAY_DATA_FORMAT)

    def format(self, record: logging.LogRecord) -> str:
        """Format a record, its traceback included."""
        return without_secrets(super().format(record))


def clean_process_output() -> None:
    """Have this process show no secret of a URI in log records, warnings and tracebacks, whoever makes them.

    For processes that are ours: those of the command line, and Ray's workers. Calling it again changes nothing.
    """
    records = logging.getLogRecordFactory()
    if not hasattr(records, _MARK):
        logging.setLogRecordFactory(_marked(lambda *args, **more: clean_record(records(*args, **more))))
    shown = warnings.formatwarning
    if not hasattr(shown, _MARK):
        warnings.formatwarning = _marked(lambda *args, **more: without_secrets(shown(*args, **more)))
    if not hasattr(sys.excepthook, _MARK):
        sys.excepthook = _marked(lambda _, error, __: print_traceback(error))
    if not hasattr(threading.excepthook, _MARK):
        threading.excepthook = _marked(_print_thread_traceback)
    if not hasattr(sys.unraisablehook, _MARK):
        sys.unraisablehook = _marked(_print_unraisable)


def clean_record(record: logging.LogRecord) -> logging.LogRecord:
    """Clean the message and the traceback of a log record; one that names no URI stays as it is.

    Args:
        record: The record; it is changed.
    """
    try:
        message = record.getMessage()
        is_whole = True
    except Exception:  # its arguments do not fit its format, which logging would print with both
        message, is_whole = f"{record.msg} {record.args}", False
    shown = without_secrets(message)
    if shown != message or not is_whole:
        record.msg, record.args = shown, None
    if record.exc_info and record.exc_info[1] is not None:
        record.exc_text = traceback_text(record.exc_info[1]).rstrip("\n")  # formatters take what stands here
    if record.stack_info:
        record.stack_info = without_secrets(record.stack_info)
    return record


def traceback_text(error: BaseException) -> str:
    """The traceback of an error and of what it was raised from, as Python prints it; values of variables are never in it."""
    return without_secrets("".join(traceback.format_exception(error)))


def print_traceback(error: BaseException, file: TextIO | None = None) -> None:
    """Print the traceback of an error.

    Args:
        error: The error.
        file: Where to; stderr if none is given.
    """
    print(traceback_text(error), end="", file=file or sys.stderr, flush=True)


def clean_error(error: BaseException) -> None:
    """Clean the texts that an error of a library holds, and the errors behind it, before it goes to another process.

    What a class computes from other objects stays: where it is shown, it is cleaned again.

    Args:
        error: The error; it is changed.
    """
    seen: set[int] = set()
    left: list[BaseException | None] = [error]
    while left:
        found = left.pop()
        if found is None or id(found) in seen:
            continue
        seen.add(id(found))
        left += [found.__cause__, found.__context__]
        if isinstance(found, BaseExceptionGroup):
            left += found.exceptions
        with suppress(AttributeError, TypeError):  # a class may make it a property that can't be set
            found.args = tuple(map(_clean_value, found.args))
        # Those of OSError are no arguments any more.
        for name in ("filename", "filename2", "strerror", *vars(found)):
            # A property that can't be read or set; an array in a list, which gives no truth value where it is compared.
            with suppress(AttributeError, TypeError, ValueError):
                value = getattr(found, name, None)
                if _clean_value(value) != value:
                    setattr(found, name, _clean_value(value))


@contextmanager
def clean_errors() -> Iterator[None]:
    """Clean whatever error ends a block; its class and traceback stay."""
    try:
        yield
    except Exception as error:
        clean_error(error)
        raise


def clean_task(task: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """A function for Ray's workers: whatever it prints, logs or raises there is clean.

    Args:
        task: The function.
    """

    @wraps(task)
    def clean(*args: Parameters.args, **more: Parameters.kwargs) -> Result:
        clean_process_output()
        with clean_errors():
            return task(*args, **more)

    return clean


def clean_items(items: Iterable[Item]) -> Iterator[Item]:
    """The same for what a worker makes item by item.

    Args:
        items: Gives the items.
    """
    clean_process_output()
    with clean_errors():
        yield from items


def _clean_value(value: Any) -> Any:
    if isinstance(value, str):
        return without_secrets(value)
    if type(value) in (list, tuple):  # others may hold more than their items
        return type(value)(map(_clean_value, value))
    if type(value) is dict:
        return {_clean_value(key): _clean_value(found) for key, found in value.items()}
    return value


def _marked(hook: Callable[..., Any]) -> Callable[..., Any]:
    setattr(hook, _MARK, True)
    return hook


def _print_thread_traceback(found: threading.ExceptHookArgs) -> None:
    if found.exc_value is not None and not isinstance(found.exc_value, SystemExit):
        name = found.thread.name if found.thread is not None else "unknown"
        print(f"Exception in thread {name}:", file=sys.stderr)
        print_traceback(_traced(found.exc_value, found.exc_traceback))


def _print_unraisable(found: Any) -> None:
    """What Python can't raise, as in `__del__` and at its end; the object's repr is left out, whose text nobody knows."""
    print(f"{found.err_msg or 'Exception ignored'} in: {type(found.object).__name__}", file=sys.stderr)
    if found.exc_value is not None:
        print_traceback(_traced(found.exc_value, found.exc_traceback))


def _traced(error: BaseException, trace: TracebackType | None) -> BaseException:
    return error.with_traceback(trace)
