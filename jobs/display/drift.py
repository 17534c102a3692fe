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
    more = f" and {len(check.latest) - SHOWN_PARTITIONS:,} more" if len(check.latest) > SHOWN_PARTITIONS else ""
    latest = f"{names}{more}: " if names else ""
    if check.note:
        return f"{latest}not checked, {check.note}"
    against = f"against {format_count(len(check.history), 'earlier partition')}"
    if not check.drifted:
        return f"{latest}none in {format_count(len(check.shifts), 'comparison')} {against}"
    shifts = "; ".join(map(_describe_shift, check.drifted))
    return f"{latest}{len(check.drifted):,} of {format_count(len(check.shifts), 'comparison')} {against}: {shifts}"


def describe_outcome(shift: Shift) -> str:
    """Describe the outcome of a comparison."""
    return "drifted" if shift.drifted else "within chance" if shift.distance > shift.limit else "within the limit"


def _describe_shift(shift: Shift) -> str:
    name = METRIC_WORDS.get(shift.metric, shift.metric) + (f" of {shift.member}" if shift.member else "")
    change = ""
    if shift.latest is not None and shift.history is not None:
        change = f", {shift.latest:.3g} after {shift.history:.3g}"
    return f"{name} {shift.distance:.3g} (limit {shift.limit:g}{change})"
