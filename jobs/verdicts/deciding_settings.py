"""Compare the settings that decided the verdicts of an output's partitions. A run decides only partitions without verdicts."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import Any

from ragassay.jobs.config.verdict import DEFAULT_QUANTILE, Threshold
from ragassay.jobs.output.partitions import natural_key
from ragassay.jobs.verdicts.resolve_parts import THIS_RUN, VerdictParts
from ragassay.schemas.manifest import Manifest, Run
from ragassay.schemas.verdict_origins import Origins

Settings = dict[str, Any]
"""Settings of verdicts by name, without the values that a run computes from its own scores."""

_SHOWN_PARTITIONS = 3


def list_job_settings(parts: VerdictParts, threshold: Threshold) -> Settings:
    """List the settings by which a job decides."""
    quantile = DEFAULT_QUANTILE if threshold.quantile is None else threshold.quantile
    tau = f"quantile {quantile:g}" if parts.tau is None else parts.tau
    rule = parts.rule
    return _list_settings(parts.origins, tau, rule.mean, rule.positive, rule.epsilon, rule.sentence_fraction, rule.weights)


def describe_change(manifest: Manifest, settings: Settings, rewritten: Collection[str]) -> str | None:
    """Describe how settings differ from those of the latest verdicts of an output.

    Args:
        manifest: Manifest of the output.
        settings: The settings by which a run decides.
        rewritten: Hive paths of the partitions that the run decides.

    Returns:
        A warning; None if nothing differs or the run decides all partitions.
    """
    groups = _group_partitions(manifest, rewritten)
    if not groups or groups[-1][0] == settings:
        return None
    latest, names = groups[-1]
    return (
        f"this run decides by other settings than the latest verdicts: {_describe_differences(latest, settings)}. Partitions "
        f"with verdicts keep them ({_name_partitions(names)}), and shares of flagged responses can't be compared. Restore "
        "the settings in the job file, or run `ragassay finalize OUTPUT --config JOB` afterwards to decide all partitions alike"
    )


def describe_mixture(manifest: Manifest) -> list[str]:
    """Describe which partitions of an output were decided by other settings than the latest ones."""
    *others, (latest, names) = _group_partitions(manifest, ()) or [({}, [])]
    return [
        f"{_name_partitions(names)} and {_name_partitions(earlier)} were decided by different settings, so their shares of "
        f"flagged responses can't be compared: {_describe_differences(settings, latest)}. `ragassay finalize OUTPUT "
        "--config JOB` decides all partitions alike."
        for settings, earlier in others
    ]


def _group_partitions(manifest: Manifest, excluded: Collection[str]) -> list[tuple[Settings, list[str]]]:
    """Group the partitions with scores by the settings of their verdicts; the group of the latest run is the last."""
    names: dict[str, list[str]] = defaultdict(list)
    for name, verdicts in manifest.finalized.items():
        if verdicts.scored and name not in excluded:
            names[verdicts.run_id].append(name)
    groups: list[tuple[Settings, list[str]]] = []
    for run in manifest.runs:
        settings = _list_run_settings(run) if run.run_id in names else None
        if settings is not None:
            same = [group for group in groups if group[0] == settings]
            groups = [group for group in groups if group[0] != settings]
            groups.append((settings, [*(name for _, known in same for name in known), *names[run.run_id]]))
    return groups


def _list_run_settings(run: Run) -> Settings | None:
    """List the settings by which a run decided; None if it had no score."""
    origins, fit, threshold = run.origins, run.fit, run.threshold
    if origins is None or fit is None or threshold is None:
        return None
    is_quantile = origins.threshold in THIS_RUN.values()
    tau = threshold.source.partition(" of ")[0] if is_quantile else threshold.value
    return _list_settings(origins, tau, fit.mean, fit.positive, fit.epsilon, fit.sentence, fit.weights)


def _list_settings(
    origins: Origins,
    tau: float | str | None,
    mean: str,
    positive: str,
    epsilon: float,
    sentence: float | None,
    weights: Mapping[str, float] | None,
) -> Settings:
    in_ensemble = {name: weight for name, weight in (weights or {}).items() if weight}
    has_equal_weights = len(set(in_ensemble.values())) < 2
    return {
        "calibration": origins.calibration,
        "threshold": tau,
        "mu and sigma": origins.moments,
        "mean": str(mean),
        "positive": str(positive),
        "epsilon": epsilon,
        "threshold.sentence": sentence,
        "weights": "equal" if has_equal_weights else ", ".join(f"{name} {in_ensemble[name]:g}" for name in sorted(in_ensemble)),
    }


def _describe_differences(earlier: Settings, current: Settings) -> str:
    """Describe the settings that differ. Another calibration brings another value of most settings."""
    names = [name for name in current if earlier[name] != current[name]]
    shown = names[:2] if names[0] == "calibration" else names
    return ", ".join(f"{name} was {_format_value(earlier[name])}, is {_format_value(current[name])}" for name in shown)


def _format_value(value: Any) -> str:
    return "none" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)


def _name_partitions(names: list[str]) -> str:
    shown = ", ".join(sorted(names, key=natural_key)[-_SHOWN_PARTITIONS:])
    return f"{len(names):,} partitions, the latest {shown}" if len(names) > _SHOWN_PARTITIONS else shown or "all rows"
