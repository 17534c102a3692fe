"""Records as versioned JSON."""

import json
from dataclasses import asdict
from typing import Any, ClassVar, Self

from pydantic import ConfigDict, TypeAdapter

RECORD = ConfigDict(extra="forbid")
"""Pydantic settings of all records: an unknown field belongs to another version and must not be dropped silently."""


class NotARecordError(ValueError):
    """A text is not the JSON of the expected record."""


class OtherVersionError(ValueError):
    """Another version of RAGAssay wrote the record."""


class Record:
    """A dataclass that is stored as JSON; the dataclasses in it also have `__pydantic_config__ = RECORD_CONFIG`.

    Attributes:
        VERSION: Version that is written with the record; no other version can be read.
        DESCRIPTION: Name of the record in messages, such as "a calibration".
    """

    __pydantic_config__ = RECORD
    VERSION: ClassVar[int] = 1
    WHAT: ClassVar[str]

    def to_json(self) -> str:
        """Return the record as JSON; floats read back bit for bit."""
        return json.dumps({"version": self.VERSION, **self._to_data()}, indent=1)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read the text that `to_json` wrote.

        Raises:
            NotARecordError: The text is not this kind of record.
            OtherVersionError: The record has another version.
        """
        try:
            data = json.loads(text)
        except ValueError as error:
            raise NotARecordError(str(error)) from error
        if not isinstance(data, dict) or "version" not in data:
            raise NotARecordError(f"expected {cls.WHAT}: a JSON object with a version")
        version = data.pop("version")
        if version != cls.VERSION:
            raise OtherVersionError(f"it is {cls.WHAT} of version {version}; this RAGAssay reads version {cls.VERSION}")
        if cls not in _READERS:
            _READERS[cls] = TypeAdapter(cls)
        try:
            record: Self = _READERS[cls].validate_python(data)
        except ValueError as error:
            raise NotARecordError(str(error)) from error
        return record

    def _to_data(self) -> dict[str, Any]:
        record: Any = self
        return asdict(record)


_READERS: dict[type[Record], TypeAdapter[Any]] = {}
"""One adapter per class: hundreds of partitions have a record each."""
