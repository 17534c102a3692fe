"""Print the result of `calibrate`."""

from collections.abc import Iterator, Mapping

from rich.console import Console

from ragassay.jobs.display.lines import print_lines
from ragassay.jobs.display.scores import describe_threshold
from ragassay.jobs.evaluation.calibrate import is_better_than_chance
from ragassay.jobs.report.printed.evaluation import print_unequal_sampling
from ragassay.pipeline.calibration.probability import predict_probability
from ragassay.pipeline.calibration.target import CLASSES
from ragassay.schemas.calibration import Calibration


def print_calibration(calibration: Calibration, console: Console) -> None:
    """Print a calibration and its measured quality."""
    print_lines(_calibration_lines(calibration), console)
    print_unequal_sampling(calibration.label, console)


def _calibration_lines(calibration: Calibration) -> Iterator[tuple[str, str]]:
    outcome = {None: "", True: ": met", False: ": TARGET NOT MET"}[calibration.target_met]
    if is_better_than_chance(calibration.measured) is False:
        outcome += f"{', but' if calibration.target_met else ':'} NO BETTER THAN CHANCE"
    yield "calibration", f"{calibration.calibration_id}, for {calibration.target}{outcome}"
    if calibration.label is not None:
        rows = ", ".join(f"{n:,} {label}" for label, n in sorted(calibration.rows.items()))
        yield "labels", f"{calibration.label}: {rows}"
    yield from _threshold_lines(calibration)
    weights = ", ".join(f"{name} {member.weight:.3g}" for name, member in calibration.members.items())
    yield "rule", f"{calibration.mean} mean, {calibration.positive} (epsilon {calibration.epsilon:g}), weights {weights}"
    for prefix, measured_on in (("in_sample_", "on the labeled rows"), ("held_out_", "on held-out items")):
        measures = {k.removeprefix(prefix): v for k, v in calibration.measured.items() if k.startswith(prefix)}
        if measures:
            yield measured_on, _describe_measures(measures, calibration.positive_class)
    before, after = calibration.measured.get("f1_before"), calibration.measured.get("held_out_f1") or 0
    if before is not None and before > after:
        yield "before", f"the current verdicts have a better F1 on the same held-out items, {before:.3f}: label more items"
    if calibration.measured.get("flagged_of_all") is not None:
        yield (
            "on all rows",
            f"{calibration.measured['flagged_of_all']:.1%} of {calibration.measured['responses']:,.0f} responses flagged",
        )
    if calibration.certificate is not None:
        certificate = calibration.certificate
        yield (
            "certified",
            f"precision >= {certificate.precision:g}, wrong with probability at most {certificate.delta:g}: "
            f"{certificate.correct} of the {certificate.selected} selected rows are {calibration.positive_class} "
            f"(lower bound {certificate.bound:.3f})",
        )
    if calibration.probability is not None:
        yield (
            "P(supported)",
            f"{calibration.probability.kind}; expected calibration error {_describe_error(calibration.measured)}",
        )


def _threshold_lines(calibration: Calibration) -> Iterator[tuple[str, str]]:
    tau, fitted = calibration.threshold, calibration.probability
    yield "threshold", describe_threshold(tau, predict_probability(fitted, tau))
    instead = "" if fitted is None else ": compare P(supported)"
    yield "scale", f"scores use this calibration's mu and sigma, so earlier thresholds are on another scale{instead}"


def _describe_error(measured: Mapping[str, float | None]) -> str:
    """Describe the calibration error on held-out items, and that of the probabilities before."""
    before, after = measured.get("ece_before"), measured.get("ece_after")
    if after is None:
        return "unknown"
    if before is None:
        return f"{after:.3f} on held-out items"
    remark = "" if after < before else ": no better than before, label more items"
    return f"{after:.3f} on held-out items, {before:.3f} before{remark}"


def _describe_measures(measures: Mapping[str, float | None], positive_class: str) -> str:
    """Describe a threshold on labeled rows, next to the share of the class among all; the measures are named as in targets."""
    kind = next(name for name, value in CLASSES.items() if value == positive_class)
    parts = []
    for name, total in (("precision", "selected"), ("recall", "positives")):
        value, counts = measures[name], f"{measures['hits']:,.0f} of {measures[total]:,.0f}"
        parts.append(f"{kind}-{name} {'none' if value is None else format(value, '.3f')} ({counts})")
    parts[0] += f" against {(measures['positives'] or 0) / (measures['rows'] or 1):.3f} of all"
    f1 = measures["f1"]
    parts.append(f"{kind}-f1 {'none' if f1 is None else format(f1, '.3f')}")
    return f"{', '.join(parts)}, {measures['flagged']:.1%} flagged"
