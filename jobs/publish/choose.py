"""Which partitions of an output are meant: `dt>=2026-11-01`, `dt=2026-11-20`, all of several conditions."""

from collections.abc import Iterable, Sequence

from ragassay.jobs.output.partition_filter import matches, none_matches, parse_conditions
from ragassay.jobs.output.partitions import hive_keys, hive_path, natural
from ragassay.pipeline.errors import ConfigError


def chosen(places: Iterable[str], conditions: Sequence[str]) -> list[str]:
    """The partitions that meet all conditions.

    Args:
        places: Hive paths, as on disk.
        conditions: Such as `dt>=2026-11-01`.

    Raises:
        ConfigError: A condition can't be read, names a key that a partition has not, or none meets them all.
    """
    wanted = parse_conditions(conditions)
    there = {place: hive_keys(place) for place in places}
    missing = [one.key for one in wanted if not all(one.key in keys for keys in there.values())]
    if missing:
        raise ConfigError(f"--partitions: the partitions of the output have no key {missing[0]!r}")
    met = [place for place, keys in there.items() if matches(wanted, keys)]
    if there and not met:
        raise ConfigError(f"output: {none_matches(wanted, {hive_path(place) for place in there})}")
    return sorted(met, key=natural)
