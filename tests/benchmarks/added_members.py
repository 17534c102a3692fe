"""Measure what other members would add to the default members: `python -m tests.benchmarks.added_members OUTPUT [MEMBER …]`.

OUTPUT is a cascade of the three detectors and the MEMBERs on labeled rows, with every row escalated to the default verifier
(docs/how-to/members.md has the job file). Prints the AUROC of the default rule with growing weights of each MEMBER, next to 27
for the verifier and 1 for each detector.
"""

import sys

import numpy as np
import pyarrow.dataset as ds

from ragassay.jobs.config.members import default_members
from ragassay.pipeline.arrays import Floats
from ragassay.pipeline.calibration.metrics import compute_auroc
from ragassay.pipeline.verdict.aggregate import Mean, PositivityPolicy
from ragassay.pipeline.verdict.ensemble import fit_detector
from ragassay.pipeline.verdict.moments import compute_moments
from ragassay.pipeline.verdict.rule import Rule, apply_rule

WEIGHTS = (0, 1, 3, 9, 27)
EPSILON = 0.01


def main() -> None:
    """Measure and print."""
    output, *members = sys.argv[1:]
    default_weights = default_members()["weights"]
    escalated = ds.dataset(f"{output}/escalated", format="parquet").to_table(columns=["row_key", "judge"]).to_pylist()
    judge = {row["row_key"]: row["judge"] for row in escalated}
    rows = ds.dataset(f"{output}/scored", format="parquet").to_table(columns=["row_key", "label", "members"]).to_pylist()
    sentence_scores = [{m["name"]: m["sentence_scores"] for m in [*row["members"], judge[row["row_key"]]]} for row in rows]
    good = np.array([row["label"] == "correct" for row in rows])
    counts = np.array([len(scores["facts"]) for scores in sentence_scores])

    def get_values(name: str) -> Floats:
        return np.array([np.nan if value is None else value for scores in sentence_scores for value in scores[name]])

    print("| weight | " + " | ".join(members) + " |\n" + "| --- " * (len(members) + 1) + "|")
    for weight in WEIGHTS:
        cells = []
        for member in members:
            weights = {**default_weights, member: weight}
            values = {name: get_values(name) for name in weights}
            fits = {name: fit_detector(compute_moments(v[~np.isnan(v)])) for name, v in values.items()}
            shares = {name: scores / sum(weights.values()) for name, scores in weights.items()}
            rule = Rule(fits, Mean.HARMONIC, PositivityPolicy.CDF, EPSILON, shares)
            cells.append(f"{compute_auroc(apply_rule(rule, values, counts).response, good):.3f}")
        print(f"| {weight} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
