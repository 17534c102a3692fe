"""Infer the Arrow types of JSON values, and convert values to these types.

JSON has no column types, and a line may contain values that no other line has. So the type of a column is inferred from all
lines of a file.
"""

import json
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

MAX_EXACT_INTEGER = 2**53  # floats represent integers up to here exactly
INT64_BOUND = 2**63
MAX_KEYS = 1000
"""Maximum number of different keys in a column's objects, over all lines. With more, the column is JSON text."""

MAX_DEPTH = 12  # levels of lists and objects; deeper values become JSON text


@dataclass
class ObservedType:
    """Types of the values at one position of all lines: in a column, in its lists, or under a key of its objects.

    Attributes:
        kinds: bool, int, float, str, list, dict. Also `wide` for integers that a float can't represent, and `huge` for integers
            that int64 can't represent and for values that are nested too deeply. Nulls are ignored.
        item: Types of the items of its lists.
        fields: Types of the values under each key of its objects.
    """

    kinds: set[str] = field(default_factory=set)
    item: "ObservedType | None" = None
    fields: dict[str, "ObservedType"] = field(default_factory=dict)

    def add(self, value: Any, depth: int = 0) -> None:
        """Add a value, as `json.loads` returns it."""
        if value is None:
            return
        kind = type(value).__name__
        self.kinds.add(kind)
        if kind == "int" and not -MAX_EXACT_INTEGER <= value <= MAX_EXACT_INTEGER:
            self.kinds.add("wide" if -INT64_BOUND <= value < INT64_BOUND else "huge")
        elif kind in ("list", "dict") and depth >= MAX_DEPTH:
            self.kinds.add("huge")
        elif kind == "list":
            self.item = self.item or ObservedType()
            for item in value:
                self.item.add(item, depth + 1)
        elif kind == "dict" and len(self.fields) <= MAX_KEYS:
            for key, item in value.items():
                self.fields.setdefault(key, ObservedType()).add(item, depth + 1)

    def to_arrow(self) -> pa.DataType:
        """Return an Arrow type that can represent every value; text if no other type can."""
        kinds, item = self.kinds, self.item
        if kinds in ({"list"}, {"list", "str"}):
            inside = item.to_arrow() if item else pa.null()
            if kinds == {"list"} or inside in (pa.string(), pa.null()):
                return pa.list_(pa.string() if "str" in kinds else inside)
        if kinds == {"dict"} and 0 < len(self.fields) <= MAX_KEYS:
            return pa.struct([(key, observed.to_arrow()) for key, observed in self.fields.items()])
        if kinds == {"int", "wide"}:
            return pa.int64()
        simple = {"bool": pa.bool_(), "int": pa.int64(), "float": pa.float64(), "str": pa.string()}
        if len(kinds) <= 1:
            return simple.get("".join(kinds), pa.string()) if kinds else pa.null()
        return pa.float64() if kinds == {"int", "float"} else pa.string()


def convert_value(value: Any, kind: pa.DataType) -> Any:
    """Convert a value for a column of this type. A value of another type becomes its JSON text, or a list with one item."""
    if value is None:
        return None
    if pa.types.is_string(kind):
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if pa.types.is_list(kind):
        return [convert_value(item, kind.value_type) for item in (value if isinstance(value, list) else [value])]
    if pa.types.is_struct(kind):
        return {field.name: convert_value(value.get(field.name), field.type) for field in kind}
    return value
