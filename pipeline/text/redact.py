"""`redact`: a function of the user's own that texts go through as they are read, before anything sees or writes them."""

import importlib
import inspect
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pyarrow as pa

from ragassay.pipeline import errors
from ragassay.pipeline.contain import contain, describe_fault
from ragassay.pipeline.errors import ConfigError
from ragassay.schemas.columns import Status

_PROBES = ["Write to ann@example.org, or call +1 555 0100.", "Nothing to hide."]
_TEXTS, _LISTS = ("question", "response"), ("context", "passage_ids")


@dataclass(frozen=True)
class Redaction:
    """Where the function is.

    Attributes:
        name: `module:function`.
        folder: Working folder of the command, where modules are looked for first.
    """

    name: str
    folder: str

    @property
    def texts(self) -> Callable[[Sequence[str]], list[str]]:
        """The function, of many texts.

        Raises:
            ConfigError: It can't be imported, or gives no strings.
        """
        return _loaded(self.name, self.folder)


def redaction_of(name: str | None) -> Redaction | None:
    """The redaction that a job names; None where it names none."""
    return None if name is None else Redaction(name, str(Path.cwd()))


def identity(name: str) -> dict[str, str]:
    """What tells one redaction from another: its name, and a digest of its module's source.

    Raises:
        ConfigError: It can't be imported, or gives no strings.
    """
    Redaction(name, str(Path.cwd())).texts  # noqa: B018  (checked before its source is read)
    source = inspect.getsourcefile(sys.modules[name.partition(":")[0]])
    return {"name": name, "source": blake2b(Path(source).read_bytes() if source else b"", digest_size=16).hexdigest()}


def redacted(table: pa.Table, redaction: Redaction | None) -> pa.Table:
    """Log rows whose question, passages, ids of passages and response went through the function.

    A row for which it raises, or gives no string, has none of them, and the status `error` unless it had one already.

    Args:
        table: Rows of the schema `logs`.
        redaction: The function; None leaves the rows as they are.
    """
    if redaction is None:
        return table
    function = redaction.texts
    return pa.concat_tables(
        contain(
            table.num_rows,
            lambda some: _redacted(table[some], function),
            lambda i, error: _without_texts(table.slice(i, 1), f"redact: {describe_fault(error)}"),
        )
    )


def _redacted(table: pa.Table, function: Callable[[Sequence[str]], list[str]]) -> pa.Table:
    columns: dict[str, list[Any]] = {name: table[name].to_pylist() for name in (*_TEXTS, *_LISTS)}
    texts = dict.fromkeys(text for name in _TEXTS for text in columns[name])
    texts |= dict.fromkeys(text for name in _LISTS for texts_of_row in columns[name] for text in texts_of_row or [])
    texts.pop(None, None)
    new: dict[str | None, str | None] = {None: None}
    if texts:  # a function of a list may not expect an empty one
        new |= dict(zip(texts, function(list(texts)), strict=True))
    for name in _TEXTS:
        table = _set(table, name, [new[text] for text in columns[name]])
    for name in _LISTS:
        table = _set(table, name, [None if found is None else [new[text] for text in found] for found in columns[name]])
    return table


def _without_texts(row: pa.Table, error: str) -> pa.Table:
    fault = {"status": Status.ERROR.value, "error": error} if row["status"][0].as_py() == Status.OK.value else {}
    for name, value in {**dict.fromkeys((*_TEXTS, *_LISTS)), **fault}.items():
        row = _set(row, name, [value])
    return row


def _set(table: pa.Table, name: str, values: Sequence[Any]) -> pa.Table:
    place = table.schema.get_field_index(name)
    field = table.schema.field(place)
    return table.set_column(place, field, pa.array(values, field.type))


@lru_cache(maxsize=4)
def _loaded(name: str, folder: str) -> Callable[[Sequence[str]], list[str]]:
    module_name, _, attribute = name.partition(":")
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        module = importlib.import_module(module_name)
    except Exception as error:
        raise ConfigError(
            errors.REDACT_NOT_IMPORTED, module=module_name, folder=folder, type=type(error).__name__, reason=error
        ) from error
    function = getattr(module, attribute, None)
    if not callable(function):
        raise ConfigError(errors.REDACT_NO_FUNCTION, module=module_name, function=attribute)
    for of_many in (_one_by_one(function), _all_at_once(function)):
        try:
            of_many(_PROBES)
        except Exception as error:
            fault = f"{type(error).__name__}: {error}"
            continue
        return of_many
    raise ConfigError(errors.REDACT_RETURNS, function=name, text=_PROBES[0], fault=fault)


def _one_by_one(function: Callable[[str], Any]) -> Callable[[Sequence[str]], list[str]]:
    def texts(given: Sequence[str]) -> list[str]:
        return _strings([_called(function, text) for text in given])

    return texts


def _all_at_once(function: Callable[[list[str]], Any]) -> Callable[[Sequence[str]], list[str]]:
    def texts(given: Sequence[str]) -> list[str]:
        found = _called(function, list(given))
        if not isinstance(found, list | tuple) or len(found) != len(given):
            raise TypeError("it did not return a list as long")
        return _strings(found)

    return texts


def _called(function: Callable[[Any], Any], given: Any) -> Any:
    """What the function says; a fault of files or imports in it is no fault of the run."""
    try:
        return function(given)
    except (OSError, ImportError) as error:
        raise RuntimeError(type(error).__name__) from error


def _strings(found: Sequence[Any]) -> list[str]:
    if not all(isinstance(text, str) for text in found):
        raise TypeError("it did not return strings")
    return list(found)
