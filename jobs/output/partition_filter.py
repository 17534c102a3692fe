"""`--partitions "dt>=2026-11-01"`: which partitions of an input are meant, by their hive keys."""

import operator
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from ragassay.jobs.output import errors
from ragassay.jobs.output.partitions import natural
from ragassay.pipeline.errors import ConfigError, InputError

_TEXT = r"\"[^\"]*\"|'[^']*'"
_CONDITION = re.compile(rf"\s*({_TEXT}|[^\s=!<>'\"]+)\s*(<=|>=|!=|==|=|<|>)\s*({_TEXT}|[^\s=!<>'\"]+)\s*")
_AND = re.compile(r"and(?=\s)", re.IGNORECASE)
_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?")
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


_NAMED = 3
"""Partitions that are named from either end where there are many."""


@dataclass(frozen=True)
class Condition:
    """One comparison of a hive key's value."""

    key: str
    sign: str
    value: str

    def holds(self, value: str) -> bool:
        """Whether a value fulfils it: as numbers or dates where both are, else as people sort text."""
        return _COMPARE[self.sign](*_alike(value, self.value))


def parse_conditions(expressions: Sequence[str]) -> tuple[Condition, ...]:
    """Conditions of all these expressions, all of which must hold.

    Args:
        expressions: Such as `dt>=2026-11-01 and tenant!=test`; values with white space stand in quotes.

    Raises:
        ConfigError: One can't be read.
    """
    found: list[Condition] = []
    for text in expressions:
        at = 0
        while True:
            match = _CONDITION.match(text, at)
            if match is None:
                raise ConfigError(errors.FILTER_SYNTAX, filter=text, rest=text[at:].strip())
            key, sign, value = match.groups()
            found.append(Condition(_bare(key), sign, _bare(value)))
            at = match.end()
            if at == len(text):
                break
            joint = _AND.match(text, at)
            if joint is None:
                raise ConfigError(errors.FILTER_WITHOUT_AND, filter=text, rest=text[at:])
            at = joint.end()
    return tuple(found)


def matches(conditions: Sequence[Condition], values: Mapping[str, str]) -> bool:
    """Whether a partition, given by the values of its hive keys, fulfils all conditions; what lacks a key does not."""
    return all(condition.key in values and condition.holds(values[condition.key]) for condition in conditions)


def check_keys(conditions: Sequence[Condition], keys: Sequence[str], uri: str) -> None:
    """Check that an input is partitioned by the keys that conditions name.

    Raises:
        InputError: It is not; its keys are named.
    """
    missing = sorted({condition.key for condition in conditions} - set(keys))
    if missing:
        there = f"its hive keys are {', '.join(keys)}" if keys else "it has no hive folders (such as dt=2026-11-20/) at all"
        raise InputError(errors.NO_SUCH_KEY, input=uri, keys=", ".join(map(repr, missing)), partitioned_by=there)


def none_matches(conditions: Sequence[Condition], partitions: Collection[str]) -> str:
    """What to say where no partition fulfils the conditions: them, and some of the partitions that there are.

    Args:
        conditions: The conditions.
        partitions: Hive paths, such as `dt=2026-11-20`, at least one.
    """
    wanted = " and ".join(f"{condition.key}{condition.sign}{condition.value}" for condition in conditions)
    there = sorted(partitions, key=natural)
    shown = there if len(there) <= 2 * _NAMED else [*there[:_NAMED], "…", *there[-_NAMED:]]
    return f"none of the {len(there):,} partitions fulfils --partitions {wanted}; there are {', '.join(shown)}"


def _bare(text: str) -> str:
    return text[1:-1] if text[0] in "\"'" else text


def _alike(a: str, b: str) -> tuple[Any, Any]:
    """Two values as what they can be compared by."""
    if _NUMBER.fullmatch(a) and _NUMBER.fullmatch(b):
        return Decimal(a), Decimal(b)
    dates = _date(a), _date(b)
    return (natural(a), natural(b)) if None in dates else dates


def _date(text: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
