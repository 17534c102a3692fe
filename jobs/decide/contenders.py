"""The scores that `evaluate` compares, by name: the ensemble, its members, other rules, and the two trivial baselines."""

from collections.abc import Mapping

import numpy as np

from ragassay.jobs.decide.choose import calibrated_on_other_half
from ragassay.jobs.decide.labelled import Labelled
from ragassay.pipeline.arrays import Floats
from ragassay.pipeline.verdict.aggregate import Mean, Positive, legal_pairs
from ragassay.pipeline.verdict.normalize import Fit, ensemble
from ragassay.pipeline.verdict.rule import Rule, apply_rule
from ragassay.schemas.manifest import FitRecord, Manifest

AS_FINALISED = "ensemble, as finalised"
AS_CASCADE = "cascade, as finalised"
ENSEMBLE = "ensemble"
ALONE = " alone"
BASELINE = "baseline: "
JUDGE = "judge "
SENTENCES = "supported against unsupported sentences"


def stored_rule(manifest: Manifest, fits: Mapping[str, Fit]) -> Rule:
    """The rule of the last verdicts, with these mu and sigma."""
    record = stored_fit(manifest)
    return Rule(fits, Mean(record.mean), Positive(record.positive), record.epsilon, record.weights, record.sentence)


def stored_fit(manifest: Manifest) -> FitRecord:
    """How the last verdicts were made."""
    assert manifest.last_fit, "rows without a score were refused before"
    return manifest.last_fit


def response_lines(rows: Labelled, rule: Rule) -> dict[str, Floats]:
    """The paper's comparison: name -> a score a response, NaN where there is none.

    The ensemble as finalised; each member alone, and a calibration of them; the whole response without the splitter; five means
    times the policies.
    """
    lines = {AS_FINALISED: rows.score}
    if len(rows.values) > 1:
        for name, values in rows.values.items():
            alone = Rule({name: rule.fits[name]}, rule.mean, rule.positive, rule.epsilon)
            lines[f"{name}{ALONE}"] = apply_rule(alone, {name: values}, rows.counts).response
        lines["calibrated on the other half"] = calibrated_on_other_half(rows, rule)
    for name, whole in rows.whole.items():
        if not np.isnan(whole).all():
            lines[f"{name}, whole response"] = whole
    for mean, policy in legal_pairs():
        other = Rule(rule.fits, mean, policy, rule.epsilon, rule.weights)
        lines[f"{mean}, {policy}"] = apply_rule(other, rows.values, rows.counts).response
    return lines


def baseline_lines(rows: Labelled) -> dict[str, Floats]:
    """Name -> a score a response that needs neither a model nor a context's meaning."""
    return {f"{BASELINE}shorter response": -rows.words, f"{BASELINE}words in context": rows.overlap}


def sentence_lines(rows: Labelled, rule: Rule) -> dict[str, Floats]:
    """Name -> a score a sentence, labelled or not; NaN where there is none."""
    scores = {ENSEMBLE: ensemble(rows.values, rule.fits, rule.weights)}
    if len(rows.values) > 1:
        scores |= {f"{name}{ALONE}": values for name, values in rows.values.items()}
    return scores | {f"{BASELINE}shorter sentence": -rows.sentence_words, f"{BASELINE}words in context": rows.sentence_overlap}
