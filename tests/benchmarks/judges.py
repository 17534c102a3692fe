"""Compare judges on every dev set: `python -m tests.benchmarks.judges OUTPUT [--together a,b a:3,b:1 …] [--only SET …]`.

OUTPUT is a finalized output of `tests.benchmarks.dev_sets` whose job has the judges as members. Prints the AUROC of sentences
of each member, of the named combinations (with weights) and of the baselines: by set, with 95 % intervals resampled by context;
then by kind of error, unsupported sentences of the kind against all supported ones; then correlations of log-odds. RAGTruth
and BEGIN have the labels of two readers.
"""

import argparse
from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

from ragassay.jobs.evaluation.labeled_responses import LabeledResponses, load_labeled
from ragassay.jobs.evaluation.labels import LabelSource
from ragassay.jobs.output.manifest import open_output, read_manifest
from ragassay.jobs.verdicts.partition_stats import read_member_values
from ragassay.pipeline.arrays import Bools, Floats
from ragassay.pipeline.calibration.metrics import compute_auroc, compute_metrics
from ragassay.pipeline.member_values import ValueKind
from tests.benchmarks.defaults import SENTENCE_SETS, fit_moments, read_truth
from tests.benchmarks.verifiers import list_kinds, list_sets, score_sentences

RESAMPLES = 300


def parse_combination(text: str) -> dict[str, float]:
    """Parse `a:3,b:1` to weights with a sum of 1; a member without a number has the weight 1."""
    weights = {name: float(weight or 1) for name, _, weight in (part.partition(":") for part in text.split(","))}
    return {name: weight / sum(weights.values()) for name, weight in weights.items()}


def render_auroc(scores: Floats, good: Bools, groups: Sequence[int]) -> str:
    """Render an AUROC with its interval."""
    numbers = np.unique(groups, return_inverse=True)[1]
    auroc = compute_metrics(scores, good, numbers, resamples=RESAMPLES)["auroc"]
    return f"{auroc.value:.3f} ({auroc.low:.2f} to {auroc.high:.2f})" if auroc.low is not None else f"{auroc.value:.3f}"


def measure_kinds(kinds: Sequence[str | None], good: Bools, scores: Floats) -> dict[str, tuple[int, float]]:
    """Map each kind of unsupported sentences to their number and their AUROC against all supported sentences."""
    names = np.array([kind or "" for kind in kinds])
    result = {}
    for kind in sorted(set(names[~good]) - {""}):
        selected = good | (names == kind)
        result[kind] = int((~good & (names == kind)).sum()), compute_auroc(scores[selected], good[selected])
    return result


def print_table(title: str, columns: Sequence[str], lines: Mapping[str, Sequence[str]]) -> None:
    """Print a Markdown table."""
    print(f"\n| {title} | {' | '.join(columns)} |\n| --- |{' --- |' * len(columns)}")
    for name, cells in lines.items():
        print(f"| {name} | {' | '.join(cells)} |")


def load_sentences(output: str, name: str) -> tuple[LabeledResponses, list[str | None]]:
    """Load a set, and the kind of each of its sentences."""
    folder = open_output(output)
    source = SENTENCE_SETS.get(name, LabelSource("label", where={"dev_set": name}))
    rows = load_labeled(folder, read_member_values(read_manifest(folder)), source, texts=True)
    if set(rows.language_counts) - {"en"}:
        return rows, [None] * int(rows.sentence_counts.sum())
    return rows, list_kinds(output, name, rows, source.sentence_column or "sentence_labels")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("output")
    parser.add_argument("--together", nargs="*", default=[])
    parser.add_argument("--only", nargs="*")
    options = parser.parse_args()
    members = read_member_values(read_manifest(open_output(options.output)))
    judges = {name: {name: 1.0} for name in members} | {text: parse_combination(text) for text in options.together}
    slms = [name for name, value in members.items() if value != ValueKind.SCORE]
    sets: list[str] = []
    by_set: dict[str, list[str]] = {}
    by_kind: dict[str, list[str]] = {}
    kind_columns: list[str] = []
    correlations: dict[str, list[str]] = {}
    for name in options.only or list_sets(options.output):
        rows, all_kinds = load_sentences(options.output, name)
        truth = read_truth(rows)
        known = ~np.isnan(truth)
        good = truth[known] == 1
        if len(set(good.tolist())) < 2:
            continue
        groups = np.repeat(rows.groups, rows.sentence_counts)[known].tolist()
        kinds = [kind for kind, has_label in zip(all_kinds, known, strict=True) if has_label]
        sets.append(f"{name}, {good.sum()} and {(~good).sum()}")
        for judge, scores in score_sentences(rows, fit_moments(rows.sentence_values), judges).items():
            values = np.nan_to_num(scores[known], nan=float(np.nanmean(scores)))
            by_set.setdefault(judge, []).append(render_auroc(values, good, groups))
            measured = measure_kinds(kinds, good, values)
            by_kind.setdefault(judge, []).extend(f"{auroc:.3f}" for _, auroc in measured.values())
        kind_columns += [f"{name}: {kind}, {count}" for kind, (count, _) in measured.items()]
        for pair in combinations(slms, 2):
            values = np.stack([rows.sentence_values[slm][known] for slm in pair])
            scored = ~np.isnan(values).any(axis=0)
            cells = [f"{np.corrcoef(values[:, side & scored])[0, 1]:.2f}" for side in (good, ~good)]
            correlations.setdefault(" and ".join(pair), []).append(", ".join(cells))
    print_table("sentences, supported and not", sets, by_set)
    print_table("unsupported sentences of one kind", kind_columns, by_kind)
    if correlations:
        print_table("correlation among supported, unsupported", [column.split(",")[0] for column in sets], correlations)


if __name__ == "__main__":
    main()
