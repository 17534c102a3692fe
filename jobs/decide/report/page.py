"""`report`: one HTML file that opens from disk and asks no network for anything."""

import base64
import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from ragassay.jobs.decide.cascade import Cascade, shares_of
from ragassay.jobs.decide.compare import Compared
from ragassay.jobs.decide.evaluate import Evaluation
from ragassay.jobs.decide.report.charts import MOST_BARS, curves_chart, histogram_chart, kinds_chart, shares_chart
from ragassay.jobs.decide.report.explained import Explanations
from ragassay.jobs.decide.report.gather import Gathered, Share
from ragassay.jobs.decide.report.text import shortened
from ragassay.jobs.decide.tables import (
    cascade_tables,
    cascade_text,
    compared_tables,
    compared_text,
    evaluation_tables,
    evaluation_text,
    normalisation_text,
)
from ragassay.jobs.visible import visible
from ragassay.pipeline.explain.strategy import Strategy
from ragassay.pipeline.verdict.moments import quantile, upper_edge
from ragassay.schemas.manifest import DriftCheck, Run

HERE = Path(__file__).parent
LEVELS = (-1.0, -0.33, 0.33, 1.0)
"""Ensemble scores (means of z-scores) at which a sentence's colour changes."""

BINS = 40


def render(
    output: str, run: Run, found: Gathered, drift: DriftCheck, evaluation: Evaluation | None, compared: Compared | None
) -> str:
    """The page.

    Log text is hostile, and so is what a model made of it: the template escapes everything, and a content-security-policy lets
    nothing run but the page's own script, by its hash.

    Args:
        output: Path or URI of the output folder, as its user wrote it.
        run: The run that gave the last verdicts.
        found: What stands in `scored/` and `explanations/`.
        drift: The last partition against its history.
        evaluation: Scores against labels; None where there are none.
        compared: The last responses by every member; None where there is but one member.
    """
    environment = Environment(loader=FileSystemLoader(HERE), autoescape=True, undefined=StrictUndefined)
    environment.filters |= {"visible": visible, "shortened": shortened, "figure": _figure, "level": _level}
    script = (HERE / "page.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    worst = found.worst
    return environment.get_template("page.html").render(
        output=output,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        run=run,
        calibration=run.threshold.calibration if run.threshold else None,
        script=Markup(script),
        script_hash=f"sha256-{digest}",
        style=Markup((HERE / "page.css").read_text(encoding="utf-8")),
        tiles=_tiles(found),
        threshold=_threshold(found, run),
        judged=found.judged,
        day_column=found.day_column,
        days_chart=Markup(_days(found)),
        slices=[_slice(i, column, shares) for i, (column, shares) in enumerate(found.slices.items())],
        explained=_explained(found.explained) if found.explained else "",
        kinds_chart=Markup(_kinds(found.explained, found.day_column)) if found.explained else "",
        histograms=_histograms(found, evaluation),
        drift=drift,
        evaluation=evaluation,
        evaluation_note=evaluation_text(evaluation) if evaluation else "",
        tables=evaluation_tables(evaluation) if evaluation else [],
        normalisation=normalisation_text(evaluation) if evaluation else "",
        **_cascade(evaluation.cascade if evaluation else None),
        compared=compared_tables(compared) if compared else [],
        compared_note=compared_text(compared) if compared else "",
        failed=[
            {"status": status, "rows": found.rows[status], "examples": examples}
            for status, examples in sorted(found.failed.items(), key=lambda item: -found.rows[item[0]])
        ],
        worst=worst,
        levels=list(zip([None, *LEVELS], [*LEVELS, None], strict=True)),
        filters=[
            (name, sorted({visible(getattr(response, name)) for response in worst}))
            for name in ("verdict", "label", "partition")
            if len({getattr(response, name) for response in worst}) > 1
        ],
    )


def _cascade(found: Cascade | None) -> dict[str, Any]:
    if found is None:
        return {"cascade_chart": "", "cascade_tables": [], "cascade_note": ""}
    metric = "balanced_accuracy"
    ends = [(p.measures[metric].low, p.measures[metric].high) for p in found.points]
    low, high = [a for a, _ in ends if a is not None], [b for _, b in ends if b is not None]
    chart = curves_chart("cascade", [p.share for p in found.points], shares_of(found, metric), (low, high), "balanced accuracy")
    return {"cascade_chart": Markup(chart), "cascade_tables": cascade_tables(found), "cascade_note": cascade_text(found)}


def _tiles(found: Gathered) -> list[tuple[str, str]]:
    scored = found.scores.count
    return [
        ("rows", f"{found.rows.total():,}"),
        ("scored", f"{scored:,}"),
        ("without a score", f"{found.rows.total() - scored:,}"),
        ("sentences", f"{found.sentences:,}"),
        ("flagged responses", f"{found.flagged:,}"),
        ("share flagged", f"{found.flagged / scored:.1%}" if scored else "none"),
        *((f"decided by {judge}", f"{rows:,}") for judge, rows in found.judged.items()),
    ]


def _threshold(found: Gathered, run: Run) -> str:
    if len(found.thresholds) > 1:
        return f"{len(found.thresholds)} different ones, from {min(found.thresholds):.6g} to {max(found.thresholds):.6g}"
    if run.threshold is None:
        return ""
    tau = run.threshold.value
    return (f"{tau:.6g}, " if tau is not None else "") + run.threshold.source


def _days(found: Gathered) -> str:
    if not found.days:
        return ""
    shares = [share.flagged_share for share in found.days]
    return shares_chart("days", [share.value for share in found.days], shares, f"share flagged by {found.day_column}")


def _slice(number: int, column: str, shares: Sequence[Share]) -> dict[str, Any]:
    top = shares[:MOST_BARS]
    chart = shares_chart(f"slice{number}", [s.value for s in top], [s.flagged_share for s in top], f"share flagged by {column}")
    return {"column": column, "chart": Markup(chart), "shares": top, "more": len(shares) - len(top)}


def _explained(explained: Explanations) -> str:
    """What there is of explanations, and what is left out, in words."""
    shown, out = f"{explained.answered:,}", explained.disagreeing
    if explained.strategy == Strategy.VANILLA:
        counts = f"{shown} explanations, which cannot disagree with the flag"
    else:
        counts = f"{out:,} of {shown} explanations disagree with the flag"
        if out:
            counts += " and are marked so" if explained.all_shown else " and are left out; --all-explanations shows them"
    unanswered = ", ".join(f"{count:,} {status}" for status, count in explained.unanswered.most_common())
    return f"Flagged sentences explained by {', '.join(sorted(explained.models))}, strategy {explained.strategy}. {counts}." + (
        f" Asked about without an explanation: {unanswered}." if unanswered else ""
    )


def _kinds(explained: Explanations, day_column: str) -> str:
    if not any(explained.nights.values()):
        return ""
    by = f" by {day_column}" if day_column else ""
    nights = {night or "all rows": counts for night, counts in sorted(explained.nights.items())}
    return kinds_chart("kinds", nights, f"explained sentences by category{by}")


def _histograms(found: Gathered, evaluation: Evaluation | None) -> list[dict[str, Any]]:
    """By label where there are labels; else of all responses, from their sketch."""
    if evaluation is not None:
        return [
            {
                "name": h.name,
                "svg": Markup(
                    histogram_chart(f"scores{i}", h.edges, h.counts, [h.threshold] if h.threshold is not None else [], h.name)
                ),
            }
            for i, h in enumerate(evaluation.histograms)
        ]
    if not found.scores.count:
        return []
    low, high = quantile(found.scores, 0.005), quantile(found.scores, 0.995)
    edges = np.linspace(low, high if high > low else low + 1.0, BINS + 1)
    places = [(min(max(upper_edge(bucket), edges[0]), edges[-1]), count) for bucket, count in found.scores.buckets.items()]
    counts, _ = np.histogram([place for place, _ in places], edges, weights=[count for _, count in places])
    chart = histogram_chart("scores", edges.tolist(), {"": counts.tolist()}, sorted(found.thresholds), "responses by score")
    return [{"name": "", "svg": Markup(chart)}]


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def _level(score: float | None) -> str:
    """Class of a sentence's colour; none where it has no score."""
    return "" if score is None else f"s{sum(score >= level for level in LEVELS)}"
