"""Reading the fields of exports: names, ids, times, and attributes in the shapes that tools and collectors write them in.

Where several names are given they are one text, with blanks between them.
"""

import base64
import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from ragassay.jobs.input.documents import normalize_name, parse_json_if_possible, replace_surrogates

EMPTY: tuple[Any, ...] = (None, "", [], {})
_INDEXED = re.compile(r"(\d+)\.?(.*)", re.DOTALL)
_SCALES = ((10**17, 1, 1000), (10**14, 1, 1), (10**11, 1000, 1), (0, 1_000_000, 1))
"""Sizes of nano-, micro-, milliseconds and seconds since 1970, and by what each is multiplied and divided."""

_FIRST, _LAST = -62_135_510_400_000_000, 253_402_214_400_000_000  # a day within the years 1 and 9999
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def by_name(record: Mapping[Any, Any]) -> dict[str, Any]:
    """Fields that hold something by their plain names: `trace_id`, `traceId` and `TraceId` are one."""
    found: dict[str, Any] = {}
    for name, value in record.items():
        if value is not None:
            found.setdefault(normalize_name(str(name)), value)
    return found


def first(fields: Mapping[str, Any], names: str) -> Any:
    """The first field that is there and not empty; None where there is none."""
    for name in names.split():
        if (value := fields.get(name)) is not None and value != "":
            return value
    return None


def object_of(value: Any) -> Mapping[str, Any]:
    """The object that a value is: as such, as JSON, as a map of Arrow's, or as OTLP's keys and values; else an empty one."""
    value = parse_json_if_possible(value)
    if isinstance(value, Mapping):
        return value
    found = {}
    for item in value if isinstance(value, list | tuple) else ():
        if isinstance(item, Mapping) and "key" in item:
            found[str(item["key"])] = any_value(item.get("value"))
        elif isinstance(item, tuple) and len(item) == 2:
            found[str(item[0])] = item[1]
    return found


def list_of(value: Any) -> Sequence[Any]:
    """The list that a value is, as such or as JSON; else an empty one."""
    value = parse_json_if_possible(value)
    return value if isinstance(value, list | tuple) else ()


def any_value(value: Any) -> Any:
    """A value as OTLP writes it: an object that says of which type it is."""
    if not isinstance(value, Mapping):
        return value
    fields = by_name(value)
    if "arrayvalue" in fields:
        return [any_value(item) for item in by_name(fields["arrayvalue"]).get("values") or []]
    if "kvlistvalue" in fields:
        return object_of(by_name(fields["kvlistvalue"]).get("values"))
    return int(fields["intvalue"]) if "intvalue" in fields else first(fields, "stringvalue boolvalue doublevalue bytesvalue")


def unquoted(value: Any) -> Any:
    """A value that was written as JSON, a string in quotes too; any other stays as it is."""
    if isinstance(value, str) and (value[:1] == '"' or value == "null"):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return parse_json_if_possible(value)


def text(value: Any) -> str | None:
    """An id or a name as text; bytes, as some write ids, as hexadecimal digits."""
    if value is None or value == "":
        return None
    return value.hex() if isinstance(value, bytes) else replace_surrogates(str(value))


def span_id(value: Any) -> str | None:
    """An id of a span; an id of zeros, as some write for none, is None."""
    found = text(value)
    return found if found and found.strip("0") else None


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
        if isinstance(value, str):
            value = value.strip()
            number = re.fullmatch(r"\d+(\.\d+)?", value)
            value = (
                (float if "." in value else int)(value) if number else datetime.fromisoformat(value.replace(" UTC", "+00:00"))
            )
        if isinstance(value, datetime):
            moment = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
            return within_years(int((moment - _EPOCH).total_seconds() * 1_000_000 + 0.5))
        if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
            return None
        return within_years(next(int(value * factor) // parts for size, factor, parts in _SCALES if value >= size))
    except (ValueError, OverflowError):  # no time, not finite, or too many digits
        return None


def within_years(moment: int) -> int | None:
    """Microseconds since 1970; None where that is beyond the years 1 to 9999."""
    return moment if _FIRST <= moment < _LAST else None


def attributes_of(record: Mapping[str, Any], names: str) -> dict[str, Any]:
    """Attributes of a span with dots in their names.

    They may be a map, an object with objects in it, JSON, a list of keys and values as OTLP has them, or columns of their own
    whose names begin so.

    Args:
        record: The record.
        names: Of the fields with attributes; later ones give way to earlier ones.
    """
    found: dict[str, Any] = {}
    for name in names.split():
        _flatten(object_of(record.get(name)), "", found)
        _flatten({key[len(name) + 1 :]: value for key, value in record.items() if key.startswith(f"{name}.")}, "", found)
    return found


def _flatten(values: Mapping[str, Any], before: str, into: dict[str, Any]) -> None:
    for name, value in values.items():
        if isinstance(value, Mapping):
            _flatten(value, f"{before}{name}.", into)
        elif value is not None:  # the columns of a table are those of all of its spans
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
        if not key.startswith(f"{name}."):
            continue
        rest = key[len(name) + 1 :]
        match = _INDEXED.fullmatch(rest)
        if match is None:
            others[rest] = value
        elif match[2]:
            found.setdefault(int(match[1]), {})[match[2]] = value
        else:
            found[int(match[1])] = value
    return [found[place] for place in sorted(found)] or others or None
