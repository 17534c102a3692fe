"""Records as versioned JSON, written and read in one way."""

import json
from dataclasses import asdict
from typing import Any, ClassVar, Self

from pydantic import ConfigDict, TypeAdapter

RECORD = ConfigDict(extra="forbid")
"""How a record is read: a field that nobody knows is another version's, and must not be dropped unsaid."""


class NotARecordError(ValueError):
    """A text is not the JSON of such a record."""


class OtherVersionError(ValueError):
    """A record was made by another version of this program."""


class Record:
    """A dataclass that is stored as JSON; the dataclasses in it have `__pydantic_config__ = RECORD` too.

    Attributes:
        VERSION: Written with the record; another one is not read.
        WHAT: What it is, for messages, such as "a calibration".
    """

    __pydantic_config__ = RECORD
    VERSION: ClassVar[int] = 1
    WHAT: ClassVar[str]

    def to_json(self) -> str:
        """JSON text; floats are written so that they read back bit for bit."""
        return json.dumps({"version": self.VERSION, **self._to_data()}, indent=1)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what `to_json` wrote.

        Raises:
            NotARecordError: The text is no such record.
            OtherVersionError: The record is of another version.
        """
        try:
            data = json.loads(text)
        except ValueError as error:
            raise NotARecordError(str(error)) from error
        if not isinstance(data, dict) or "version" not in data:
            raise NotARecordError(f"{cls.WHAT} is wanted, a JSON object with a version")
        version = data.pop("version")
        if version != cls.VERSION:
            raise OtherVersionError(f"it is {cls.WHAT} of version {version}; this program reads version {cls.VERSION}")
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
"""Made once a class: hundreds of partitions have a record each."""
