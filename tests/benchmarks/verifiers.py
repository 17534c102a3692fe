"""Verifiers before and after tuning, on the same rows: `python -m tests.benchmarks.verifiers OUTPUT [OUTPUT …]
[--where split=test]`.

Each OUTPUT is a finalised output over the same rows, or more; their jobs had the untuned SLM `smollm2`, the tuned `facts` and
`sources`, and the detectors, or some of them: all are joined. Prints, for correct responses against each other label, and for
sentences: each member alone, the two verifiers together, with novelty, all of them; the baselines; and the same AUROC among
responses of like length. Then how far the verifiers err together.
"""

import argparse
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from jobs.decide.labelled import Labelled, fits_of_all, load_labelled, member_values_of
from jobs.decide.labels import Label, LabelSource
from jobs.state import existing_output, read_manifest
from pipeline.aggregate import Mean, Positive
from pipeline.metrics import measure
from pipeline.normalize import Fit, ensemble
from pipeline.rule import Rule, apply_rule

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

TOGETHER = {
    "SmolLM2, untuned": ["smollm2"],
    "facts": ["facts"],
    "sources": ["sources"],
    "facts, sources": ["facts", "sources"],
    "facts, sources, novelty": ["facts", "sources", "novelty"],
    "entities, attribution, novelty": ["entities", "attribution", "novelty"],
    "facts, entities, attribution, novelty": ["facts", "entities", "attribution", "novelty"],
    "all five": ["facts", "sources", "entities", "attribution", "novelty"],
}
RULES = ((Mean.HARMONIC, Positive.CDF), (Mean.MIN, Positive.NONE))
EPSILON = 0.01
BINS = 5
RESAMPLES = 500


def like_length_auroc(scores: Floats, good: Bools, words: Floats) -> float:
    """AUROC of pairs of a good and a bad one that lie in the same fifth of lengths."""
    bins = np.searchsorted(np.quantile(words, np.linspace(0, 1, BINS + 1)[1:-1]), words)
    won = pairs = 0.0
    for number in range(BINS):
        ours, theirs = (scores[(bins == number) & which] for which in (good, ~good))
        won += float((ours[:, None] > theirs).sum() + 0.5 * (ours[:, None] == theirs).sum())
        pairs += len(ours) * len(theirs)
    return won / pairs if pairs else float("nan")


def lines_of(rows: Labelled, fits: dict[str, Fit]) -> Iterator[tuple[str, Floats]]:
    """Name and response scores of every line of the table."""
    for name, members in TOGETHER.items():
        if set(members) <= rows.values.keys():
            for mean, policy in RULES:
                rule = Rule({m: fits[m] for m in members}, mean, policy, EPSILON)
                yield f"{name}, {mean}", apply_rule(rule, {m: rows.values[m] for m in members}, rows.counts).response
    yield "baseline: shorter response", -rows.words
    yield "baseline: words in context", rows.overlap


def row(name: str, scores: Floats, good: Bools, groups: npt.NDArray[np.int64], words: Floats) -> str:
    """One line of a Markdown table."""
    there = ~np.isnan(scores)
    scores, good, groups, words = scores[there], good[there], np.unique(groups[there], return_inverse=True)[1], words[there]
    found = measure(scores, good, groups, resamples=RESAMPLES)

    def cell(metric: str) -> str:
        value = found[metric]
        return f"{value.value:.3f} ({value.low:.2f} to {value.high:.2f})" if value.low is not None else f"{value.value:.3f}"

    cells = [cell("auroc"), cell("best_f1_hallucinated"), cell("best_f1"), f"{like_length_auroc(scores, good, words):.3f}"]
    return f"| {name} | {' | '.join(cells)} |"


HEAD = "| score | AUROC | best F1, hallucinated | best F1, correct | AUROC at like length |\n| --- | --- | --- | --- | --- |"


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("outputs", nargs="+")
    parser.add_argument("--where", action="append", default=[])
    options = parser.parse_args()
    where = dict(condition.split("=", 1) for condition in options.where)
    rows, fits = _load(options.outputs[0], where)
    for output in options.outputs[1:]:
        more, more_fits = _load(output, {})
        _join(rows, more)
        fits = more_fits | fits
    labels = np.array(rows.labels)
    for other in (Label.WRONG, Label.PARTIAL):
        mine = np.isin(labels, [Label.CORRECT, other])
        if (labels == other).any():
            good = rows.good[mine]
            print(f"\nResponses, correct against {other}: {good.sum():,} and {(~good).sum():,}\n\n{HEAD}")
            for name, scores in lines_of(rows, fits):
                print(row(name, scores[mine], good, rows.groups[mine], rows.words[mine]))
    there = ~np.isnan(rows.sentence_good)
    if set(rows.sentence_good[there]) == {0, 1}:
        good = rows.sentence_good[there] == 1
        groups = np.repeat(rows.groups, rows.counts)[there]
        print(f"\nSentences: {good.sum():,} supported, {(~good).sum():,} not\n\n{HEAD}")
        scores = {
            name: ensemble({m: rows.values[m] for m in members}, {m: fits[m] for m in members})
            for name, members in TOGETHER.items()
            if set(members) <= rows.values.keys()
        }
        scores |= {"baseline: shorter sentence": -rows.sentence_words, "baseline: words in context": rows.sentence_overlap}
        for name, found in scores.items():
            print(row(name, found[there], good, groups, rows.sentence_words[there]))
        if {"facts", "sources"} <= rows.values.keys():
            _errors(rows, there, good)


def _load(output: str, where: dict[str, str]) -> tuple[Labelled, dict[str, Fit]]:
    folder = existing_output(output)
    values = member_values_of(read_manifest(folder))
    return load_labelled(folder, values, LabelSource("label", where=where), texts=True), fits_of_all(folder, values)


def _join(rows: Labelled, more: Labelled) -> None:
    """Give rows the members that another output has of the same texts."""
    place = {(question, *context, response): i for i, (question, context, response) in enumerate(more.texts)}
    starts = np.concatenate([[0], np.cumsum(more.counts)])
    found = [place[question, *context, response] for question, context, response in rows.texts]
    order = np.concatenate([np.arange(starts[i], starts[i + 1]) for i in found])
    rows.values |= {name: values[order] for name, values in more.values.items() if name not in rows.values}


def _errors(rows: Labelled, there: Bools, good: Bools) -> None:
    """Correlation of two verifiers' values among sentences of one label: 1 means that a second one adds nothing."""
    facts, sources = (rows.values[name][there] for name in ("facts", "sources"))
    for name, mine in (("supported", good), ("unsupported", ~good)):
        print(f"\nfacts and sources among {name} sentences: correlation {np.corrcoef(facts[mine], sources[mine])[0, 1]:.2f}")


if __name__ == "__main__":
    main()
