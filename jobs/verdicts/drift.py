"""Tonight against history: what an output folder's statistics say has moved."""

from collections.abc import Collection, Iterable, Mapping

from ragassay.jobs.config.verdict import Drift, VerdictConfig
from ragassay.jobs.output.partitions import history, hive_path, natural
from ragassay.pipeline.verdict.drift import kolmogorov_smirnov, population_stability
from ragassay.pipeline.verdict.moments import merge
from ragassay.schemas.columns import Status
from ragassay.schemas.manifest import DriftCheck, Manifest, Shift, Verdicts
from ragassay.schemas.stats import PartitionStats


def check_drift(
    config: VerdictConfig, manifest: Manifest, stats: Mapping[str, PartitionStats], tonight: Collection[str] | None = None
) -> DriftCheck:
    """Compare tonight's partitions with the history before them.

    Args:
        config: Its `history` and `drift` set how far back and how much.
        manifest: Of the output folder: verdicts a partition.
        stats: Statistics a partition, by its path on disk.
        tonight: Paths on disk of tonight's partitions; None takes the last.
    """
    if tonight is None:
        nights = sorted((place.partition("/")[0] for place in stats), key=natural)
        tonight = [place for place in stats if place.partition("/")[0] == nights[-1]]
    before = history(stats, tonight, config.history.partitions)
    now, then = ([stats[place] for place in places] for places in (tonight, before))
    sizes = sum(part.sentences for part in now), sum(part.sentences for part in then)
    names = [hive_path(p) for p in sorted(tonight)], [hive_path(p) for p in before]
    if not before:
        return DriftCheck(*names, sizes, [], "there is no partition before tonight's to compare with")
    rates = [_error_rate({place: stats[place] for place in places}, manifest) for places in (tonight, before)]
    limits = config.drift
    if min(sizes) < limits.min_sentences:
        setting = f"verdict.drift.min_sentences: {limits.min_sentences}"
        note = f"{min(sizes)} sentences are too few to tell drift from chance ({setting})"
        errors = _errors(limits, rates)  # a night without a scored row has no sentence, and that is the drift
        return DriftCheck(*names, sizes, [errors] if errors.drifted else [], None if errors.drifted else note)
    shifts = [*_members(limits, now, then), _errors(limits, rates), _lengths(limits, now, then)]
    flagged = [_flagged(manifest.finalized[place] for place in places if place in manifest.finalized) for places in names]
    if flagged[0] is not None and flagged[1] is not None:
        shifts.append(_shift("flagged", flagged[0], flagged[1], limits.flagged))
    return DriftCheck(*names, sizes, shifts, None)


def _members(limits: Drift, now: list[PartitionStats], then: list[PartitionStats]) -> list[Shift]:
    shifts = []
    for name in now[0].members:
        tonight, before = (merge(part.members[name] for part in parts if name in part.members) for parts in (now, then))
        if tonight.count and before.count:
            for what, distance, limit in (
                ("psi", population_stability(tonight, before), limits.psi),
                ("ks", kolmogorov_smirnov(tonight, before), limits.ks),
            ):
                shifts.append(Shift(what, name, None, None, distance, limit, distance > limit))
        mass, old_mass = (merge(part.label_mass[name] for part in parts if name in part.label_mass) for parts in (now, then))
        if mass.count and old_mass.count:
            shifts.append(_shift("label_mass", mass.mean, old_mass.mean, limits.label_mass, member=name))
    return shifts


def _error_rate(parts: Mapping[str, PartitionStats], manifest: Manifest) -> float:
    """Share of the rows without a score: as `scored/` has them, and where a partition has no verdicts, as `raw/` has."""
    rows = scored = 0
    for place, part in parts.items():
        verdicts = manifest.finalized.get(hive_path(place))
        rows += sum(part.rows.values())
        scored += part.rows.get(Status.OK.value, 0) if verdicts is None else verdicts.scored
    return 1 - scored / rows if rows else 0.0


def _errors(limits: Drift, rates: list[float]) -> Shift:
    """Tonight's rate of errors against the history's; only a rise is drift."""
    rise = rates[0] - rates[1]
    return Shift("error_rate", None, rates[0], rates[1], rise, limits.error_rate, rise > limits.error_rate)


def _lengths(limits: Drift, now: list[PartitionStats], then: list[PartitionStats]) -> Shift:
    """Sentences a scored response."""
    lengths = []
    for parts in (now, then):
        scored = sum(part.rows.get(Status.OK.value, 0) for part in parts)
        lengths.append(sum(part.sentences for part in parts) / scored)
    return _shift("sentences", lengths[0], lengths[1], limits.sentences, scale=lengths[1])


def _shift(what: str, now: float, then: float, limit: float, *, scale: float = 1.0, member: str | None = None) -> Shift:
    distance = abs(now - then) / scale
    return Shift(what, member, now, then, distance, limit, distance > limit)


def _flagged(parts: Iterable[Verdicts]) -> float | None:
    """Share of the scored responses that were flagged."""
    found = list(parts)
    scored = sum(part.scored for part in found)
    return sum(part.flagged for part in found) / scored if scored else None
