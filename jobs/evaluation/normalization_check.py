"""Check how much verdicts depend on which half of the data mu and sigma come from."""

from typing import Any

import numpy as np

from ragassay.jobs.config.verdict import Normalize
from ragassay.jobs.evaluation.choose_rule import read_stored_rule, require_fit
from ragassay.jobs.evaluation.labeled_responses import LabeledResponses
from ragassay.jobs.storage.folder import Folder
from ragassay.jobs.verdicts.fit import fit_members
from ragassay.jobs.verdicts.partition_stats import read_partition_stats
from ragassay.pipeline.arrays import Floats
from ragassay.pipeline.errors import FitError
from ragassay.pipeline.member_values import ValueKind
from ragassay.pipeline.verdict.ensemble import NormalizationFit
from ragassay.pipeline.verdict.moments import compute_moments
from ragassay.pipeline.verdict.rule import apply_rule
from ragassay.schemas.evaluation import NormalizationCheck
from ragassay.schemas.manifest import Manifest


def check_normalization(
    output: Folder, manifest: Manifest, values: dict[str, str], rows: LabeledResponses
) -> NormalizationCheck:
    """Fit mu and sigma to two halves of the data, and count the verdicts that differ."""
    source = require_fit(manifest).source
    if source not in ("run", "history"):
        return NormalizationCheck(f"mu and sigma come from the {source}, not from these responses", {}, None)
    stats = read_partition_stats(output, values)
    partitions = sorted(stats)
    try:
        if len(partitions) > 1:
            split = "every other partition"
            fits = [fit_members(Normalize(), values, stats, partitions[half::2], 1) for half in (0, 1)]
        else:
            split = "every other item of the labeled responses"
            half_of_sentence = np.repeat(rows.groups, rows.sentence_counts) % 2
            fits = [
                {name: _fit_member(name, values[name], v[half_of_sentence == half]) for name, v in rows.sentence_values.items()}
                for half in (0, 1)
            ]
    except FitError:
        return NormalizationCheck(f"{split}: too few values to fit", {}, None)
    supported = [
        apply_rule(read_stored_rule(manifest, fit), rows.sentence_values, rows.sentence_counts).response > rows.thresholds
        for fit in fits
    ]
    records: dict[str, Any] = {name: [{"mu": fit[name].mu, "sigma": fit[name].sigma} for fit in fits] for name in values}
    return NormalizationCheck(split, records, float((supported[0] != supported[1]).mean()))


def _fit_member(name: str, value: str, values: Floats) -> NormalizationFit:
    moments = compute_moments(values[~np.isnan(values)])
    return ValueKind(value).fit(name, moments)
