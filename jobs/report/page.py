"""`report`: one HTML file that opens from disk and asks no network for anything."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup

from ragassay.jobs.display.address import strip_credentials
from ragassay.jobs.display.text_table import TextTable
from ragassay.jobs.display.visible import make_visible
from ragassay.jobs.evaluation.cascade import Cascade, shares_of
from ragassay.jobs.evaluation.compare import Compared
from ragassay.jobs.evaluation.evaluate import Evaluation
from ragassay.jobs.report.charts import MOST_BARS, curves_chart, histogram_chart, kinds_chart, shares_chart
from ragassay.jobs.report.explained import Explanations
from ragassay.jobs.report.gather import Gathered, Share
from ragassay.jobs.report.html_page import fill_page
from ragassay.jobs.report.marks import shortened
from ragassay.jobs.report.record import files_text, fit_table, rule_text, runs_table, settings_text, usage_table
from ragassay.jobs.report.tables import (
    cascade_tables,
    cascade_text,
    compared_tables,
    compared_text,
    evaluation_tables,
    evaluation_text,
    normalisation_text,
)
from ragassay.jobs.report.tonight import tonight
from ragassay.pipeline.reasoning.strategy import Strategy
from ragassay.pipeline.verdict.moments import quantile, upper_edge
from ragassay.schemas.manifest import DriftCheck, Manifest, Run

HERE = Path(__file__).parent
LEVELS = (-1.0, -0.33, 0.33, 1.0)
"""Ensemble scores (means of z-scores) at which a sentence's colour changes."""

BINS = 40
FIRST = 10
"""Responses that are seen before one asks for more."""


def render(
    output: str,
    manifest: Manifest,
    found: Gathered,
    drift: DriftCheck,
    evaluation: Evaluation | None,
    compared: Compared | None,
) -> str:
    """The page.

    Args:
        output: Path or URI of the output folder, as its user wrote it.
        manifest: Of the output folder; one of its runs has given verdicts.
        found: What stands in `scored/` and `explanations/`.
        drift: The last partition against its history.
        evaluation: Scores against labels; None where there are none.
        compared: The last responses by every member; None where there is but one member.
    """
    run = next(run for run in reversed(manifest.runs) if run.threshold)
    return fill_page(
        HERE,
        {"visible": make_visible, "shortened": shortened, "figure": _figure, "short": _short, "level": _level},
        output=strip_credentials(output),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        run=run,
        calibration=run.threshold.calibration if run.threshold else None,
        head=tonight(found, run, manifest, drift),
        threshold=_threshold(found, run),
        judged=found.judged,
        responses=found.worst,
        first=FIRST,
        levels=list(zip([None, *LEVELS], [*LEVELS, None], strict=True)),
        filters=[
            (name, sorted({make_visible(getattr(response, name)) for response in found.worst}))
            for name in ("verdict", "label", "partition")
            if len({getattr(response, name) for response in found.worst}) > 1
        ],
        day_column=found.day_column,
        days_chart=Markup(_days(found)),
        slices=[_slice(i, column, found, evaluation) for i, column in enumerate(found.slices)],
        explained=_explained(found.explained) if found.explained else "",
        kinds_chart=Markup(_kinds(found.explained, found.day_column)) if found.explained else "",
        histograms=_histograms(found, evaluation),
        drift=drift,
        evaluation=evaluation,
        evaluation_note=evaluation_text(evaluation) if evaluation else "",
        tables=evaluation_tables(replace(evaluation, slices=[])) if evaluation else [],  # these stand with the shares
        normalisation=normalisation_text(evaluation) if evaluation else "",
        **_cascade(evaluation.cascade if evaluation else None),
        compared=compared_tables(compared) if compared else [],
        compared_note=compared_text(compared) if compared else "",
        failed=[
            {"status": status, "rows": found.rows[status], "examples": examples}
            for status, examples in sorted(found.failed.items(), key=lambda item: -found.rows[item[0]])
        ],
        rule=rule_text(run),
        fit=fit_table(run),
        record=[table for table in (runs_table(manifest), usage_table(run)) if table],
        files=files_text(manifest),
        settings=settings_text(manifest),
    )


def _cascade(found: Cascade | None) -> dict[str, Any]:
    if found is None:
        return {"cascade_chart": "", "cascade_tables": [], "cascade_note": ""}
    metric = "balanced_accuracy"
    ends = [(p.measures[metric].low, p.measures[metric].high) for p in found.points]
    low, high = [a for a, _ in ends if a is not None], [b for _, b in ends if b is not None]
    chart = curves_chart("cascade", [p.share for p in found.points], shares_of(found, metric), (low, high), "balanced accuracy")
    return {"cascade_chart": Markup(chart), "cascade_tables": cascade_tables(found), "cascade_note": cascade_text(found)}


def _threshold(found: Gathered, run: Run) -> str:
    if len(found.thresholds) > 1:
        return f"{len(found.thresholds)} different ones, from {min(found.thresholds):.6g} to {max(found.thresholds):.6g}"
    if run.threshold is None:
        return ""
    tau = run.threshold.value
    return (f"{tau:.6g}, " if tau is not None else "") + run.threshold.source


def _days(found: Gathered) -> str:
    """Of two nights and more: the figures of one stand at the head; none where they are asked for as a slice."""
    if len(found.days) < 2 or found.day_column in found.slices:
        return ""
    shares = [share.flagged_share for share in found.days]
    return shares_chart("days", [share.value for share in found.days], shares, f"share flagged by {found.day_column}")


def _slice(number: int, column: str, found: Gathered, evaluation: Evaluation | None) -> dict[str, Any]:
    """A chart of a column's largest values, and one table of what is flagged and what labels say."""
    shares = found.slices[column]
    labelled = _labelled(column, evaluation) if evaluation else {}
    top = shares[:MOST_BARS]
    shown = [*top, *(share for share in shares[MOST_BARS:] if share.value in labelled)]
    header = [column, "scored", "flagged", "share"]
    if labelled:
        header += ["labelled", "correct", "of them flagged", "AUROC"]
    chart = shares_chart(f"slice{number}", [s.value for s in top], [s.flagged_share for s in top], f"share flagged by {column}")
    return {
        "column": column,
        "chart": Markup(chart) if len(top) > 1 else "",
        "table": TextTable("", header, list(_slice_rows(shown, labelled))),
        "more": len(shares) - len(shown),
    }


def _slice_rows(shares: Sequence[Share], labelled: dict[str, list[str]]) -> Iterator[list[str]]:
    rest = dict(labelled)
    for share in shares:
        row = [share.value, f"{share.scored:,}", f"{share.flagged:,}", f"{share.flagged_share:.1%}"]
        yield row + (rest.pop(share.value, [""] * 4) if labelled else [])
    for value, cells in rest.items():  # a point in time, which the shares count by its day
        yield [value, "", "", "", *cells]


def _labelled(column: str, evaluation: Evaluation) -> dict[str, list[str]]:
    """What labels say of each value of a column: labelled rows, share correct, share flagged, AUROC."""
    mine = [part for part in evaluation.slices if part.column == column]
    tables = evaluation_tables(replace(evaluation, comparisons=[], sentences=None, slices=mine))
    return {row[0]: row[1:] for table in tables for row in table.rows}


def _explained(explained: Explanations) -> str:
    """What there is of explanations, and what is left out, in words."""
    shown, out = f"{explained.answered:,}", explained.disagreeing
    if explained.strategy == Strategy.VANILLA:
        counts = f"{shown} explanations, which cannot disagree with the flag"
    else:
        counts = f"{out:,} of {shown} explanations disagree with the flag"
        if out:
            counts += " and are marked so" if explained.all_shown else " and are left out; --all shows them"
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


def _short(value: float | None, digits: int = 2) -> str:
    """For cards, where many stand side by side."""
    return "" if value is None else f"{value:.{digits}f}".replace("-", "−")


def _level(score: float | None) -> str:
    """Class of a sentence's colour; none where it has no score."""
    return "" if score is None else f"s{sum(score >= level for level in LEVELS)}"
