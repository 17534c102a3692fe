"""Read the fields of export records: names, ids, times and attributes, in all forms that tools and collectors write.

A parameter `names` is one string with several names, separated by spaces; the first that has a value is used.
"""

import base64
import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from ragassay.jobs.input.documents import normalize_name, parse_json_if_possible, replace_surrogates

EMPTY: tuple[Any, ...] = (None, "", [], {})
_INDEXED_NAME = re.compile(r"(\d+)\.?(.*)", re.DOTALL)
_TIME_UNITS = ((10**17, 1, 1000), (10**14, 1, 1), (10**11, 1000, 1), (0, 1_000_000, 1))
"""Smallest value since 1970 in nano-, micro- and milliseconds and seconds, and the factor and divisor to microseconds."""

_MIN_TIME, _MAX_TIME = -62_135_510_400_000_000, 253_402_214_400_000_000  # years 1 to 9999, less one day at each end
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def normalize_names(record: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the fields that are not null by their plain names: `trace_id`, `traceId` and `TraceId` are the same."""
    fields: dict[str, Any] = {}
    for name, value in record.items():
        if value is not None:
            fields.setdefault(normalize_name(str(name)), value)
    return fields


def first_value(fields: Mapping[str, Any], names: str) -> Any:
    """Return the first of the named fields that is not empty; None if there is none."""
    for name in names.split():
        if (value := fields.get(name)) is not None and value != "":
            return value
    return None


def to_object(value: Any) -> Mapping[str, Any]:
    """Return a value as an object: a mapping, JSON, an Arrow map, or OTLP keys and values. Other values give an empty one."""
    value = parse_json_if_possible(value)
    if isinstance(value, Mapping):
        return value
    fields = {}
    for item in value if isinstance(value, list | tuple) else ():
        if isinstance(item, Mapping) and "key" in item:
            fields[str(item["key"])] = decode_otlp_value(item.get("value"))
        elif isinstance(item, tuple) and len(item) == 2:
            fields[str(item[0])] = item[1]
    return fields


def to_list(value: Any) -> Sequence[Any]:
    """Return a value as a list: a list or JSON. Other values give an empty list."""
    value = parse_json_if_possible(value)
    return value if isinstance(value, list | tuple) else ()


def decode_otlp_value(value: Any) -> Any:
    """Return the plain value of an OTLP value (an object that names its type); return other values unchanged."""
    if not isinstance(value, Mapping):
        return value
    fields = normalize_names(value)
    if "arrayvalue" in fields:
        return [decode_otlp_value(item) for item in normalize_names(fields["arrayvalue"]).get("values") or []]
    if "kvlistvalue" in fields:
        return to_object(normalize_names(fields["kvlistvalue"]).get("values"))
    return (
        int(fields["intvalue"]) if "intvalue" in fields else first_value(fields, "stringvalue boolvalue doublevalue bytesvalue")
    )


def decode_json(value: Any) -> Any:
    """Return the value of a JSON string, also of a quoted string; return other values unchanged."""
    if isinstance(value, str) and (value[:1] == '"' or value == "null"):
        try:
            return json.loads(value)
        except ValueError:
            return value
    return parse_json_if_possible(value)


def to_text(value: Any) -> str | None:
    """Return an id or a name as text, bytes as hexadecimal digits; None if empty."""
    if value is None or value == "":
        return None
    return value.hex() if isinstance(value, bytes) else replace_surrogates(str(value))


def parse_span_id(value: Any) -> str | None:
    """Return a span id as text; None for an id of zeros, which some tools write for a missing id."""
    span_id = to_text(value)
    return span_id if span_id and span_id.strip("0") else None


def parse_hex_id(value: Any) -> str | None:
    """Return a span id as hexadecimal digits, also if it is base64 of 8 or 16 bytes."""
    span_id = parse_span_id(value)
    if span_id is None or not span_id.endswith("="):
        return span_id
    try:
        data = base64.b64decode(span_id, validate=True)
    except ValueError:
        return span_id
    return data.hex() if len(data) in (8, 16) else span_id


def to_microseconds(value: Any) -> int | None:
    """Return a time as microseconds since 1970 (UTC); None if it is no time or outside the years 1 to 9999.

    Args:
        value: A datetime (UTC if it has no time zone), ISO 8601 text, or a number of seconds, milli-, micro- or nanoseconds
            since 1970; the size of the number decides which.
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
            return within_range(int((moment - _EPOCH).total_seconds() * 1_000_000 + 0.5))
        if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
            return None
        return within_range(next(int(value * factor) // parts for size, factor, parts in _TIME_UNITS if value >= size))
    except (ValueError, OverflowError):  # not a time, not finite, or too many digits
        return None


def within_range(moment: int) -> int | None:
    """Return microseconds since 1970; None if they are outside the years 1 to 9999."""
    return moment if _MIN_TIME <= moment < _MAX_TIME else None


def read_attributes(record: Mapping[str, Any], names: str) -> dict[str, Any]:
    """Return the attributes of a span by their dotted names.

    Attributes can be a map, nested objects, JSON, a list of OTLP keys and values, or separate columns such as
    `attributes.input.value`.

    Args:
        record: The record.
        names: Fields with attributes; an earlier field takes precedence.
    """
    attributes: dict[str, Any] = {}
    for name in names.split():
        _flatten(to_object(record.get(name)), "", attributes)
        _flatten({key[len(name) + 1 :]: value for key, value in record.items() if key.startswith(f"{name}.")}, "", attributes)
    return attributes


def _flatten(values: Mapping[str, Any], prefix: str, attributes: dict[str, Any]) -> None:
    for name, value in values.items():
        if isinstance(value, Mapping):
            _flatten(value, f"{prefix}{name}.", attributes)
        elif value is not None:  # a table has the columns of all spans, so most are null here
            attributes.setdefault(f"{prefix}{name}", value)


def unflatten(attributes: Mapping[str, Any], name: str) -> Any:
    """Return an attribute that can be a list or an object; None if it is missing.

    It is one value, or flattened: `name.0.…`, `name.1.…` for a list, `name.question` for an object.
    """
    if attributes.get(name) is not None:
        return decode_json(attributes[name])
    items: dict[int, Any] = {}
    fields: dict[str, Any] = {}
    for key, value in attributes.items():
        if not key.startswith(f"{name}."):
            continue
        rest = key[len(name) + 1 :]
        match = _INDEXED_NAME.fullmatch(rest)
        if match is None:
            fields[rest] = value
        elif match[2]:
            items.setdefault(int(match[1]), {})[match[2]] = value
        else:
            items[int(match[1])] = value
    return [items[index] for index in sorted(items)] or fields or None
