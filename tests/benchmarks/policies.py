"""Which value, mean and positivity policy tells labelled responses apart best: AUROC of every combination.

    python -m tests.benchmarks.policies OUTPUT [--split train]

OUTPUT is scored logs with a column `label` (correct, and other words), such as the bundled ones. Needs no model.
"""

import argparse
import itertools
from typing import Any

import numpy as np
import polars as pl
from rich.console import Console
from rich.table import Table
from scipy.stats import mannwhitneyu

from pipeline.aggregate import NEED_POSITIVE, Mean, Positive, aggregate, make_positive
from pipeline.moments import moments_of
from pipeline.normalize import ensemble, fit_member, lowest
from pipeline.score import member_values
from pipeline.slm import Value

EPSILONS = (0.001, 0.01, 0.1, 0.5)


def auroc(scores: "np.ndarray[Any, Any]", good: "np.ndarray[Any, Any]") -> float:
    """P(score of a good response > score of a bad one), ties counted half: the Mann-Whitney U statistic over n1 n0."""
    result = mannwhitneyu(scores[good], scores[~good])
    return float(result.statistic / (good.sum() * (~good).sum()))


def best_f1(scores: "np.ndarray[Any, Any]", good: "np.ndarray[Any, Any]") -> tuple[float, float]:
    """Best F1 of detecting good responses by score > tau (the paper's measure), and that tau."""
    found = []
    for tau in np.unique(scores)[:-1]:
        hits = good[scores > tau].sum()
        found.append((float(2 * hits / ((scores > tau).sum() + good.sum())), float(tau)))
    return max(found)


def settings() -> list[tuple[Mean, Positive, float]]:
    """Every legal combination; epsilon matters to clip and shift only."""
    found = []
    for mean, policy in itertools.product(Mean, Positive):
        if policy is Positive.NONE:
            found += [(mean, policy, 0.0)] if mean not in NEED_POSITIVE else []
        elif mean in NEED_POSITIVE:
            found += [(mean, policy, e) for e in (EPSILONS if policy is not Positive.CDF else (1e-6,))]
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("output")
    parser.add_argument("--split")
    options = parser.parse_args()
    frame = pl.read_parquet(f"{options.output}/raw/**/*.parquet", hive_partitioning=True).filter(pl.col("status") == "ok")
    if options.split:
        frame = frame.filter(pl.col("split") == options.split)
    rows = frame.to_dicts()
    labels = np.array([row["label"] for row in rows])
    counts = np.array([len(row["sentences"]) for row in rows], dtype=np.int64)
    names = [member["name"] for member in rows[0]["members"]]
    members = {name: [row["members"][i] for row in rows] for i, name in enumerate(names)}
    others = sorted(set(labels) - {"correct"})
    title = f"AUROC, {len(rows)} responses, {', '.join(names)}"
    table = Table("score", *(f"correct / {other}" for other in others), title=title)

    def add(name: str, scores: "np.ndarray[Any, Any]") -> None:
        mine = [np.isin(labels, ["correct", other]) for other in others]
        table.add_row(name, *(f"{auroc(scores[m], labels[m] == 'correct'):.3f}" for m in mine))

    words = [set(" ".join(filter(None, row["context"])).lower().split()) for row in rows]
    replies = [row["response"].lower().split() for row in rows]
    add("baseline: length", np.array([len(row["response"]) for row in rows], dtype=float))
    add(
        "baseline: share of words in context",
        np.array([np.mean([w in c for w in r]) for r, c in zip(replies, words, strict=True)]),
    )
    for name, parts in members.items():
        if parts[0]["response_score"] is not None:
            add(f"whole response, {name}", np.array([part["response_score"] for part in parts]))
    for value in (Value.P_YES, Value.LOG_ODDS):
        flat = {
            name: member_values(
                value, np.concatenate([p["log_p_yes"] for p in parts]), np.concatenate([p["log_p_no"] for p in parts])
            )
            for name, parts in members.items()
        }
        fits = {name: fit_member(name, moments_of(x)) for name, x in flat.items()}
        z = ensemble(flat, fits)
        for mean, policy, epsilon in settings():
            positive = make_positive(z, policy, epsilon=epsilon, low=lowest(fits, names))
            extra = f" {epsilon:g}" if policy in (Positive.CLIP, Positive.SHIFT) else ""
            if (value, mean, policy, epsilon) == (Value.LOG_ODDS, Mean.HARMONIC, Positive.CLIP, 0.01):
                default = best_f1(aggregate(positive, counts, mean), labels == "correct")
            add(f"{value}, {mean}, {policy}{extra}", aggregate(positive, counts, mean))
    console = Console(width=100)
    console.print(table)
    share = np.mean(labels == "correct")
    console.print(
        f"log_odds, harmonic, clip 0.01: best F1 of correct against all others {default[0]:.3f} at tau {default[1]:.4f}; "
        f"calling every response correct gives {2 * share / (1 + share):.3f}"
    )


if __name__ == "__main__":
    main()
