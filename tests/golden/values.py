"""Values as stable text: floats rounded, long strings cut, machine-dependent parts replaced by placeholders."""

import hashlib
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Mask = Callable[[str], str]

LONGEST = 120
"""Characters of a string that are shown; the rest is represented by a digest."""

DIGITS = 6

SECONDS = {"engine_seconds", "idle_seconds", "seconds"}
"""Keys of durations, also of mappings of durations."""

VOLATILE = SECONDS | {
    "started", "finished", "mtime", "size", "bytes", "digest", "host", "pid", "time", "taken_at", "created", "written", "spacy",
    "versions", "ragassay_version", "at", "eventTime", "snapshot", "timestamp", "raw_files",
    "timeUnixNano", "observedTimeUnixNano",
}  # fmt: skip
"""Keys whose value depends on the clock, the machine or a library's version."""

VERSIONS, SMALL_VERSION = {"version", "since"}, 10**9
"""Keys of a table's version, and above what a version is one of Iceberg's ids, which are given by chance."""

MASKED = {"since": re.compile(r"20\d\d-.*"), "request": re.compile(r"[0-9a-f]{32}"), "source": re.compile(r"[0-9a-f]{32}")}
"""Key -> its texts that depend on the clock, on a server's port, or on a source file of the corpus, also in rows."""

EVENT = {"id", "timestamp", "body"}
"""Keys of an event of Langfuse, whose id depends on the run's."""

UID = "log.record.uid"
"""Attribute of an event of OpenTelemetry that depends on the run's id."""

LARGE_COUNTS = {"buckets"}
"""Keys of mappings from a bucket to a count, of which only the totals are compared."""


DIGEST = re.compile(r"[0-9a-f]{64}")
"""Keys of mappings that are shown without their keys: digests of what was asked, the server's port among it."""


def rounded(value: float) -> float | str:
    """Round a float to six significant digits; what JSON cannot hold becomes a string."""
    if math.isnan(value) or math.isinf(value):
        return str(value)
    return float(f"{value:.{DIGITS}g}") + 0.0


def cut(text: str) -> str:
    """Shorten a long string to its beginning, its length and a digest of the whole."""
    if len(text) <= LONGEST:
        return text
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:10]
    return f"{text[: LONGEST - 40]}... ({len(text)} characters, {digest})"


def plain(value: Any, mask: Mask, *, volatile: frozenset[str] | set[str] = frozenset(SECONDS)) -> Any:
    """Turn a value into JSON data that is equal on every machine.

    Args:
        value: JSON data, or what Arrow gives for a cell.
        mask: Replaces machine-dependent parts of a string.
        volatile: Keys whose values are replaced by a placeholder.

    Returns:
        Data that `json.dumps` takes.
    """
    if isinstance(value, bool) or value is None or isinstance(value, int):
        return value
    if isinstance(value, float):
        return rounded(value)
    if isinstance(value, str):
        return cut(mask(value))
    if isinstance(value, Mapping):
        if value.keys() >= EVENT:
            value = {**value, "id": "<id>"}
        if value.get("key") == UID:
            value = {**value, "value": "<uid>"}
        entries = {cut(mask(str(key))): _entry(str(key), item, mask, volatile) for key, item in value.items()}
        return sorted(entries.values(), key=compact) if entries and all(map(DIGEST.fullmatch, entries)) else entries
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        return [plain(item, mask, volatile=volatile) for item in value]
    return cut(mask(str(value)))


def _entry(key: str, value: Any, mask: Mask, volatile: frozenset[str] | set[str]) -> Any:
    if key in volatile and value is not None:
        if isinstance(value, Mapping):
            return dict.fromkeys(map(str, value), f"<{key}>")
        return f"<{key}>"
    if key in VERSIONS and isinstance(value, int) and value > SMALL_VERSION:
        return "<snapshot>"
    if key in MASKED and isinstance(value, str) and MASKED[key].fullmatch(value):
        return f"<{key}>"
    if key in LARGE_COUNTS and isinstance(value, Mapping):
        return f"<{len(value)} {key} of {sum(value.values())} values>"
    return plain(value, mask, volatile=volatile)


def compact(data: Any) -> str:
    """Plain data as one line of JSON."""
    return json.dumps(data, separators=(", ", ": "))


def pretty(data: Any, indent: int = 0, width: int = 118) -> str:
    """Plain data as JSON in which everything short stands on one line; keys are sorted."""
    line = json.dumps(data, sort_keys=True)
    if len(line) + indent <= width or not isinstance(data, dict | list) or not data:
        return line
    pad = " " * (indent + 1)
    if isinstance(data, dict):
        items = [f"{pad}{json.dumps(key)}: {pretty(data[key], indent + 1, width)}" for key in sorted(data)]
        return "{\n" + ",\n".join(items) + "\n" + " " * indent + "}"
    return "[\n" + ",\n".join(pad + pretty(item, indent + 1, width) for item in data) + "\n" + " " * indent + "]"


NUMBER = re.compile(r"(?<![\w.])-?\d+\.\d+(?:e[-+]?\d+)?|(?<![\w.])-?\d+e[-+]?\d+")


def lines_agree(expected: str, actual: str, relative: float, absolute: float) -> bool:
    """Return whether two lines are equal, but for floats that differ by no more than a tolerance."""
    if expected == actual:
        return True
    if NUMBER.sub("#", expected) != NUMBER.sub("#", actual):
        return False
    pairs = zip(NUMBER.findall(expected), NUMBER.findall(actual), strict=True)
    return all(math.isclose(float(a), float(b), rel_tol=relative, abs_tol=absolute) for a, b in pairs)
