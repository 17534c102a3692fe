"""Every error that RAGAssay raises on purpose.

RagassayError              exit code 1; its text names the thing and the way out, so no traceback is shown
├── ConfigError            the job file, or a value in it, is wrong
├── InputError             the logs can't be read as they stand: columns, types, files, ids
├── OutputError            the output folder is in use, foreign, or made under another fingerprint
│   ├── OutputInUse        another command writes into it
│   └── OutputRewritten    a partition was replaced while it was read, or waits for a run that broke off
├── ModelError             a model can't be found, loaded, or has no single-token yes or no
├── StageError             a stage of a plan reads or writes a column that does not fit the others
├── FitError               mu and sigma can't be fitted (no scores, or sigma = 0)
├── PublishError           verdicts can't be sent to a tool, or it would not take some
├── RowsError              this program failed on more rows than the job allows; all is written, and says which
└── BalanceError           rows in are not rows out: never expected, always fatal

Each error has a `Message`: a stable code, and a text with named fields. The messages of a folder stand in its `errors.py`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Number
from typing import Any

from ragassay.pipeline.address import without_secrets


@dataclass(frozen=True)
class Message:
    """What an error says.

    Attributes:
        code: Stable code `AREA.NAME`, such as `input.missing-column`; programs and tests may rely on it.
        text: Format string with the fields of the error; it may change at any time.
    """

    code: str
    text: str


class RagassayError(Exception):
    """Root of the tree.

    Whatever it quotes, of a URI it holds the scheme, host and path alone: in its text, its fields, and when it is pickled.

    Attributes:
        message: The message.
        fields: Name of each field -> value, without secrets: a string, a number, a boolean, None, or a list or dict of these.
    """

    def __init__(self, message: Message, /, **fields: Any) -> None:
        """Fill a message.

        Args:
            message: The message.
            fields: A value for each field that the text of the message names, and what else a caller may want to know.
        """
        self.message = message
        self.fields: dict[str, Any] = {name: _clean(value) for name, value in fields.items()}
        super().__init__(without_secrets(message.text.format(**self.fields)))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the message and its fields."""
        return _remake, (type(self), self.message, self.fields)

    @property
    def code(self) -> str:
        """Stable code of what is wrong, such as `input.missing-column`."""
        return self.message.code


def _remake(kind: type[RagassayError], message: Message, fields: dict[str, Any]) -> RagassayError:
    return kind(message, **fields)


def _clean(value: Any) -> Any:
    """A value without secrets, that can be pickled."""
    if isinstance(value, str):
        return without_secrets(value)
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, Number):  # of numpy
        return value.item() if hasattr(value, "item") else str(value)
    if isinstance(value, Mapping):
        return {str(key): _clean(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_clean(item) for item in value]
    return without_secrets(str(value))


class ConfigError(RagassayError):
    """The job file, or a value in it, is wrong."""


class InputError(RagassayError):
    """The logs can't be read as they stand."""


class OutputError(RagassayError):
    """The output folder can't be used as it stands."""


class OutputInUse(OutputError):
    """Another command writes into the output folder; the field `holder` says who, in words."""


class OutputRewritten(OutputError):
    """A partition of the output folder was replaced while it was read, or waits for a run that broke off.

    Its fields are `output` and `partition`, the Hive path, empty in an output without partitions.
    """


class ModelError(RagassayError):
    """A model can't be found or used."""


class StageError(RagassayError):
    """A stage of a plan reads or writes a column that does not fit the others."""


class FitError(RagassayError):
    """Mean and deviation can't be fitted."""


class PublishError(RagassayError):
    """Verdicts can't be sent to a tool, or it would not take some."""


class RowsError(RagassayError):
    """This program failed on more rows than the job allows."""


class BalanceError(RagassayError):
    """Rows in are not rows out."""


MEMBER_KIND = Message(
    "output.member-kind",
    "member {member!r} is {kind} in these scores, and {wanted} in the job file: name it as what it is",
)
NO_MEMBER = Message("output.no-member", "the scored rows have no member {member!r}; they have {members}")
REDACT_RETURNS = Message(
    "config.redact-returns",
    "input.redact: {function} must take a string and return a string, or take a list of strings and return one as long; tried "
    "on {text!r} it did neither ({fault})",
)
REDACT_NO_FUNCTION = Message("config.redact-no-function", "input.redact: module {module!r} has no function {function!r}")
REDACT_NOT_IMPORTED = Message(
    "config.redact-not-imported",
    "input.redact: module {module!r} can't be imported, neither from {folder} nor from what is installed: {type}: {reason}",
)
UNKNOWN_LANGUAGE = Message(
    "config.unknown-language",
    "splitting.language: spaCy has no language {language!r}: give a code such as en, or xx for many languages",
)
SPLITTER_NOT_INSTALLED = Message(
    "config.splitter-not-installed",
    "splitting.pipeline: spaCy pipeline {pipeline!r} is not installed: install it, or use 'sentencizer'",
)
SPLITTER_LACKS_PACKAGE = Message(
    "config.splitter-lacks-package",
    "splitting.pipeline: spaCy pipeline {pipeline!r} wants a package that is not there: {reason}",
)
