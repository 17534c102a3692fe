"""Which partitions: `dt>=2026-11-01`, `dt=2026-11-20`, all of several conditions."""

import operator
import re
from collections.abc import Iterable, Sequence

from ragassay.jobs.output.partitions import hive_keys, natural
from ragassay.pipeline.errors import ConfigError

COMPARE = {
    "=": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
CONDITION = re.compile(r"\s*([^\s=!<>]+)\s*(=|!=|<=|>=|<|>)\s*([^\s=!<>][^=!<>]*?)\s*")


def chosen(places: Iterable[str], conditions: Sequence[str]) -> list[str]:
    """The partitions that meet all conditions; values are compared as people sort them, 9 before 10.

    Args:
        places: Hive paths, as on disk.
        conditions: Such as `dt>=2026-11-01`.

    Raises:
        ConfigError: A condition is none, names a key that no partition has, or none meets them all.
    """
    wanted = []
    for condition in conditions:
        found = CONDITION.fullmatch(condition)
        if found is None:
            raise ConfigError(f"--partitions {condition!r} must be KEY=VALUE, or with !=, <, <=, > or >=: dt>=2026-11-01")
        wanted.append((found[1], COMPARE[found[2]], natural(found[3])))
    there = {place: hive_keys(place) for place in places}
    for name, _, _ in wanted:
        if not any(name in keys for keys in there.values()):
            raise ConfigError(f"--partitions: no partition of the output has the key {name!r}")
    met = [
        place
        for place, keys in there.items()
        if all(name in keys and compare(natural(keys[name]), value) for name, compare, value in wanted)
    ]
    if there and not met:
        raise ConfigError(f"--partitions {' '.join(conditions)}: none of the {len(there):,} partitions is such")
    return sorted(met, key=natural)
