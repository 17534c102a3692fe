"""Render the report (`ragassay report`): one HTML file that opens from disk and loads nothing from the network."""

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
from ragassay.jobs.evaluation.cascade import list_order_values
from ragassay.jobs.evaluation.compare_members import MemberComparison
from ragassay.jobs.report.charts import MAX_BARS, draw_categories, draw_curves, draw_histogram, draw_shares
from ragassay.jobs.report.explanations import ExplanationSummary
from ragassay.jobs.report.flag_tables import describe_baseline, describe_classes, describe_flags, make_flag_tables
from ragassay.jobs.report.gather import GroupCounts, ReportData
from ragassay.jobs.report.html_page import render_page
from ragassay.jobs.report.latest_partition import summarize
from ragassay.jobs.report.marks import shorten_text
from ragassay.jobs.report.provenance import (
    describe_files,
    describe_rule,
    format_settings,
    make_fit_table,
    make_runs_table,
    make_usage_table,
)
from ragassay.jobs.report.tables import (
    describe_cascade,
    describe_comparison,
    describe_evaluation,
    describe_normalization,
    make_cascade_tables,
    make_evaluation_tables,
    make_member_tables,
)
from ragassay.pipeline.reasoning.strategy import Strategy
from ragassay.pipeline.verdict.moments import estimate_quantile, get_bucket_edge
from ragassay.schemas.evaluation import CascadeCurve, Evaluation
from ragassay.schemas.manifest import DriftCheck, Manifest, Run

FOLDER = Path(__file__).parent
COLOR_LEVELS = (-1.0, -0.33, 0.33, 1.0)
"""Ensemble scores (means of z-scores) at which a sentence's color changes."""

BINS = 40
SHOWN_FIRST = 10
"""Responses that are visible before the reader unfolds more."""


def render_report(
    output: str,
    manifest: Manifest,
    data: ReportData,
    drift: DriftCheck,
    evaluation: Evaluation | None,
    comparison: MemberComparison | None,
) -> str:
    """Render the report.

    Args:
        output: Path or URI of the output folder, as its user wrote it.
        manifest: Manifest of the output folder; at least one run has made verdicts.
        data: Data from `scored/` and `explanations/`.
        drift: The latest partition against its history.
        evaluation: Scores against labels; None without labels.
        comparison: The latest responses by every member; None with a single member.
    """
    run = next(run for run in reversed(manifest.runs) if run.threshold)
    return render_page(
        FOLDER,
        {
            "visible": make_visible,
            "shortened": shorten_text,
            "figure": _format_number,
            "short": _format_short,
            "level": _color_class,
        },
        output=strip_credentials(output),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        run=run,
        calibration=run.threshold.calibration if run.threshold else None,
        summary=summarize(data, run, manifest, drift),
        threshold=_describe_threshold(data, run),
        judged=data.judge_decisions,
        responses=data.worst,
        first=SHOWN_FIRST,
        levels=list(zip([None, *COLOR_LEVELS], [*COLOR_LEVELS, None], strict=True)),
        filters=[
            (name, sorted({make_visible(getattr(response, name)) for response in data.worst}))
            for name in ("verdict", "label", "partition")
            if len({getattr(response, name) for response in data.worst}) > 1
        ],
        partition_key=data.partition_key,
        partitions_chart=Markup(_draw_partitions(data)),
        slices=[_make_slice(i, column, data, evaluation) for i, column in enumerate(data.slices)],
        explained=_describe_explanations(data.explanations) if data.explanations else "",
        categories_chart=Markup(_draw_categories(data.explanations, data.partition_key)) if data.explanations else "",
        histograms=_draw_histograms(data, evaluation),
        drift=drift,
        evaluation=evaluation,
        flag_parts=list(_describe_flag_parts(evaluation)),
        evaluation_note=describe_evaluation(evaluation) if evaluation else "",
        tables=make_evaluation_tables(replace(evaluation, slices=[])) if evaluation else [],  # slices are shown with the counts
        normalization=describe_normalization(evaluation) if evaluation else "",
        **_make_cascade_values(evaluation.cascade if evaluation else None),
        compared=make_member_tables(comparison) if comparison else [],
        compared_note=describe_comparison(comparison) if comparison else "",
        failed=[
            {"status": status, "rows": data.row_counts[status], "examples": examples}
            for status, examples in sorted(data.failures.items(), key=lambda item: -data.row_counts[item[0]])
        ],
        rule=describe_rule(run),
        fit=make_fit_table(run),
        record=[table for table in (make_runs_table(manifest), make_usage_table(run)) if table],
        files=describe_files(manifest),
        settings=format_settings(manifest),
    )


def _make_cascade_values(curve: CascadeCurve | None) -> dict[str, Any]:
    if curve is None:
        return {"cascade_chart": "", "cascade_tables": [], "cascade_note": ""}
    metric = "balanced_accuracy"
    ends = [(p.measures[metric].low, p.measures[metric].high) for p in curve.points]
    low, high = [a for a, _ in ends if a is not None], [b for _, b in ends if b is not None]
    chart = draw_curves(
        "cascade", [p.share for p in curve.points], list_order_values(curve, metric), (low, high), "balanced accuracy"
    )
    return {
        "cascade_chart": Markup(chart),
        "cascade_tables": make_cascade_tables(curve),
        "cascade_note": describe_cascade(curve),
    }


def _describe_threshold(data: ReportData, run: Run) -> str:
    if len(data.thresholds) > 1:
        return f"{len(data.thresholds)} thresholds, from {min(data.thresholds):.6g} to {max(data.thresholds):.6g}"
    if run.threshold is None:
        return ""
    tau = run.threshold.value
    return (f"{tau:.6g}, " if tau is not None else "") + run.threshold.source


def _draw_partitions(data: ReportData) -> str:
    """Draw the flagged share by partition; empty for a single partition, which the summary shows, and if the key is a
    slice.
    """
    if len(data.partition_groups) < 2 or data.partition_key in data.slices:
        return ""
    shares = [group.flagged_share for group in data.partition_groups]
    return draw_shares(
        "days", [group.value for group in data.partition_groups], shares, f"share flagged by {data.partition_key}"
    )


def _make_slice(number: int, column: str, data: ReportData, evaluation: Evaluation | None) -> dict[str, Any]:
    """Make the chart and the table of a column's values, the largest first."""
    groups = data.slices[column]
    label_cells = _make_label_cells(column, evaluation) if evaluation else {}
    top = groups[:MAX_BARS]
    shown_groups = [*top, *(group for group in groups[MAX_BARS:] if group.value in label_cells)]
    header = [column, "scored", "flagged", "share"]
    if label_cells:
        header += ["labeled", "correct", "labeled flagged", "AUROC"]
    chart = draw_shares(
        f"slice{number}", [group.value for group in top], [group.flagged_share for group in top], f"share flagged by {column}"
    )
    return {
        "column": column,
        "chart": Markup(chart) if len(top) > 1 else "",
        "table": TextTable("", header, list(_make_slice_rows(shown_groups, label_cells))),
        "more": len(groups) - len(shown_groups),
    }


def _make_slice_rows(groups: Sequence[GroupCounts], label_cells: dict[str, list[str]]) -> Iterator[list[str]]:
    remaining = dict(label_cells)
    for group in groups:
        row = [group.value, f"{group.scored:,}", f"{group.flagged:,}", f"{group.flagged_share:.1%}"]
        yield row + (remaining.pop(group.value, [""] * 4) if label_cells else [])
    for value, cells in remaining.items():  # a timestamp, which the counts group by day
        yield [value, "", "", "", *cells]


def _describe_flag_parts(evaluation: Evaluation | None) -> Iterator[dict[str, Any]]:
    """Describe what the flags of responses and of sentences are worth, as `evaluate` prints it."""
    for flags in (evaluation.flags, evaluation.sentence_flags) if evaluation else ():
        if flags is not None:
            note = f"{describe_classes(flags)} {describe_baseline(flags)}"
            yield {"lead": describe_flags(flags), "note": note, "tables": make_flag_tables(flags)}


def _make_label_cells(column: str, evaluation: Evaluation) -> dict[str, list[str]]:
    """Make the cells about each value's labels: labeled rows, share correct, share flagged, AUROC."""
    slices = [slice_ for slice_ in evaluation.slices if slice_.column == column]
    tables = make_evaluation_tables(replace(evaluation, comparisons=[], sentences=None, slices=slices))
    return {row[0]: row[1:] for table in tables for row in table.rows}


def _describe_explanations(summary: ExplanationSummary) -> str:
    """Describe the explanations, and those that are not shown."""
    readable, disagreeing = f"{summary.readable:,}", summary.disagreeing
    if summary.strategy == Strategy.VANILLA:
        counts = f"{readable} explanations, which can't disagree with the flag"
    else:
        counts = f"{disagreeing:,} of {readable} explanations disagree with the flag"
        if disagreeing:
            counts += " and are marked" if summary.shows_all else " and are not shown; --all shows them"
    unreadable = ", ".join(f"{count:,} {status}" for status, count in summary.unreadable.most_common())
    return f"Flagged sentences explained by {', '.join(sorted(summary.models))}, strategy {summary.strategy}. {counts}." + (
        f" Without a readable explanation: {unreadable}." if unreadable else ""
    )


def _draw_categories(summary: ExplanationSummary, partition_key: str) -> str:
    if not any(summary.categories.values()):
        return ""
    by = f" by {partition_key}" if partition_key else ""
    counts_by_group = {group or "all rows": counts for group, counts in sorted(summary.categories.items())}
    return draw_categories("kinds", counts_by_group, f"explained sentences by category{by}")


def _draw_histograms(data: ReportData, evaluation: Evaluation | None) -> list[dict[str, Any]]:
    """Draw the histograms of the evaluation, or without labels one of all responses, from their sketch."""
    if evaluation is not None:
        return [
            {
                "name": histogram.name,
                "svg": Markup(
                    draw_histogram(
                        f"scores{i}",
                        histogram.edges,
                        histogram.counts,
                        [histogram.threshold] if histogram.threshold is not None else [],
                        histogram.name,
                    )
                ),
            }
            for i, histogram in enumerate(evaluation.histograms)
        ]
    if not data.score_moments.count:
        return []
    low, high = estimate_quantile(data.score_moments, 0.005), estimate_quantile(data.score_moments, 0.995)
    edges = np.linspace(low, high if high > low else low + 1.0, BINS + 1)
    clipped = [
        (min(max(get_bucket_edge(bucket), edges[0]), edges[-1]), count) for bucket, count in data.score_moments.buckets.items()
    ]
    counts, _ = np.histogram([score for score, _ in clipped], edges, weights=[count for _, count in clipped])
    chart = draw_histogram("scores", edges.tolist(), {"": counts.tolist()}, sorted(data.thresholds), "responses by score")
    return [{"name": "", "svg": Markup(chart)}]


def _format_number(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def _format_short(value: float | None, digits: int = 2) -> str:
    """Format a number for cards, where many are side by side."""
    return "" if value is None else f"{value:.{digits}f}".replace("-", "−")


def _color_class(score: float | None) -> str:
    """Return the CSS class of a sentence's color; empty without a score."""
    return "" if score is None else f"s{sum(score >= level for level in COLOR_LEVELS)}"
