"""Parse and apply `--partitions "dt>=2026-11-01"`, which selects partitions by their hive keys."""

import operator
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from ragassay.jobs.output import errors
from ragassay.jobs.output.partitions import natural_key
from ragassay.pipeline.errors import ConfigError, InputError

_TEXT = r"\"[^\"]*\"|'[^']*'"
_CONDITION = re.compile(rf"\s*({_TEXT}|[^\s=!<>'\"]+)\s*(<=|>=|!=|==|=|<|>)\s*({_TEXT}|[^\s=!<>'\"]+)\s*")
_AND = re.compile(r"and(?=\s)", re.IGNORECASE)
_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?")
_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


_SHOWN_AT_EACH_END = 3
"""Number of partitions that a message shows from each end of a long list."""


@dataclass(frozen=True)
class Condition:
    """A comparison with the value of a hive key."""

    key: str
    operator: str
    value: str

    def is_met_by(self, value: str) -> bool:
        """Return whether a value meets the condition.

        Numbers and dates are compared as such, other values in natural text order.
        """
        return _OPERATORS[self.operator](*_to_comparable(value, self.value))


def parse_conditions(expressions: Sequence[str]) -> tuple[Condition, ...]:
    """Parse expressions into conditions, all of which must be met.

    Args:
        expressions: Expressions such as `dt>=2026-11-01 and tenant!=test`; values with white space are in quotes.

    Raises:
        ConfigError: An expression can't be parsed.
    """
    conditions: list[Condition] = []
    for text in expressions:
        position = 0
        while True:
            match = _CONDITION.match(text, position)
            if match is None:
                raise ConfigError(errors.FILTER_SYNTAX, filter=text, rest=text[position:].strip())
            key, sign, value = match.groups()
            conditions.append(Condition(_unquote(key), sign, _unquote(value)))
            position = match.end()
            if position == len(text):
                break
            conjunction = _AND.match(text, position)
            if conjunction is None:
                raise ConfigError(errors.FILTER_WITHOUT_AND, filter=text, rest=text[position:])
            position = conjunction.end()
    return tuple(conditions)


def matches(conditions: Sequence[Condition], values: Mapping[str, str]) -> bool:
    """Return whether the hive keys of a partition meet all conditions. A partition without one of the keys does not."""
    return all(condition.key in values and condition.is_met_by(values[condition.key]) for condition in conditions)


def check_keys(conditions: Sequence[Condition], keys: Sequence[str], uri: str) -> None:
    """Check that an input is partitioned by the keys of the conditions.

    Raises:
        InputError: A key is missing; the error lists the keys of the input.
    """
    missing = sorted({condition.key for condition in conditions} - set(keys))
    if missing:
        partitioned_by = f"its hive keys are {', '.join(keys)}" if keys else "it has no hive folders (such as dt=2026-11-20/)"
        raise InputError(errors.NO_SUCH_KEY, input=uri, keys=", ".join(map(repr, missing)), partitioned_by=partitioned_by)


def describe_no_match(conditions: Sequence[Condition], partitions: Collection[str]) -> str:
    """Explain that no partition meets the conditions, with examples of partitions.

    Args:
        conditions: The conditions.
        partitions: Hive paths, such as `dt=2026-11-20`; at least one.
    """
    expression = " and ".join(f"{condition.key}{condition.operator}{condition.value}" for condition in conditions)
    names = sorted(partitions, key=natural_key)
    shown = names if len(names) <= 2 * _SHOWN_AT_EACH_END else [*names[:_SHOWN_AT_EACH_END], "…", *names[-_SHOWN_AT_EACH_END:]]
    return f"none of the {len(names):,} partitions meets --partitions {expression}; the partitions are {', '.join(shown)}"


def _unquote(text: str) -> str:
    return text[1:-1] if text[0] in "\"'" else text


def _to_comparable(a: str, b: str) -> tuple[Any, Any]:
    """Convert two values to numbers or dates if both are, otherwise to keys for natural sorting."""
    if _NUMBER.fullmatch(a) and _NUMBER.fullmatch(b):
        return Decimal(a), Decimal(b)
    dates = _parse_date(a), _parse_date(b)
    return (natural_key(a), natural_key(b)) if None in dates else dates


def _parse_date(text: str) -> datetime | None:
    try:
        date = datetime.fromisoformat(text)
    except ValueError:
        return None
    return date if date.tzinfo else date.replace(tzinfo=UTC)
