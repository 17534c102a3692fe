"""Reading the fields of exports: times, ids, flags, and attributes in the shapes that tools and collectors write them in."""

import base64
import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any

from ragassay.jobs.input.documents import lenient, plain_name, whole

_INDEXED = re.compile(r"(\d+)\.?(.*)", re.DOTALL)
_SCALES = ((10**17, 1000), (10**14, 1))  # larger numbers are nanoseconds, then microseconds
_MILLIS, _SECONDS = 1000, 1_000_000
_FIRST, _LAST = -62_135_510_400_000_000, 253_402_214_400_000_000  # a day within the years 1 and 9999
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def by_name(record: Mapping[str, Any]) -> dict[str, Any]:
    """Fields by their plain names: `trace_id`, `traceId` and `TraceId` are one."""
    found: dict[str, Any] = {}
    for name, value in record.items():
        found.setdefault(plain_name(str(name)), value)
    return found


def first(fields: Mapping[str, Any], *names: str) -> Any:
    """The first field that is there and not empty; None where there is none."""
    return next((fields[name] for name in names if fields.get(name) not in (None, "")), None)


def text(value: Any) -> str | None:
    """An id or a name as text; bytes, as some write ids, as hexadecimal digits."""
    if value is None or value == "":
        return None
    return value.hex() if isinstance(value, bytes) else whole(str(value))


def span_id(value: Any) -> str | None:
    """An id of a span; an id of zeros, as some write for none, is None."""
    found = text(value)
    return None if found is None or not found.strip("0") else found


def unquoted(value: Any) -> Any:
    """A value that was written as JSON, a string in quotes too; any other stays as it is."""
    if isinstance(value, str) and (value[:1] == '"' or value == "null"):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return lenient(value)


def hexadecimal(value: Any) -> str | None:
    """An id as hexadecimal digits, where it is base64 of 8 or 16 bytes."""
    found = span_id(value)
    if found is None or not found.endswith("="):
        return found
    try:
        data = base64.b64decode(found, validate=True)
    except ValueError:
        return found
    return data.hex() if len(data) in (8, 16) else found


def micros(value: Any) -> int | None:
    """A time as microseconds since 1970, UTC; None where it is none, or beyond the years 1 to 9999.

    Args:
        value: A datetime (UTC where it says nothing), ISO 8601 in any usual spelling, or a number of seconds, milli-, micro- or
            nanoseconds since 1970, by its size.
    """
    try:
        found = _micros(value)
    except (ValueError, OverflowError):  # not finite, or too many digits
        return None
    return None if found is None else within_years(found)


def within_years(moment: int) -> int | None:
    """Microseconds since 1970; None where that is beyond the years 1 to 9999."""
    return moment if _FIRST <= moment < _LAST else None


def _micros(value: Any) -> int | None:
    if isinstance(value, str) and re.fullmatch(r"\d+(\.\d+)?", value.strip()):
        value = int(value) if value.strip().isdecimal() else float(value)
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value.strip().replace(" UTC", "+00:00"))
        except ValueError:
            return None
    if isinstance(value, datetime):
        moment = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
        return int((moment - _EPOCH).total_seconds() * 1_000_000 + 0.5)
    if isinstance(value, bool | date) or not isinstance(value, int | float) or not value > 0:
        return None
    for size, parts in _SCALES:
        if value >= size:
            return int(value) // parts
    return int(value * (_MILLIS if value >= 10**11 else _SECONDS))


def attributes_of(record: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Attributes of a span with dots in their names.

    They may be a map, an object with objects in it, JSON, a list of keys and values as OTLP has them, or columns of their own
    whose names begin so.

    Args:
        record: The record.
        names: Of the fields with attributes; later ones give way to earlier ones.
    """
    found: dict[str, Any] = {}
    for name in names:
        _flatten(_pairs(record.get(name)), "", found)
        for column, value in record.items():
            if column.startswith(f"{name}."):
                _flatten({column[len(name) + 1 :]: value}, "", found)
    return found


def _pairs(value: Any) -> Mapping[str, Any]:
    value = lenient(value)
    if isinstance(value, Mapping):
        return value
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        pairs = {}
        for item in value:
            if isinstance(item, Mapping) and "key" in item:
                pairs[str(item["key"])] = any_value(item.get("value"))
            elif isinstance(item, tuple) and len(item) == 2:  # a map of Arrow's
                pairs[str(item[0])] = item[1]
        return pairs
    return {}


def any_value(value: Any) -> Any:
    """A value as OTLP writes it: an object that says of which type it is."""
    if not isinstance(value, Mapping):
        return value
    fields = by_name(value)
    if (array := fields.get("arrayvalue")) is not None:
        return [any_value(item) for item in by_name(array).get("values") or []]
    if (pairs := fields.get("kvlistvalue")) is not None:
        return dict(_pairs(by_name(pairs).get("values")))
    if fields.get("intvalue") is not None:
        return int(fields["intvalue"])
    return first(fields, "stringvalue", "boolvalue", "doublevalue", "bytesvalue")


def _flatten(values: Mapping[str, Any], before: str, into: dict[str, Any]) -> None:
    for name, value in values.items():
        if value is None:  # the columns of a table are those of all of its spans
            continue
        if isinstance(value, Mapping):
            _flatten(value, f"{before}{name}.", into)
        else:
            into.setdefault(f"{before}{name}", value)


def listed(attributes: Mapping[str, Any], name: str) -> Any:
    """A list among attributes: as one value, or as `name.0.…`, `name.1.…`; None where there is none.

    An object whose fields were flattened, `name.question` and the like, comes back as one.
    """
    if attributes.get(name) is not None:
        return unquoted(attributes[name])
    found: dict[int, Any] = {}
    others: dict[str, Any] = {}
    for key, value in attributes.items():
        if key.startswith(f"{name}.") and (match := _INDEXED.fullmatch(key[len(name) + 1 :])):
            place, rest = int(match[1]), match[2]
            if rest:
                found.setdefault(place, {})[rest] = value
            else:
                found[place] = value
        elif key.startswith(f"{name}."):
            others[key[len(name) + 1 :]] = value
    return [found[place] for place in sorted(found)] or others or None
