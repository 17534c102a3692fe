"""Measure verdicts by the number of sentences: `python -m tests.benchmarks.lengths OUTPUT`.

OUTPUT is a finalized output of `tests.benchmarks.dev_sets`. Prints, by length, the share of wholly supported responses that
are flagged, and of responses with exactly one unsupported sentence. First under the bundled calibration, then for other
aggregates, each at the threshold that flags as many of the supported responses as the bundled rule does.
"""

import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import numpy as np

from ragassay.jobs.evaluation.labeled_responses import LabeledResponses, load_labeled
from ragassay.jobs.evaluation.labels import LabelSource
from ragassay.jobs.output.calibration_file import make_rule
from ragassay.jobs.output.manifest import open_output, read_manifest
from ragassay.jobs.verdicts.bundled_calibration import load_bundled_calibration
from ragassay.jobs.verdicts.partition_stats import read_member_values
from ragassay.pipeline.arrays import Bools, Ints
from ragassay.pipeline.verdict.aggregate import Mean, PositivityPolicy
from ragassay.pipeline.verdict.rule import Rule, apply_rule
from tests.benchmarks.defaults import SENTENCE_SETS

SETS = {name: SENTENCE_SETS[name] for name in ("ragtruth", "everyday", "written_new")} | {
    "written_answers": LabelSource("label", where={"dev_set": "written_answers"})
}
"""Sets of answers with several labeled sentences."""

LENGTHS = (1, 3, 5, 7, 10, 100)
"""Bounds of the groups of lengths, in sentences."""


def count_unsupported(rows: LabeledResponses) -> Ints:
    """Count the unsupported sentences of each response; -1 if a response is faulty without such a label."""
    starts = np.cumsum(rows.sentence_counts) - rows.sentence_counts
    wrong = np.add.reduceat(rows.sentence_truth == 0, starts)
    return np.where((wrong == 0) & ~rows.is_correct, -1, wrong)


def list_rules(bundled: Rule) -> Iterator[tuple[str, Rule]]:
    """Yield name and rule of each aggregate."""
    yield "bundled", bundled
    for mean in (Mean.MIN, Mean.HARMONIC, Mean.GEOMETRIC):
        yield f"{mean} alone", replace(bundled, mean=mean, positive=PositivityPolicy.CDF, sentence_fraction=None)


def render_shares(flagged: Bools, selected: Bools, counts: Ints) -> str:
    """Render the share flagged of the selected responses of each length."""
    cells = []
    for low, high in pairwise(LENGTHS):
        here = selected & (counts >= low) & (counts < high)
        cells.append(f"{flagged[here].mean():.2f} of {here.sum()}" if here.any() else "-")
    return " | ".join(cells)


def main() -> None:
    """Print the tables."""
    folder = open_output(sys.argv[1])
    values = read_member_values(read_manifest(folder))
    sets = [load_labeled(folder, values, source) for source in SETS.values()]
    counts = np.concatenate([rows.sentence_counts for rows in sets])
    unsupported = np.concatenate([count_unsupported(rows) for rows in sets])
    calibration = load_bundled_calibration()
    flagged: dict[str, Bools] = {}
    for name, rule in list_rules(make_rule(calibration)):
        scores = np.concatenate(
            [apply_rule(rule, {m: rows.sentence_values[m] for m in rule.fits}, rows.sentence_counts).response for rows in sets]
        )
        share = flagged["bundled"][unsupported == 0].mean() if flagged else None
        threshold = calibration.threshold if share is None else np.quantile(scores[unsupported == 0], share)
        flagged[name] = scores <= threshold
    lengths = " | ".join(f"{low} to {high - 1}" for low, high in pairwise(LENGTHS))
    for title, selected in (("wholly supported", unsupported == 0), ("one unsupported sentence", unsupported == 1)):
        print(f"\n### {title}: share flagged by number of sentences\n\n| rule | {lengths} |\n|{' --- |' * len(LENGTHS)}")
        for name, is_flagged in flagged.items():
            print(f"| {name} | {render_shares(is_flagged, selected, counts)} |")


if __name__ == "__main__":
    main()
