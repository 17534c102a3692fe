"""Records as versioned JSON, written and read in one way."""

import json
from typing import Any, TypeVar

from pydantic import ConfigDict, TypeAdapter

Record = TypeVar("Record")

RECORD = ConfigDict(extra="forbid")
"""How a record is read: a field that nobody knows is another version's, and must not be dropped unsaid."""


def to_json(record: dict[str, Any], version: int) -> str:
    """JSON text of a record, as `dataclasses.asdict` gives it; floats are written so that they read back bit for bit."""
    return json.dumps({"version": version, **record}, indent=1)


def from_json(kind: type[Record], text: str, version: int, what: str) -> Record:
    """Read what `to_json` wrote.

    Args:
        kind: Class of the record: a dataclass, and dataclasses in it, with `__pydantic_config__ = RECORD`.
        text: The JSON.
        version: That it must have.
        what: What it is, for the message, such as "a calibration".

    Raises:
        ValueError: The text is no such record, or of another version.
    """
    return from_data(kind, json.loads(text), version, what)


def from_data(kind: type[Record], data: Any, version: int, what: str) -> Record:
    """`from_json` of what is parsed already."""
    found = data.pop("version", None) if isinstance(data, dict) else None
    if found != version:
        raise ValueError(f"{what} of version {found}, another version than {version}, which this program reads")
    if kind not in _READERS:
        _READERS[kind] = TypeAdapter(kind)
    record: Record = _READERS[kind].validate_python(data)
    return record


_READERS: dict[type[Any], TypeAdapter[Any]] = {}
"""Made once a class: hundreds of partitions have a record each."""
