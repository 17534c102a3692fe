"""The column types of JSON values: what all lines of a file hold, and a value as such a type wants it.

JSON has no types, and a line may hold what no other does: so a type is that of all values of a column, over the whole file.
"""

import json
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

EXACT = 2**53  # integers up to here are the same as floats
INT64 = 2**63
MOST_KEYS = 1000
"""Keys of objects, over all lines, above which they are no fields but data: a column of such objects is JSON text."""

DEEPEST = 12  # levels of lists and objects; what lies deeper is JSON text


@dataclass
class Seen:
    """What stood at one place of the lines of a file: in a column, in its lists, or under a key of its objects.

    Attributes:
        kinds: bool, int, float, str, list, dict; `wide` with integers that no float holds, `huge` with those that int64 does
            not. Nulls leave no trace.
        item: What stood in its lists.
        fields: What stood under each key of its objects.
    """

    kinds: set[str] = field(default_factory=set)
    item: "Seen | None" = None
    fields: dict[str, "Seen"] = field(default_factory=dict)

    def add(self, value: Any, depth: int = 0) -> None:
        """Take in a value, as `json.loads` gives it."""
        if value is None:
            return
        kind = type(value).__name__
        self.kinds.add(kind)
        if kind == "int" and not -EXACT <= value <= EXACT:
            self.kinds.add("wide" if -INT64 <= value < INT64 else "huge")
        elif kind in ("list", "dict") and depth >= DEEPEST:
            self.kinds.add("huge")
        elif kind == "list":
            self.item = self.item or Seen()
            for one in value:
                self.item.add(one, depth + 1)
        elif kind == "dict" and len(self.fields) <= MOST_KEYS:
            for key, one in value.items():
                self.fields.setdefault(key, Seen()).add(one, depth + 1)

    def type(self) -> pa.DataType:
        """The type that holds every value: text, where nothing else does."""
        kinds, item = self.kinds, self.item
        if kinds in ({"list"}, {"list", "str"}):
            inside = item.type() if item else pa.null()
            if kinds == {"list"} or inside in (pa.string(), pa.null()):
                return pa.list_(pa.string() if "str" in kinds else inside)
        if kinds == {"dict"} and 0 < len(self.fields) <= MOST_KEYS:
            return pa.struct([(key, seen.type()) for key, seen in self.fields.items()])
        if kinds == {"int", "wide"}:
            return pa.int64()
        simple = {"bool": pa.bool_(), "int": pa.int64(), "float": pa.float64(), "str": pa.string()}
        if len(kinds) <= 1:
            return simple.get("".join(kinds), pa.string()) if kinds else pa.null()
        return pa.float64() if kinds == {"int", "float"} else pa.string()


def fitted(value: Any, kind: pa.DataType) -> Any:
    """A value as a column of this type takes it; one of another kind as its JSON text, or as a list of one."""
    if value is None:
        return None
    if pa.types.is_string(kind):
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if pa.types.is_list(kind):
        return [fitted(one, kind.value_type) for one in (value if isinstance(value, list) else [value])]
    if pa.types.is_struct(kind):
        return {part.name: fitted(value.get(part.name), part.type) for part in kind}
    return value
