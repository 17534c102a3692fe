"""Describe a drift check in one sentence: the same in the summary of a run, in the report and in `drift`."""

from ragassay.jobs.display.counted import format_count
from ragassay.schemas.manifest import DriftCheck, Shift

SHOWN_PARTITIONS = 3
METRIC_WORDS = {
    "psi": "values (PSI)",
    "ks": "values (KS)",
    "label_mass": "label mass",
    "error_rate": "share unscorable",
    "sentences": "sentences per response",
    "flagged": "share flagged",
}
"""Metric of a drift check -> its name."""


def describe_drift(check: DriftCheck) -> str:
    """Describe a drift check: the latest partitions, the number of earlier ones, and what drifted."""
    names = ", ".join(check.latest[:SHOWN_PARTITIONS])
    hidden = f" and {len(check.latest) - SHOWN_PARTITIONS:,} more" if len(check.latest) > SHOWN_PARTITIONS else ""
    latest = f"{names}{hidden}: " if names else ""
    if not check.shifts:
        return f"{latest}not checked, {check.note}"
    counted = format_count(len(check.shifts), "comparison")
    against = f"{counted} against {format_count(len(check.history), 'earlier partition')}"
    outcome = f"{len(check.drifted):,} of {against}: " if check.drifted else f"none in {against}"
    more = f"; nothing else is checked, {check.note}" if check.note else ""
    return f"{latest}{outcome}{'; '.join(map(_describe_shift, check.drifted))}{more}"


def describe_outcome(shift: Shift) -> str:
    """Describe the outcome of a comparison."""
    return "drifted" if shift.drifted else "within chance" if shift.distance > shift.limit else "within the limit"


def _describe_shift(shift: Shift) -> str:
    name = METRIC_WORDS.get(shift.metric, shift.metric) + (f" of {shift.member}" if shift.member else "")
    change = ""
    if shift.latest is not None and shift.history is not None:
        change = f", {shift.latest:.3g} after {shift.history:.3g}"
    return f"{name} {shift.distance:.3g} (limit {shift.limit:g}{change})"
