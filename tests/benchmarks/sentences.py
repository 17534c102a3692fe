"""Measure states and P(supported) of sentences: `python -m tests.benchmarks.sentences OUTPUT [--plot FILE.svg]`.

OUTPUT is a finalized output of `tests.benchmarks.dev_sets`. For each set of labeled sentences it prints the share flagged,
precision and recall of flagged sentences, the share of unsupported ones by state, and the quality of P(supported). The bundled
map is fitted to these sets; `tests.benchmarks.defaults` prints each set's figures with the map of the other sets. It also
prints the AUROC of sentence scores less a penalty for numbers and dates that the context lacks.
"""

import argparse
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl

from ragassay.jobs.evaluation.labeled_responses import load_labeled
from ragassay.jobs.evaluation.labels import LabelSource
from ragassay.jobs.output.manifest import open_output, read_manifest
from ragassay.jobs.verdicts.partition_stats import read_member_values
from ragassay.pipeline.calibration.metrics import compute_auroc
from ragassay.pipeline.calibration.probability import compute_calibration_error
from ragassay.schemas.columns import SentenceState
from tests.benchmarks.defaults import SENTENCE_SETS, read_truth

SETS = SENTENCE_SETS | {
    name: LabelSource("label", where={"dev_set": name}) for name in ("written_statements", "written_answers")
}
BINS = np.linspace(0, 1, 11)
PENALTIES = (0.0, 0.25, 0.5, 1.0, 2.0)
"""Penalties for a missing number or date, in standard deviations of the score."""

SIZE, MARGIN = 320, 44
"""Size of the plot and its margin, in pixels."""


def read_sentences(output: str) -> dict[str, pl.DataFrame]:
    """Read set -> labeled sentences with their columns `probability`, `state` and `supported`."""
    folder = open_output(output)
    values = read_member_values(read_manifest(folder))
    scored = pl.read_parquet(f"{output}/scored/**/*.parquet", columns=["row_key", "sentences", "evidence"])
    frames = {}
    for name, source in SETS.items():
        rows = load_labeled(folder, values, source)
        keys = pl.DataFrame({"row_key": rows.row_keys})
        sentences = keys.join(scored, on="row_key", maintain_order="left").explode("sentences", "evidence").unnest("sentences")
        frame = sentences.with_columns(supported=pl.Series(read_truth(rows)).fill_nan(None))
        frames[name] = frame.drop_nulls(["supported", "state"])
    return frames


def render_row(name: str, frame: pl.DataFrame) -> str:
    """Render the figures of a set as a row of a table."""
    wrong = 1 - frame["supported"].to_numpy()
    state, probability = frame["state"].to_numpy(), frame["probability"].to_numpy()
    flagged = state == SentenceState.FLAGGED
    shares = [f"{wrong[state == s].mean():.2f} of {(state == s).sum()}" for s in SentenceState if (state == s).any()]
    precision, recall = wrong[flagged].mean(), flagged[wrong == 1].mean()
    brier = ((probability - 1 + wrong) ** 2).mean()
    error = compute_calibration_error(probability, wrong == 0)
    figures = f"{precision:.3f} | {recall:.3f} | {' | '.join(shares)} | {brier:.3f} | {wrong.mean() * (1 - wrong.mean()):.3f}"
    return f"| {name} | {len(frame)} | {wrong.mean():.2f} | {figures} | {error:.3f} |"


def render_penalties(name: str, frame: pl.DataFrame) -> str:
    """Render the AUROC of a set's sentence scores under each penalty as a row of a table."""
    kinds = pl.col("evidence").struct.field("missing").list.eval(pl.element().struct.field("kind").is_in(["number", "date"]))
    is_missing = frame.select(kinds.list.any().fill_null(False)).to_series().to_numpy()
    supported = frame["supported"].to_numpy() == 1
    aurocs = [compute_auroc(frame["score"].to_numpy() - penalty * is_missing, supported) for penalty in PENALTIES]
    share = f"{1 - supported[is_missing].mean():.2f} of {is_missing.sum()}" if is_missing.any() else "0"
    return f"| {name} | {share} | {' | '.join(f'{auroc:.3f}' for auroc in aurocs)} |"


def draw_reliability(frames: dict[str, pl.DataFrame]) -> str:
    """Draw P(supported) against the share that is supported, by tenths, as SVG; every set counts the same."""
    points = []
    frame = pl.concat(f.select("probability", "supported", weight=pl.lit(1 / len(f))) for f in frames.values())
    for low, high in pairwise(BINS):
        part = frame.filter(pl.col("probability").is_between(low, high, closed="left"))
        weight = part["weight"].to_numpy()
        x, y = (float(np.average(part[column].to_numpy(), weights=weight)) for column in ("probability", "supported"))
        points.append((MARGIN + x * SIZE, MARGIN + (1 - y) * SIZE, len(part)))
    side = SIZE + 2 * MARGIN
    dots = "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4"><title>{n} sentences</title></circle>' for x, y, n in points)
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y, _ in points)
    ticks = "".join(
        f'<text x="{MARGIN + t * SIZE:.0f}" y="{MARGIN + SIZE + 18}" text-anchor="middle">{t:g}</text>'
        f'<text x="{MARGIN - 8}" y="{MARGIN + (1 - t) * SIZE + 4:.0f}" text-anchor="end">{t:g}</text>'
        for t in (0, 0.25, 0.5, 0.75, 1)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{side}" height="{side}" viewBox="0 0 {side} {side}" role="img" '
        'aria-label="P(supported) against the share of sentences that are supported">'
        "<style>svg { background: #fff; font: 12px sans-serif; } text { fill: #222; }</style>"
        f'<rect x="{MARGIN}" y="{MARGIN}" width="{SIZE}" height="{SIZE}" fill="none" stroke="#888"/>'
        f'<line x1="{MARGIN}" y1="{MARGIN + SIZE}" x2="{MARGIN + SIZE}" y2="{MARGIN}" stroke="#888" stroke-dasharray="5 4"/>'
        f'<polyline points="{line}" fill="none" stroke="#2b6cb0"/><g fill="#2b6cb0">{dots}</g>{ticks}'
        f'<text x="{side / 2}" y="{side - 6}" text-anchor="middle">P(supported) of sentences, by tenths</text>'
        f'<text x="{MARGIN}" y="{MARGIN - 14}">share of them that is supported</text></svg>\n'
    )


def main() -> None:
    """Print the table, and draw the plot."""
    parser = argparse.ArgumentParser()
    parser.add_argument("output")
    parser.add_argument("--plot", type=Path)
    options = parser.parse_args()
    frames = read_sentences(options.output)
    unsupported = " | ".join(f"unsupported among {state}" for state in SentenceState)
    print(f"| set | sentences | unsupported | precision of flagged | recall | {unsupported} | Brier | rate alone | error |")
    print(f"| --- |{' --- |' * 10}")
    for name, frame in frames.items():
        print(render_row(name, frame))
    columns = " | ".join(f"less {penalty:g}" for penalty in PENALTIES[1:])
    print(f"\n| set | unsupported with a missing number or date | AUROC | {columns} |")
    print(f"| --- |{' --- |' * 6}")
    for name, frame in frames.items():
        print(render_penalties(name, frame))
    if options.plot:
        options.plot.write_text(draw_reliability(frames), encoding="utf-8")


if __name__ == "__main__":
    main()
