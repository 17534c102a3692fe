"""What the default job should be, chosen on all dev sets but one and tried on that one: `python -m tests.benchmarks.defaults
OUTPUT [--slm facts] [--write jobs/verdicts/bundled_calibration.json]`.

OUTPUT is a finalised output of `tests.benchmarks.dev_sets`. Members, weight of the SLM, its value, mean and policy are those
with the highest mean AUROC (of responses, and of sentences where they have labels) over the other sets. Then the thresholds,
of a response by its balanced accuracy, and of a sentence by its precision and what it costs: the run's own moments with a fifth
flagged, beside moments, thresholds and probabilities of the other sets. --write makes the bundled calibration, of all sets.
"""

import argparse
import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from sklearn.metrics import balanced_accuracy_score, f1_score

from ragassay.jobs.evaluation.labeled import LabeledResponses, load_labeled, read_member_values
from ragassay.jobs.evaluation.labels import LabelSource
from ragassay.jobs.output.manifest import open_output, read_manifest
from ragassay.pipeline.arrays import Bools, Floats, Ints
from ragassay.pipeline.calibration.metrics import compute_auroc
from ragassay.pipeline.calibration.probability import compute_calibration_error, fit_probability, predict_probabilities
from ragassay.pipeline.members import ValueKind
from ragassay.pipeline.verdict.aggregate import Mean, PositivityPolicy
from ragassay.pipeline.verdict.normalize import NormalizationFit, combine_members
from ragassay.pipeline.verdict.rule import Rule, apply_rule
from ragassay.schemas.calibration import CalibratedMember, Calibration, ProbabilityMap

SETS = ("ragtruth", "handbook", "fever", "nhnet", "summedits", "everyday")
"""Sets of other origin than what the verifier was trained on, which jobs/data/written is not."""

SHARES = (0.25, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
MEANS = ((Mean.HARMONIC, PositivityPolicy.CDF), (Mean.HARMONIC, PositivityPolicy.CLIP),
         (Mean.GEOMETRIC, PositivityPolicy.CDF),
         (Mean.ARITHMETIC, PositivityPolicy.CDF), (Mean.MIN, PositivityPolicy.NONE),
         (Mean.MIN, PositivityPolicy.CDF))  # fmt: skip
LOGPROB_VALUES = [value for value in ValueKind if value.is_from_logprobs]
EPSILON = 0.01
QUANTILE = 0.2
LANGUAGES = ("en",)
"""Languages of the labelled sets."""
SENTENCE_PRECISION = 0.9
"""Of the sentences that are flagged so many are not supported, where as many are as are not; the mean of the sets."""
LARGEST_F1_LOSS = 0.01
"""F1 of a set's hallucinated responses that the threshold of a sentence may cost, beside the mean alone."""
SENTENCE_THRESHOLDS = np.linspace(0.02, 0.6, 59)
SAMPLE = 120
"""Responses a set that map and threshold are fitted to: each set counts the same."""


class Rows(Protocol):
    """What is needed of labelled responses: see `jobs.evaluation.labeled.LabeledResponses`."""

    @property
    def labels(self) -> Sequence[Any]: ...
    @property
    def sentence_values(self) -> dict[str, Floats]: ...
    @property
    def sentence_counts(self) -> Ints: ...
    @property
    def is_correct(self) -> Bools: ...
    @property
    def sentence_truth(self) -> Floats: ...


@dataclass(frozen=True)
class Choice:
    """A default: the SLM's value, weights of all members (0 leaves one out), mean and policy."""

    value: ValueKind
    weights: tuple[tuple[str, float], ...]
    mean: Mean
    positive: PositivityPolicy

    @property
    def key(self) -> str:
        """In words."""
        members = ", ".join(f"{name} {weight:.2f}" for name, weight in self.weights if weight)
        return f"{self.value.value}; {members}; {self.mean.value}, {self.positive.value}"


def list_choices(slm: str, detectors: list[str]) -> list[Choice]:
    """All that is tried."""
    choices = []
    for value, (mean, positive) in itertools.product(LOGPROB_VALUES, MEANS):
        choices.append(Choice(value, ((slm, 1.0), *((d, 0.0) for d in detectors)), mean, positive))
        for size in range(1, len(detectors) + 1):
            for chosen, share in itertools.product(itertools.combinations(detectors, size), SHARES):
                weights = {d: (1 - share) / size if d in chosen else 0.0 for d in detectors}
                choices.append(Choice(value, ((slm, share), *weights.items()), mean, positive))
    return choices


def fit_moments(values: dict[str, Floats]) -> dict[str, NormalizationFit]:
    """mu and sigma of each member's values."""
    known = {name: x[~np.isnan(x)] for name, x in values.items()}
    return {name: NormalizationFit(float(x.mean()), float(x.std()) or 1.0, len(x), float(x.min())) for name, x in known.items()}


def pool_fits(fits: list[dict[str, NormalizationFit]]) -> dict[str, NormalizationFit]:
    """mu and sigma of several sets, each of which counts the same."""
    pooled = {}
    for name in fits[0]:
        member_fits = [set_fits[name] for set_fits in fits]
        mu = float(np.mean([fit.mu for fit in member_fits]))
        sigma = float(np.sqrt(np.mean([fit.sigma**2 + (fit.mu - mu) ** 2 for fit in member_fits])))
        pooled[name] = NormalizationFit(mu, sigma, sum(fit.count for fit in member_fits), min(fit.low for fit in member_fits))
    return pooled


def score_responses(rows: Rows, choice: Choice, fits: dict[str, NormalizationFit], sentence: float | None = None) -> Floats:
    """Response scores; `sentence` is the threshold of a sentence as a fraction of the response's."""
    rule = Rule(fits, choice.mean, choice.positive, EPSILON, dict(choice.weights), sentence)
    return apply_rule(rule, rows.sentence_values, rows.sentence_counts).response


def compute_precisions(rows: Rows, choice: Choice, fits: dict[str, NormalizationFit]) -> Floats | None:
    """Precision of the sentences at or below each of SENTENCE_CUTS, with both labels weighed alike; None without labels."""
    rule = Rule(fits, choice.mean, choice.positive, EPSILON, dict(choice.weights))
    positive = apply_rule(rule, rows.sentence_values, rows.sentence_counts).ceiling
    labeled = ~np.isnan(rows.sentence_truth) & ~np.isnan(positive)
    supported = rows.sentence_truth[labeled] == 1
    if supported.all() or not supported.any() or (rows.sentence_counts == 1).all():
        return None
    flagged = positive[labeled][:, None] <= SENTENCE_THRESHOLDS
    caught, wrong = flagged[~supported].mean(axis=0), flagged[supported].mean(axis=0)
    return np.asarray(caught / np.maximum(caught + wrong, 1e-12))


def fit_response_threshold(parts: Sequence[Rows], choice: Choice, fits: dict[str, NormalizationFit]) -> float:
    """The threshold of the mean alone with the best balanced accuracy over all rows, of which each set's weigh the same."""
    scores = np.concatenate([score_responses(rows, choice, fits) for rows in parts])
    good = np.concatenate([rows.is_correct for rows in parts])
    weights = np.concatenate([np.full(len(rows.labels), 1 / len(rows.labels)) for rows in parts])
    candidates = np.quantile(scores, np.linspace(0.02, 0.9, 200))
    return float(max(candidates, key=lambda tau: balanced_accuracy_score(good, scores > tau, sample_weight=weights)))


def fit_sentence_threshold(parts: Sequence[Rows], choice: Choice, fits: dict[str, NormalizationFit], tau: float) -> float:
    """The highest threshold of a sentence that has SENTENCE_PRECISION, and costs no set more than MOST_LOST of its F1.

    Args:
        parts: Labelled sets.
        choice: Members and mean.
        fits: Their moments.
        tau: Threshold of a response by its mean.
    """
    precision = np.mean([part for rows in parts if (part := compute_precisions(rows, choice, fits)) is not None], axis=0)
    before = [f1_score(~rows.is_correct, score_responses(rows, choice, fits) <= tau) for rows in parts]
    for index in np.flatnonzero((precision >= SENTENCE_PRECISION) & (tau >= SENTENCE_THRESHOLDS))[::-1]:
        cut = float(SENTENCE_THRESHOLDS[index])
        after = [f1_score(~rows.is_correct, score_responses(rows, choice, fits, cut / tau) <= tau) for rows in parts]
        if max(np.subtract(before, after)) <= LARGEST_F1_LOSS:
            return cut
    return float(SENTENCE_THRESHOLDS[0])


def compute_mean_auroc(
    rows: LabeledResponses, choice: Choice, sentences: Floats, has_label: Bools, fits: dict[str, NormalizationFit]
) -> float:
    """Mean of a set's AUROC of responses, and of sentences where they have labels."""
    aurocs = [compute_auroc(score_responses(rows, choice, fits), rows.is_correct)]
    if has_label.any() and (rows.sentence_counts > 1).any():
        aurocs.append(compute_auroc(sentences[has_label], rows.sentence_truth[has_label] == 1))
    return float(np.mean(aurocs))


def compute_aurocs(sets: dict[ValueKind, dict[str, LabeledResponses]], tried: list[Choice]) -> Floats:
    """(choices, sets): the worth of each."""
    aurocs = np.zeros((len(tried), len(SETS)))
    for column, name in enumerate(SETS):
        for value in LOGPROB_VALUES:
            rows = sets[value][name]
            fits = fit_moments(rows.sentence_values)
            has_label = ~np.isnan(rows.sentence_truth)
            sentence_scores: dict[tuple[tuple[str, float], ...], Floats] = {}
            for i, choice in enumerate(tried):
                if choice.value is value:
                    if choice.weights not in sentence_scores:
                        sentence_scores[choice.weights] = np.nan_to_num(
                            combine_members(rows.sentence_values, fits, dict(choice.weights))
                        )
                    aurocs[i, column] = compute_mean_auroc(rows, choice, sentence_scores[choice.weights], has_label, fits)
    return aurocs


@dataclass(frozen=True)
class Fitted:
    """What several sets give.

    Attributes:
        fits: Moments.
        probability: Map from response scores.
        threshold: Of a response.
        sentence: Threshold of a sentence as a fraction of it.
    """

    fits: dict[str, NormalizationFit]
    probability: ProbabilityMap
    threshold: float
    sentence: float


def fit_sets(parts: Sequence[Rows], choice: Choice) -> Fitted:
    """Moments, thresholds and map to a probability of several sets; each counts the same.

    The threshold of a response has the best balanced accuracy by the mean alone; that of a sentence follows it.
    """
    fits = pool_fits([fit_moments(rows.sentence_values) for rows in parts])
    rng = np.random.default_rng(0)
    sampled = [rng.permutation(len(rows.labels))[:SAMPLE] for rows in parts]

    def score_sampled(sentence: float | None) -> Floats:
        of_sets = zip(parts, sampled, strict=True)
        return np.concatenate([score_responses(rows, choice, fits, sentence)[indices] for rows, indices in of_sets])

    is_correct = np.concatenate([rows.is_correct[indices] for rows, indices in zip(parts, sampled, strict=True)])
    tau = fit_response_threshold(parts, choice, fits)
    cut = fit_sentence_threshold(parts, choice, fits, tau)
    return Fitted(fits, fit_probability(score_sampled(cut / tau), is_correct), tau, cut / tau)


def render_metrics(is_correct: Bools, scores: Floats, tau: float) -> str:
    """Share flagged, balanced accuracy and F1 of the hallucinated at a threshold."""
    passed = scores > tau
    f1 = f1_score(~is_correct, ~passed, zero_division=0)
    return f"{(~passed).mean():.2f} | {balanced_accuracy_score(is_correct, passed):.3f} | {f1:.3f}"


def print_choices(tried: list[Choice], aurocs: Floats, slm: str, detectors: list[str]) -> None:
    """Print what is best on all sets but one, there; and what is best on all."""
    print(f"{len(tried):,} choices; mean AUROC of responses and sentences\n")
    print("| left out | chosen on the others | there | best there |")
    print("| --- | --- | --- | --- |")
    for column, name in enumerate(SETS):
        best = int(np.delete(aurocs, column, axis=1).mean(axis=1).argmax())
        print(f"| {name} | {tried[best].key} | {aurocs[best, column]:.3f} | {aurocs[:, column].max():.3f} |")
    print(f"\n| on all | mean | {' | '.join(SETS)} |\n| --- | --- |{' --- |' * len(SETS)}")
    equal = 1 / (1 + len(detectors))
    slm_only = [i for i, choice in enumerate(tried) if choice.value is ValueKind.LOG_ODDS and dict(choice.weights)[slm] == 1]
    equal_weights = [
        i for i, choice in enumerate(tried) if choice.value is ValueKind.LOG_ODDS and {w for _, w in choice.weights} == {equal}
    ]
    for i in [*(-aurocs.mean(axis=1)).argsort()[:8], *slm_only, *equal_weights]:
        print(f"| {tried[i].key} | {aurocs[i].mean():.3f} | {' | '.join(f'{x:.3f}' for x in aurocs[i])} |")


def print_thresholds(sets: Mapping[ValueKind, Mapping[str, Rows]], chosen: dict[str, Choice]) -> None:
    """Print what a threshold and probabilities of the other sets give on each set, beside the run's own.

    Args:
        sets: The sets, by the SLM's value.
        chosen: Set -> the choice that knows nothing of it.
    """
    metrics = "share flagged | balanced accuracy | F1, hallucinated"
    conditions = ("own moments, a fifth flagged", "moments and threshold of the others", "own moments, threshold of the others")
    print(
        f"\n| set | {' | '.join(f'{condition}: {metrics}' for condition in conditions)} | error of the probability |\n| --- |{' --- |' * 10}"
    )
    for name, choice in chosen.items():
        sets_of_value = sets[choice.value]
        rows = sets_of_value[name]
        others = fit_sets([sets_of_value[other] for other in SETS if other != name], choice)
        scores_by_own = score_responses(rows, choice, fit_moments(rows.sentence_values), others.sentence)
        scores_by_others = score_responses(rows, choice, others.fits, others.sentence)
        error = compute_calibration_error(predict_probabilities(others.probability, scores_by_others), rows.is_correct)
        threshold = float(np.quantile(scores_by_own, QUANTILE))
        cells = [
            render_metrics(rows.is_correct, *condition)
            for condition in (
                (scores_by_own, threshold),
                (scores_by_others, others.threshold),
                (scores_by_own, others.threshold),
            )
        ]
        print(f"| {name} | {' | '.join(cells)} | {error:.3f} |")


def make_calibration(sets: Mapping[str, Rows], chosen: Choice, fingerprint: dict[str, Any]) -> Calibration:
    """The calibration of all sets that comes with the package."""
    fitted = fit_sets(list(sets.values()), chosen)
    weights = dict(chosen.weights)
    members = {
        name: CalibratedMember(
            chosen.value.value if i == 0 else ValueKind.SCORE.value, f.mu, f.sigma, f.count, f.low, weights[name]
        )
        for i, (name, f) in enumerate(fitted.fits.items())
        if weights[name]
    }
    kept = {name: fingerprint[name] for name in ("method", "splitter")}
    kept["slms"] = {n: {**s, "value": chosen.value.value} for n, s in fingerprint["slms"].items() if n in members}
    kept["detectors"] = {n: d for n, d in fingerprint["detectors"].items() if n in members}
    return Calibration(
        calibration_id="bundled",
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        target=f"balanced accuracy on labeled sets from other sources, and sentences with precision {SENTENCE_PRECISION:g}",
        positive_class="supported",
        label=None,
        rows={name: len(rows.labels) for name, rows in sets.items()},
        members=members,
        mean=chosen.mean.value,
        positive=chosen.positive.value,
        epsilon=EPSILON,
        threshold=fitted.threshold,
        sentence=fitted.sentence,
        probability=fitted.probability,
        certificate=None,
        measured={},
        fingerprint=kept,
        languages=LANGUAGES,
    )


def main() -> None:
    """Print the tables; write the calibration."""
    parser = argparse.ArgumentParser()
    parser.add_argument("output")
    parser.add_argument("--slm", default="facts")
    parser.add_argument("--write")
    parser.add_argument("--take", help="JSON of value, mean, positive and weights: take these instead of the best")
    options = parser.parse_args()
    folder = open_output(options.output)
    manifest = read_manifest(folder)
    detectors = [name for name, value in read_member_values(manifest).items() if value == ValueKind.SCORE]
    sets = {}
    for value in LOGPROB_VALUES:
        values = {options.slm: value.value, **dict.fromkeys(detectors, ValueKind.SCORE.value)}
        sets[value] = {n: load_labeled(folder, values, LabelSource("label", where={"dev_set": n})) for n in SETS}
    choices = list_choices(options.slm, detectors)
    aurocs = compute_aurocs(sets, choices)
    print_choices(choices, aurocs, options.slm, detectors)
    chosen = choices[int(aurocs.mean(axis=1).argmax())]
    print_thresholds(sets, {n: choices[int(np.delete(aurocs, i, axis=1).mean(axis=1).argmax())] for i, n in enumerate(SETS)})
    if options.take:
        settings = json.loads(options.take)
        weights = tuple((name, settings["weights"].get(name, 0.0)) for name in (options.slm, *detectors))
        chosen = Choice(ValueKind(settings["value"]), weights, Mean(settings["mean"]), PositivityPolicy(settings["positive"]))
    print(f"\nTaken: {chosen.key}")
    print_thresholds(sets, dict.fromkeys(SETS, chosen))
    if options.write:
        text = make_calibration(sets[chosen.value], chosen, manifest.fingerprint).to_json()
        Path(options.write).write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
