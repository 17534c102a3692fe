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
OF_LOGPROBS = [value for value in ValueKind if value.is_from_logprobs]
EPSILON = 0.01
QUANTILE = 0.2
LANGUAGES = ("en",)
"""Languages of the labelled sets."""
SENTENCE_PRECISION = 0.9
"""Of the sentences that are flagged so many are not supported, where as many are as are not; the mean of the sets."""
MOST_LOST = 0.01
"""F1 of a set's hallucinated responses that the threshold of a sentence may cost, beside the mean alone."""
SENTENCE_CUTS = np.linspace(0.02, 0.6, 59)
DRAWN = 120
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


def choices(slm: str, detectors: list[str]) -> list[Choice]:
    """All that is tried."""
    found = []
    for value, (mean, positive) in itertools.product(OF_LOGPROBS, MEANS):
        found.append(Choice(value, ((slm, 1.0), *((d, 0.0) for d in detectors)), mean, positive))
        for size in range(1, len(detectors) + 1):
            for some, share in itertools.product(itertools.combinations(detectors, size), SHARES):
                rest = {d: (1 - share) / size if d in some else 0.0 for d in detectors}
                found.append(Choice(value, ((slm, share), *rest.items()), mean, positive))
    return found


def fits_in(values: dict[str, Floats]) -> dict[str, NormalizationFit]:
    """mu and sigma of each member's values."""
    known = {name: x[~np.isnan(x)] for name, x in values.items()}
    return {name: NormalizationFit(float(x.mean()), float(x.std()) or 1.0, len(x), float(x.min())) for name, x in known.items()}


def pooled(fits: list[dict[str, NormalizationFit]]) -> dict[str, NormalizationFit]:
    """mu and sigma of several sets, each of which counts the same."""
    found = {}
    for name in fits[0]:
        mine = [one[name] for one in fits]
        mu = float(np.mean([fit.mu for fit in mine]))
        sigma = float(np.sqrt(np.mean([fit.sigma**2 + (fit.mu - mu) ** 2 for fit in mine])))
        found[name] = NormalizationFit(mu, sigma, sum(fit.count for fit in mine), min(fit.low for fit in mine))
    return found


def scores(rows: Rows, choice: Choice, fits: dict[str, NormalizationFit], sentence: float | None = None) -> Floats:
    """Response scores; `sentence` is the threshold of a sentence as a fraction of the response's."""
    rule = Rule(fits, choice.mean, choice.positive, EPSILON, dict(choice.weights), sentence)
    return apply_rule(rule, rows.sentence_values, rows.sentence_counts).response


def precision_at(rows: Rows, choice: Choice, fits: dict[str, NormalizationFit]) -> Floats | None:
    """Precision of the sentences at or below each of SENTENCE_CUTS, with both labels weighed alike; None without labels."""
    rule = Rule(fits, choice.mean, choice.positive, EPSILON, dict(choice.weights))
    positive = apply_rule(rule, rows.sentence_values, rows.sentence_counts).ceiling
    labelled = ~np.isnan(rows.sentence_truth) & ~np.isnan(positive)
    good = rows.sentence_truth[labelled] == 1
    if good.all() or not good.any() or (rows.sentence_counts == 1).all():
        return None
    flagged = positive[labelled][:, None] <= SENTENCE_CUTS
    caught, wrong = flagged[~good].mean(axis=0), flagged[good].mean(axis=0)
    return np.asarray(caught / np.maximum(caught + wrong, 1e-12))


def response_threshold(parts: Sequence[Rows], choice: Choice, fits: dict[str, NormalizationFit]) -> float:
    """The threshold of the mean alone with the best balanced accuracy over all rows, of which each set's weigh the same."""
    found = np.concatenate([scores(rows, choice, fits) for rows in parts])
    good = np.concatenate([rows.is_correct for rows in parts])
    weights = np.concatenate([np.full(len(rows.labels), 1 / len(rows.labels)) for rows in parts])
    tried = np.quantile(found, np.linspace(0.02, 0.9, 200))
    return float(max(tried, key=lambda tau: balanced_accuracy_score(good, found > tau, sample_weight=weights)))


def sentence_cut(parts: Sequence[Rows], choice: Choice, fits: dict[str, NormalizationFit], tau: float) -> float:
    """The highest threshold of a sentence that has SENTENCE_PRECISION, and costs no set more than MOST_LOST of its F1.

    Args:
        parts: Labelled sets.
        choice: Members and mean.
        fits: Their moments.
        tau: Threshold of a response by its mean.
    """
    precision = np.mean([part for rows in parts if (part := precision_at(rows, choice, fits)) is not None], axis=0)
    before = [f1_score(~rows.is_correct, scores(rows, choice, fits) <= tau) for rows in parts]
    for place in np.flatnonzero((precision >= SENTENCE_PRECISION) & (tau >= SENTENCE_CUTS))[::-1]:
        cut = float(SENTENCE_CUTS[place])
        after = [f1_score(~rows.is_correct, scores(rows, choice, fits, cut / tau) <= tau) for rows in parts]
        if max(np.subtract(before, after)) <= MOST_LOST:
            return cut
    return float(SENTENCE_CUTS[0])


def worth(rows: LabeledResponses, choice: Choice, sentences: Floats, there: Bools, fits: dict[str, NormalizationFit]) -> float:
    """Mean of a set's AUROC of responses, and of sentences where they have labels."""
    found = [compute_auroc(scores(rows, choice, fits), rows.is_correct)]
    if there.any() and (rows.sentence_counts > 1).any():
        found.append(compute_auroc(sentences[there], rows.sentence_truth[there] == 1))
    return float(np.mean(found))


def table_of_worth(sets: dict[ValueKind, dict[str, LabeledResponses]], tried: list[Choice]) -> Floats:
    """(choices, sets): the worth of each."""
    found = np.zeros((len(tried), len(SETS)))
    for place, name in enumerate(SETS):
        for value in OF_LOGPROBS:
            rows = sets[value][name]
            fits = fits_in(rows.sentence_values)
            there = ~np.isnan(rows.sentence_truth)
            known: dict[tuple[tuple[str, float], ...], Floats] = {}
            for i, choice in enumerate(tried):
                if choice.value is value:
                    if choice.weights not in known:
                        known[choice.weights] = np.nan_to_num(combine_members(rows.sentence_values, fits, dict(choice.weights)))
                    found[i, place] = worth(rows, choice, known[choice.weights], there, fits)
    return found


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


def calibrated(parts: Sequence[Rows], choice: Choice) -> Fitted:
    """Moments, thresholds and map to a probability of several sets; each counts the same.

    The threshold of a response has the best balanced accuracy by the mean alone; that of a sentence follows it.
    """
    fits = pooled([fits_in(rows.sentence_values) for rows in parts])
    rng = np.random.default_rng(0)
    drawn = [rng.permutation(len(rows.labels))[:DRAWN] for rows in parts]

    def of_drawn(sentence: float | None) -> Floats:
        of_sets = zip(parts, drawn, strict=True)
        return np.concatenate([scores(rows, choice, fits, sentence)[some] for rows, some in of_sets])

    good = np.concatenate([rows.is_correct[some] for rows, some in zip(parts, drawn, strict=True)])
    tau = response_threshold(parts, choice, fits)
    cut = sentence_cut(parts, choice, fits, tau)
    return Fitted(fits, fit_probability(of_drawn(cut / tau), good), tau, cut / tau)


def judged(good: Bools, found: Floats, tau: float) -> str:
    """Share flagged, balanced accuracy and F1 of the hallucinated at a threshold."""
    passed = found > tau
    f1 = f1_score(~good, ~passed, zero_division=0)
    return f"{(~passed).mean():.2f} | {balanced_accuracy_score(good, passed):.3f} | {f1:.3f}"


def tell_choices(tried: list[Choice], found: Floats, slm: str, detectors: list[str]) -> None:
    """Print what is best on all sets but one, there; and what is best on all."""
    print(f"{len(tried):,} choices; mean AUROC of responses and sentences\n")
    print("| left out | chosen on the others | there | best there |")
    print("| --- | --- | --- | --- |")
    for place, name in enumerate(SETS):
        best = int(np.delete(found, place, axis=1).mean(axis=1).argmax())
        print(f"| {name} | {tried[best].key} | {found[best, place]:.3f} | {found[:, place].max():.3f} |")
    print(f"\n| on all | mean | {' | '.join(SETS)} |\n| --- | --- |{' --- |' * len(SETS)}")
    equal = 1 / (1 + len(detectors))
    alone = [i for i, choice in enumerate(tried) if choice.value is ValueKind.LOG_ODDS and dict(choice.weights)[slm] == 1]
    evenly = [
        i for i, choice in enumerate(tried) if choice.value is ValueKind.LOG_ODDS and {w for _, w in choice.weights} == {equal}
    ]
    for i in [*(-found.mean(axis=1)).argsort()[:8], *alone, *evenly]:
        print(f"| {tried[i].key} | {found[i].mean():.3f} | {' | '.join(f'{x:.3f}' for x in found[i])} |")


def tell_thresholds(sets: Mapping[ValueKind, Mapping[str, Rows]], chosen: dict[str, Choice]) -> None:
    """Print what a threshold and probabilities of the other sets give on each set, beside the run's own.

    Args:
        sets: The sets, by the SLM's value.
        chosen: Set -> the choice that knows nothing of it.
    """
    head = "share flagged | balanced accuracy | F1, hallucinated"
    ways = ("own moments, a fifth flagged", "moments and threshold of the others", "own moments, threshold of the others")
    print(f"\n| set | {' | '.join(f'{way}: {head}' for way in ways)} | error of the probability |\n| --- |{' --- |' * 10}")
    for name, choice in chosen.items():
        mine = sets[choice.value]
        rows = mine[name]
        others = calibrated([mine[other] for other in SETS if other != name], choice)
        own = scores(rows, choice, fits_in(rows.sentence_values), others.sentence)
        theirs = scores(rows, choice, others.fits, others.sentence)
        error = compute_calibration_error(predict_probabilities(others.probability, theirs), rows.is_correct)
        cut = float(np.quantile(own, QUANTILE))
        cells = [judged(rows.is_correct, *way) for way in ((own, cut), (theirs, others.threshold), (own, others.threshold))]
        print(f"| {name} | {' | '.join(cells)} | {error:.3f} |")


def bundled(mine: Mapping[str, Rows], chosen: Choice, fingerprint: dict[str, Any]) -> Calibration:
    """The calibration of all sets that comes with the package."""
    fitted = calibrated(list(mine.values()), chosen)
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
        rows={name: len(rows.labels) for name, rows in mine.items()},
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
    for value in OF_LOGPROBS:
        values = {options.slm: value.value, **dict.fromkeys(detectors, ValueKind.SCORE.value)}
        sets[value] = {n: load_labeled(folder, values, LabelSource("label", where={"dev_set": n})) for n in SETS}
    tried = choices(options.slm, detectors)
    found = table_of_worth(sets, tried)
    tell_choices(tried, found, options.slm, detectors)
    chosen = tried[int(found.mean(axis=1).argmax())]
    tell_thresholds(sets, {n: tried[int(np.delete(found, i, axis=1).mean(axis=1).argmax())] for i, n in enumerate(SETS)})
    if options.take:
        given = json.loads(options.take)
        weights = tuple((name, given["weights"].get(name, 0.0)) for name in (options.slm, *detectors))
        chosen = Choice(ValueKind(given["value"]), weights, Mean(given["mean"]), PositivityPolicy(given["positive"]))
    print(f"\nTaken: {chosen.key}")
    tell_thresholds(sets, dict.fromkeys(SETS, chosen))
    if options.write:
        text = bundled(sets[chosen.value], chosen, manifest.fingerprint).to_json()
        Path(options.write).write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
