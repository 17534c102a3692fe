"""Redact log texts with the user's function as they are read, before they are logged, scored or written."""

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

_SAMPLE_TEXTS = ["Write to ann@example.org, or call +1 555 0100.", "Nothing to hide."]
_TEXT_COLUMNS, _LIST_COLUMNS = ("question", "response"), ("context", "passage_ids")


@dataclass(frozen=True)
class Redaction:
    """Location of a redaction function.

    Attributes:
        name: `module:function`.
        folder: Working folder of the command. It is searched for the module first.
    """

    name: str
    folder: str

    @property
    def function(self) -> Callable[[Sequence[str]], list[str]]:
        """Function from a list of texts to the list of redacted texts.

        Raises:
            ConfigError: The function can't be imported, or does not return strings.
        """
        return _load_function(self.name, self.folder)


def make_redaction(name: str | None) -> Redaction | None:
    """Make the redaction that a job names, for the current working folder; None if it names none."""
    return None if name is None else Redaction(name, str(Path.cwd()))


def redaction_identity(name: str) -> dict[str, str]:
    """Return what identifies a redaction in the fingerprint: its name and a digest of its module's source.

    Raises:
        ConfigError: The function can't be imported, or does not return strings.
    """
    Redaction(name, str(Path.cwd())).function  # noqa: B018  (the import is checked before the source is read)
    source = inspect.getsourcefile(sys.modules[name.partition(":")[0]])
    return {"name": name, "source": blake2b(Path(source).read_bytes() if source else b"", digest_size=16).hexdigest()}


def redact_rows(table: pa.Table, redaction: Redaction | None) -> pa.Table:
    """Redact the question, passages, passage ids and response of log rows.

    If the function raises or returns no strings for a row, its texts become null and its status `error`. A row whose status
    was not `ok` keeps it.

    Args:
        table: Rows of the schema `logs`.
        redaction: The redaction; None returns the rows unchanged.
    """
    if redaction is None:
        return table
    function = redaction.function
    return pa.concat_tables(
        contain(
            table.num_rows,
            lambda rows: _redact_texts(table[rows], function),
            lambda i, error: _remove_texts(table.slice(i, 1), f"redact: {describe_fault(error)}"),
        )
    )


def _redact_texts(table: pa.Table, function: Callable[[Sequence[str]], list[str]]) -> pa.Table:
    columns: dict[str, list[Any]] = {name: table[name].to_pylist() for name in (*_TEXT_COLUMNS, *_LIST_COLUMNS)}
    texts = dict.fromkeys(text for name in _TEXT_COLUMNS for text in columns[name])
    texts |= dict.fromkeys(text for name in _LIST_COLUMNS for row_texts in columns[name] for text in row_texts or [])
    texts.pop(None, None)
    redacted_texts: dict[str | None, str | None] = {None: None}
    if texts:  # the user's function may not expect an empty list
        redacted_texts |= dict(zip(texts, function(list(texts)), strict=True))
    for name in _TEXT_COLUMNS:
        table = _set_column(table, name, [redacted_texts[text] for text in columns[name]])
    for name in _LIST_COLUMNS:
        values = [None if texts is None else [redacted_texts[text] for text in texts] for texts in columns[name]]
        table = _set_column(table, name, values)
    return table


def _remove_texts(row: pa.Table, error: str) -> pa.Table:
    failure = {"status": Status.ERROR.value, "error": error} if row["status"][0].as_py() == Status.OK.value else {}
    for name, value in {**dict.fromkeys((*_TEXT_COLUMNS, *_LIST_COLUMNS)), **failure}.items():
        row = _set_column(row, name, [value])
    return row


def _set_column(table: pa.Table, name: str, values: Sequence[Any]) -> pa.Table:
    index = table.schema.get_field_index(name)
    field = table.schema.field(index)
    return table.set_column(index, field, pa.array(values, field.type))


@lru_cache(maxsize=4)
def _load_function(name: str, folder: str) -> Callable[[Sequence[str]], list[str]]:
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
    for redact_texts in (_wrap_text_function(function), _wrap_list_function(function)):
        try:
            redact_texts(_SAMPLE_TEXTS)
        except Exception as error:
            fault = f"{type(error).__name__}: {error}"
            continue
        return redact_texts
    raise ConfigError(errors.REDACT_RETURNS, function=name, text=_SAMPLE_TEXTS[0], fault=fault)


def _wrap_text_function(function: Callable[[str], Any]) -> Callable[[Sequence[str]], list[str]]:
    def redact_texts(texts: Sequence[str]) -> list[str]:
        return _check_strings([_call(function, text) for text in texts])

    return redact_texts


def _wrap_list_function(function: Callable[[list[str]], Any]) -> Callable[[Sequence[str]], list[str]]:
    def redact_texts(texts: Sequence[str]) -> list[str]:
        result = _call(function, list(texts))
        if not isinstance(result, list | tuple) or len(result) != len(texts):
            raise TypeError("it did not return a list of the same length")
        return _check_strings(result)

    return redact_texts


def _call(function: Callable[[Any], Any], argument: Any) -> Any:
    """Call the user's function. A file or import error in it is a fault of the row, not of the run: raise RuntimeError."""
    try:
        return function(argument)
    except (OSError, ImportError) as error:
        raise RuntimeError(type(error).__name__) from error


def _check_strings(result: Sequence[Any]) -> list[str]:
    if not all(isinstance(text, str) for text in result):
        raise TypeError("it did not return strings")
    return list(result)
