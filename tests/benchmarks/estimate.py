"""Measure coverage and width of the intervals of `estimate`.

    python -m tests.benchmarks.estimate [--draws 1000]
    python -m tests.benchmarks.estimate --output OUTPUT --label hallucinated [--labels 60] [--draws 200]

Without OUTPUT: simulated logs of 5,000 responses with good, useless, inverted and all-flagging judges, three rates, and 60 or
200 labels. Labels are drawn at random, by strata of verdict and margin, or by strata unrelated to scores. With OUTPUT: a scored
output with labels of all rows; labels are drawn from these, and the truth is the rate of all rows. The papers' own interval is
measured too: PPI++ on the verdict, tuned lambda, normal quantiles.
"""

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from ragassay.pipeline.arrays import Bools, Floats, Ints
from ragassay.pipeline.calibration.prediction_powered import (
    LabeledSample,
    ShareEstimate,
    build_classical_cells,
    build_powered_cells,
    estimate_share,
)

ROWS = 5000
POPULATIONS = 25
"""Number of logs among which the draws are divided."""
JUDGES = {"good": 1.8, "useless": 0.0, "inverted": -1.8, "flags all": 1.8}
"""Judge -> number of standard deviations by which it scores hallucinated responses lower."""
RATES = (0.03, 0.2, 0.5)
DESIGNS = ("random", "verdict and margin", "foreign strata")
Z = 1.959964


@dataclass(frozen=True)
class Logs:
    """Responses with known truth."""

    wrong: Bools
    flagged: Bools
    scores: Floats


@dataclass(frozen=True)
class Coverage:
    """Share of the intervals that contain the truth, and their mean width, by method."""

    covered: dict[str, float]
    width: dict[str, float]


def simulate_logs(judge: str, rate: float, rng: np.random.Generator, rows: int = ROWS) -> Logs:
    """Simulate logs with a judge that flags as many responses as are hallucinated, and at least one in 20."""
    wrong = rng.permutation(rows) < round(rate * rows)
    scores = rng.normal(size=rows) - JUDGES[judge] * wrong
    flagged = scores <= np.quantile(scores, max(rate, 0.05))
    return Logs(wrong, flagged | (judge == "flags all"), scores)


def assign_strata(logs: Logs, design: str) -> Ints:
    """Assign a stratum to every response."""
    if design == "random":
        return np.zeros(len(logs.wrong), dtype=np.int64)
    if design == "foreign strata":
        third: Bools = np.arange(len(logs.wrong)) % 3 == 0
        return third.astype(np.int64)
    tau = logs.scores[logs.flagged].max()
    margin = np.abs(logs.scores - tau)
    is_near = margin <= np.quantile(margin, 0.25)
    number: Ints = np.unique(2 * logs.flagged + is_near, return_inverse=True)[1].astype(np.int64)
    return number


def draw_labels(logs: Logs, strata: Ints, labels: int, rng: np.random.Generator) -> LabeledSample:
    """Draw equal numbers of labels from each stratum."""
    number = int(strata.max()) + 1
    rows, weights = [], []
    for stratum in range(number):
        members = np.flatnonzero(strata == stratum)
        count = min(len(members), labels // number)
        rows.append(rng.choice(members, count, replace=False))
        weights.append(np.full(count, len(members) / count))
    chosen = np.concatenate(rows)
    return LabeledSample(chosen, logs.wrong[chosen], np.concatenate(weights), strata[chosen])


def estimate_normal_ppi(logs: Logs, sample: LabeledSample) -> ShareEstimate:
    """Estimate by PPI++ on the verdict as in the papers, with the finite population correction and weights, without strata."""
    weights = sample.weights / sample.weights.sum()
    flagged, hallucinated = logs.flagged[sample.rows].astype(float), sample.hallucinated.astype(float)
    spread = float(weights @ (flagged - weights @ flagged) ** 2)
    tuned = float(weights @ ((flagged - weights @ flagged) * hallucinated)) / spread if spread > 1e-12 else 0.0
    off = hallucinated - tuned * flagged
    count = len(hallucinated)
    variance = float((weights**2 * (off - weights @ off) ** 2).sum()) * count / (count - 1) * (1 - count / len(logs.wrong))
    value = tuned * float(logs.flagged.mean()) + float(weights @ off)
    return ShareEstimate(value, value - Z * variance**0.5, value + Z * variance**0.5)


METHODS: dict[str, Callable[[Logs, LabeledSample], ShareEstimate]] = {
    "estimate": lambda logs, sample: estimate_share(build_powered_cells(logs.flagged, logs.scores, sample)),
    "labels alone": lambda logs, sample: estimate_share(build_classical_cells(len(logs.wrong), sample)),
    "PPI++, normal": estimate_normal_ppi,
}


def measure_coverage(
    make: Callable[[], Logs], design: str, labels: int, draws: int, rng: np.random.Generator, methods: tuple[str, ...]
) -> Coverage:
    """Draw labels many times, and make new logs after every `draws / POPULATIONS` draws."""
    covered = dict.fromkeys(methods, 0)
    width = dict.fromkeys(methods, 0.0)
    for draw in range(draws):
        if draw % max(1, draws // POPULATIONS) == 0:
            logs = make()
            strata = assign_strata(logs, design)
        sample, truth = draw_labels(logs, strata, labels, rng), float(logs.wrong.mean())
        for name in methods:
            estimate = METHODS[name](logs, sample)
            covered[name] += estimate.low <= truth <= estimate.high
            width[name] += estimate.high - estimate.low
    return Coverage({n: c / draws for n, c in covered.items()}, {n: w / draws for n, w in width.items()})


def simulate(draws: int, methods: tuple[str, ...] = tuple(METHODS)) -> Iterator[tuple[str, float, int, str, Coverage]]:
    """Yield judge, rate, labels, design and coverage of each line of the table."""
    for number, design in enumerate(DESIGNS):
        for labels in (60, 200):
            for judge in JUDGES:
                for rate in RATES:
                    rng = np.random.default_rng([number, labels, round(100 * rate)])
                    make = lambda judge=judge, rate=rate, rng=rng: simulate_logs(judge, rate, rng)  # noqa: E731
                    yield judge, rate, labels, design, measure_coverage(make, design, labels, draws, rng, methods)


def read_labeled(output: str, column: str) -> Logs:
    """Read a scored output with a boolean column that is true for hallucinated rows."""
    rows = pl.read_parquet(f"{output}/scored", hive_partitioning=True).filter(pl.col("score").is_not_null())
    return Logs(rows[column].to_numpy().astype(bool), (rows["verdict"] == "hallucinated").to_numpy(), rows["score"].to_numpy())


def main() -> None:
    """Print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output")
    parser.add_argument("--label", default="hallucinated")
    parser.add_argument("--labels", type=int, default=60)
    parser.add_argument("--draws", type=int, default=1000)
    options = parser.parse_args()
    names = tuple(METHODS)
    head = [*(f"{name}: holds" for name in names), *(f"{name}: width" for name in names), "width / labels alone"]

    def make_cells(coverage: Coverage) -> list[str]:
        ratio = coverage.width["estimate"] / coverage.width["labels alone"]
        return [*(f"{coverage.covered[n]:.1%}" for n in names), *(f"{coverage.width[n]:.3f}" for n in names), f"{ratio:.2f}"]

    def print_row(row: list[str]) -> None:
        print("| " + " | ".join(row) + " |", flush=True)

    if options.output:
        logs = read_labeled(options.output, options.label)
        coverage = measure_coverage(lambda: logs, "random", options.labels, options.draws, np.random.default_rng(0), names)
        print(f"{len(logs.wrong)} responses, {logs.wrong.mean():.1%} hallucinated, {logs.flagged.mean():.1%} flagged")
        print_row(head)
        print_row(["---"] * len(head))
        print_row(make_cells(coverage))
        return
    print_row(["labels drawn", "labels", "judge", "rate", *head])
    print_row(["---"] * (4 + len(head)))
    for judge, rate, labels, design, coverage in simulate(options.draws):
        print_row([design, str(labels), judge, str(rate), *make_cells(coverage)])


if __name__ == "__main__":
    main()
