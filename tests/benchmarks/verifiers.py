"""Evaluate each member and combinations on every dev set: `python -m tests.benchmarks.verifiers OUTPUT [--only NAME …]
[--together a,b …]`.

OUTPUT is a finalized output of `tests.benchmarks.dev_sets` (or of any logs with a column `dev_set`). Prints for each set, for
correct responses against each other label and for sentences: each member, combinations, the default job's members, the
baselines, and AUROC among texts of similar length and of similar overlap; then by kind of error; then correlations of SLMs.
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

import numpy as np
import polars as pl

from ragassay.jobs.config.job import Job
from ragassay.jobs.config.verdict import Normalize
from ragassay.jobs.evaluation.labeled_responses import LabeledResponses, load_labeled
from ragassay.jobs.evaluation.labels import Label, LabelSource
from ragassay.jobs.output.manifest import open_output, read_manifest
from ragassay.jobs.verdicts.fit import fit_members, read_stats
from ragassay.jobs.verdicts.partition_stats import read_member_values
from ragassay.pipeline.arrays import Bools, Floats, Ints
from ragassay.pipeline.calibration.metrics import compute_auroc, compute_metrics
from ragassay.pipeline.member_values import ValueKind
from ragassay.pipeline.text.split import load_splitter, split_sentences
from ragassay.pipeline.verdict.aggregate import Mean, PositivityPolicy
from ragassay.pipeline.verdict.ensemble import NormalizationFit, combine_members
from ragassay.pipeline.verdict.rule import Rule, apply_rule

Weights = Mapping[str, float]

RULES = ((Mean.HARMONIC, PositivityPolicy.CDF), (Mean.MIN, PositivityPolicy.NONE))
EPSILON = 0.01
BINS = 5
RESAMPLES = 300
HEAD = (
    "| score | AUROC | best F1, hallucinated | best F1, correct | AUROC at like length | at like overlap |\n"
    "| --- | --- | --- | --- | --- | --- |"
)


def compute_binned_auroc(scores: Floats, good: Bools, trait: Floats) -> float:
    """Compute the AUROC of pairs of a good and a bad text in the same fifth of a trait."""
    bins = np.searchsorted(np.quantile(trait, np.linspace(0, 1, BINS + 1)[1:-1]), trait)
    won = pairs = 0.0
    for number in range(BINS):
        good_scores, bad_scores = (scores[(bins == number) & side] for side in (good, ~good))
        won += float((good_scores[:, None] > bad_scores).sum() + 0.5 * (good_scores[:, None] == bad_scores).sum())
        pairs += len(good_scores) * len(bad_scores)
    return won / pairs if pairs else float("nan")


def load_set(output: str, name: str) -> tuple[LabeledResponses, dict[str, NormalizationFit]]:
    """Load a dev set's labeled rows, and mu and sigma of its own sentences, as in a run over only this set."""
    folder = open_output(output)
    values = read_member_values(read_manifest(folder))
    rows = load_labeled(folder, values, LabelSource("label", where={"dev_set": name}), texts=True)
    stats = read_stats(folder, f"set={name}")
    assert stats is not None
    return rows, fit_members(Normalize(), values, {name: stats}, [name], 1)


def list_sets(output: str) -> list[str]:
    """List the dev sets of an output."""
    return sorted(pl.scan_parquet(f"{output}/scored/**/*.parquet").select("dev_set").unique().collect()["dev_set"])


def combine_weights(members: Mapping[str, str], requested: Sequence[str]) -> dict[str, Weights]:
    """Map names to weights: each member, each SLM with the detectors, requested combinations, the default members."""
    slms = [name for name, value in members.items() if value != ValueKind.SCORE]
    detectors = [name for name in members if name not in slms]
    groups = {name: [name] for name in members}
    if detectors:
        groups["detectors"] = detectors
        groups |= {f"{slm} and the detectors": [slm, *detectors] for slm in slms}
    groups |= {text.replace(",", ", "): text.split(",") for text in requested}
    equal_weights: dict[str, Weights] = {name: dict.fromkeys(group, 1 / len(group)) for name, group in groups.items()}
    default = Job().members
    weights = default.ensemble_weights or dict.fromkeys(default.value_kinds, 1 / len(default.value_kinds))
    return equal_weights | ({"default members": weights} if weights.keys() <= members.keys() else {})


def render_row(name: str, scores: Floats, good: Bools, groups: Ints, words: Floats, overlap: Floats) -> str:
    """Render one line of a Markdown table."""
    has_score = ~np.isnan(scores)
    scores, good, groups = scores[has_score], good[has_score], np.unique(groups[has_score], return_inverse=True)[1]
    metrics = compute_metrics(scores, good, groups, resamples=RESAMPLES)

    def cell(metric: str) -> str:
        value = metrics[metric]
        return f"{value.value:.3f} ({value.low:.2f} to {value.high:.2f})" if value.low is not None else f"{value.value:.3f}"

    like = [f"{compute_binned_auroc(scores, good, trait[has_score]):.3f}" for trait in (words, overlap)]
    return f"| {name} | {' | '.join([cell('auroc'), cell('best_f1_hallucinated'), cell('best_f1'), *like])} |"


def score_responses(
    rows: LabeledResponses, fits: Mapping[str, NormalizationFit], together: Mapping[str, Weights]
) -> Iterator[tuple[str, Floats]]:
    """Yield name and response scores of every line."""
    single = bool((rows.sentence_counts == 1).all())
    for name, weights in together.items():
        for mean, policy in RULES[:1] if single else RULES:
            rule = Rule({m: fits[m] for m in weights}, mean, policy, EPSILON, weights)
            scores = apply_rule(rule, {m: rows.sentence_values[m] for m in weights}, rows.sentence_counts).response
            yield (name if single else f"{name}, {mean}"), scores
    yield "baseline: shorter response", -rows.word_counts
    yield "baseline: words in context", rows.context_overlap


def score_sentences(
    rows: LabeledResponses, fits: Mapping[str, NormalizationFit], together: Mapping[str, Weights]
) -> dict[str, Floats]:
    """Map the name of every line to its sentence scores."""
    scores = {
        name: combine_members({m: rows.sentence_values[m] for m in weights}, {m: fits[m] for m in weights}, weights)
        for name, weights in together.items()
    }
    return scores | {
        "baseline: shorter sentence": -rows.sentence_word_counts,
        "baseline: words in context": rows.sentence_overlap,
    }


def list_kinds(output: str, name: str, rows: LabeledResponses, column: str = "sentence_labels") -> list[str | None]:
    """List the kind of every English sentence by its labels in a column; unsupported labels have priority."""
    frame = pl.read_parquet(f"{output}/scored/set={name}/*.parquet", columns=["context", "response", column])
    labels = {(tuple(row["context"]), row["response"]): row[column] or [] for row in frame.iter_rows(named=True)}
    nlp = load_splitter("sentencizer", "en")
    kinds: list[str | None] = []
    for (_, context, response), spans in zip(
        rows.texts, split_sentences(nlp, [text for _, _, text in rows.texts]), strict=True
    ):
        row_labels = sorted(labels[tuple(context), response], key=lambda label: label["supported"])
        for start, end in spans:
            kinds.append(next((x["kind"] for x in row_labels if x["start"] < end and start < x["end"]), None))
    return kinds


def render_kinds(kinds: Sequence[str | None], good: Bools, scores: Mapping[str, Floats]) -> str:
    """Render the AUROC of each kind of unsupported sentence against all supported ones, and vice versa."""
    kind_names = np.array([kind or "" for kind in kinds])
    lines = [f"| kind | sentences | {' | '.join(scores)} |", "| --- | --- |" + " --- |" * len(scores)]
    for side, word in ((False, "not supported"), (True, "supported")):
        for kind in sorted(set(kind_names[good == side]) - {""}):
            selected = ((kind_names == kind) & (good == side)) | (good != side)
            cells = [f"{compute_auroc(values[selected], good[selected]):.3f}" for values in scores.values()]
            lines.append(f"| {kind} ({word}) | {((kind_names == kind) & (good == side)).sum():,} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("output")
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--together", nargs="*", default=[])
    options = parser.parse_args()
    for name in options.only or list_sets(options.output):
        rows, fits = load_set(options.output, name)
        members = read_member_values(read_manifest(open_output(options.output)))
        together = combine_weights(members, options.together)
        labels = np.array(rows.labels)
        for other in (Label.WRONG, Label.PARTIAL):
            selected = np.isin(labels, [Label.CORRECT, other])
            if (labels == other).any():
                good = rows.is_correct[selected]
                print(f"\n### {name}: responses, correct against {other}: {good.sum():,} and {(~good).sum():,}\n\n{HEAD}")
                for line, scores in score_responses(rows, fits, together):
                    print(
                        render_row(
                            line,
                            scores[selected],
                            good,
                            rows.groups[selected],
                            rows.word_counts[selected],
                            rows.context_overlap[selected],
                        ),
                        flush=True,
                    )
        has_label = ~np.isnan(rows.sentence_truth)
        if set(rows.sentence_truth[has_label]) == {0, 1}:
            good = rows.sentence_truth[has_label] == 1
            groups = np.repeat(rows.groups, rows.sentence_counts)[has_label]
            scores_by_line = {line: scores[has_label] for line, scores in score_sentences(rows, fits, together).items()}
            print(f"\n### {name}: sentences: {good.sum():,} supported, {(~good).sum():,} not\n\n{HEAD}")
            for line, scores in scores_by_line.items():
                print(
                    render_row(
                        line, scores, good, groups, rows.sentence_word_counts[has_label], rows.sentence_overlap[has_label]
                    ),
                    flush=True,
                )
            kinds = [kind for kind, known in zip(list_kinds(options.output, name, rows), has_label, strict=True) if known]
            if any(kinds):
                known = {line: scores for line, scores in scores_by_line.items() if not np.isnan(scores).any()}
                print(f"\n### {name}: by kind\n\n{render_kinds(kinds, good, known)}")
            for first_slm, second_slm in combinations([m for m, value in members.items() if value != ValueKind.SCORE], 2):
                values = [rows.sentence_values[slm][has_label] for slm in (first_slm, second_slm)]
                correlations = (f"{np.corrcoef(values[0][side], values[1][side])[0, 1]:.2f}" for side in (good, ~good))
                names = f"{first_slm} and {second_slm}"
                print(f"\n{names}, correlation among supported and unsupported sentences: {', '.join(correlations)}.")


if __name__ == "__main__":
    main()
