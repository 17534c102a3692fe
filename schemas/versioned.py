"""Records as versioned JSON."""

import json
from dataclasses import asdict
from typing import Any, ClassVar, Self

from pydantic import ConfigDict, TypeAdapter

RECORD_CONFIG = ConfigDict(extra="forbid")
"""Pydantic settings of all records: an unknown field belongs to another version and must not be dropped silently."""


class InvalidRecordError(ValueError):
    """A text is not the JSON of the expected record."""


class RecordVersionError(ValueError):
    """Another version of RAGAssay wrote the record."""


class Record:
    """A dataclass that is stored as JSON; the dataclasses in it also have `__pydantic_config__ = RECORD_CONFIG`.

    Attributes:
        VERSION: Version that is written with the record; no other version can be read.
        DESCRIPTION: Name of the record in messages, such as "a calibration".
    """

    __pydantic_config__ = RECORD_CONFIG
    VERSION: ClassVar[int] = 1
    DESCRIPTION: ClassVar[str]

    def to_json(self) -> str:
        """Return the record as JSON; floats read back bit for bit."""
        return json.dumps({"version": self.VERSION, **self._to_data()}, indent=1)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read the text that `to_json` wrote.

        Raises:
            InvalidRecordError: The text is not this kind of record.
            RecordVersionError: The record has another version.
        """
        try:
            data = json.loads(text)
        except ValueError as error:
            raise InvalidRecordError(str(error)) from error
        if not isinstance(data, dict) or "version" not in data:
            raise InvalidRecordError(f"expected {cls.DESCRIPTION}: a JSON object with a version")
        version = data.pop("version")
        if version != cls.VERSION:
            raise RecordVersionError(f"it is {cls.DESCRIPTION} of version {version}; this RAGAssay reads version {cls.VERSION}")
        if cls not in _ADAPTERS:
            _ADAPTERS[cls] = TypeAdapter(cls)
        try:
            record: Self = _ADAPTERS[cls].validate_python(data)
        except ValueError as error:
            raise InvalidRecordError(str(error)) from error
        return record

    def _to_data(self) -> dict[str, Any]:
        record: Any = self
        return asdict(record)


_ADAPTERS: dict[type[Record], TypeAdapter[Any]] = {}
"""One adapter per class: hundreds of partitions have a record each."""
