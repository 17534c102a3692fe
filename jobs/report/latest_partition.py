"""Summarize the latest partition: how much was flagged, what failed, what drifted, what changed."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ragassay.jobs.display.drift import describe_drift
from ragassay.jobs.report.gather import GroupCounts, ReportData
from ragassay.schemas.columns import NULL_PARTITION
from ragassay.schemas.manifest import DriftCheck, Manifest, Run


@dataclass(frozen=True)
class Tile:
    """A number in the summary.

    Attributes:
        value: The number.
        name: What it counts.
        previous: Its value in the previous partition; empty if there is none.
    """

    value: str
    name: str
    previous: str = ""


@dataclass(frozen=True)
class ReportSummary:
    """Summary at the top of the report.

    Attributes:
        latest: Latest value of the partition key; empty if there are fewer than two.
        previous: Value before it; empty likewise.
        tiles: Numbers of the latest partition, or of the whole output.
        totals: (number, what it counts) of the whole output, without numbers that the tiles show.
        drift: Description of the drift.
        has_drifted: Whether anything drifted.
        notes: Further notes.
    """

    latest: str
    previous: str
    tiles: list[Tile]
    totals: list[tuple[str, str]]
    drift: str
    has_drifted: bool
    notes: list[str]


def summarize(data: ReportData, run: Run, manifest: Manifest, drift: DriftCheck) -> ReportSummary:
    """Summarize the latest partition.

    Args:
        data: Data from `scored/`.
        run: The run that made the latest verdicts.
        manifest: Manifest of the output folder.
        drift: The latest partition against its history.
    """
    groups = [group for group in data.partition_groups if group.value != NULL_PARTITION]
    has_previous = len(groups) > 1
    latest, previous = (groups[-1], groups[-2]) if has_previous else (_count_all(data), None)
    return ReportSummary(
        latest=latest.value if has_previous else "",
        previous=previous.value if previous else "",
        tiles=_make_tiles(latest, previous),
        totals=list(_list_totals(data, includes_rows=has_previous)),
        drift=describe_drift(drift),
        has_drifted=bool(drift.drifted),
        notes=[
            *_describe_sample(manifest),
            *([] if data.partition_groups else _describe_runs(manifest)),
            *_describe_skipped(run.files_skipped),
        ],
    )


def _list_totals(data: ReportData, *, includes_rows: bool) -> Iterator[tuple[str, str]]:
    scored, rows = data.score_moments.count, data.row_counts.total()
    if includes_rows:
        share = f" ({data.flagged / scored:.1%})" if scored else ""
        yield f"{rows:,}", "rows"
        yield f"{rows - scored:,}", "without a score"
        yield f"{data.flagged:,}", f"flagged{share}"
    yield f"{scored:,}", "scored"
    yield f"{data.sentence_count:,}", "sentences"
    for judge, decided in data.judge_decisions.items():
        yield f"{decided:,}", f"decided by {judge}"


def _count_all(data: ReportData) -> GroupCounts:
    scored = data.score_moments.count
    unscored = Counter({status: rows for status, rows in data.row_counts.items() if status in data.failures})
    return GroupCounts("", scored, data.flagged, data.score_moments.mean * scored, unscored)


def _make_tiles(latest: GroupCounts, previous: GroupCounts | None) -> list[Tile]:
    failed, previous_failed = latest.unscored.total(), previous.unscored.total() if previous else 0
    reasons = ", ".join(f"{rows:,} {status}" for status, rows in latest.unscored.most_common())
    has_previous = previous is not None
    return [
        Tile(
            f"{latest.flagged_share:.1%}" if latest.scored else "–",
            f"flagged: {latest.flagged:,} of {latest.scored:,} responses",
            _describe_change(latest, previous) if previous else "",
        ),
        Tile(_format_mean_score(latest), "mean score", f"was {_format_mean_score(previous)}" if previous else ""),
        Tile(f"{latest.rows:,}", "rows", f"was {previous.rows:,}" if previous else ""),
        Tile(
            f"{failed:,}",
            f"without a score{': ' if reasons else ''}{reasons}",
            f"was {previous_failed:,}" if has_previous else "",
        ),
    ]


def _format_mean_score(group: GroupCounts) -> str:
    return "–" if group.mean_score is None else f"{group.mean_score:.3f}"


def _describe_change(latest: GroupCounts, previous: GroupCounts) -> str:
    if not previous.scored:
        return "was none"
    previous_text = f"was {previous.flagged_share:.1%}"
    if not latest.scored:
        return previous_text
    points = 100 * (latest.flagged_share - previous.flagged_share)
    return f"{previous_text} ({points:+.1f} points)"


def _describe_sample(manifest: Manifest) -> Iterator[str]:
    """Note that only a sample of the rows was scored."""
    files = [file for file in manifest.files.values() if file.sampled_out]
    if files:
        rows, sampled_out = sum(file.rows or 0 for file in files), sum(file.sampled_out for file in files)
        yield (
            f"A sample: {rows - sampled_out:,} of {rows:,} rows in {len(files):,} files were scored, chosen by a hash of their "
            "ids. Counts are of the scored rows; shares are estimates for all."
        )


def _describe_runs(manifest: Manifest) -> Iterator[str]:
    """Compare the latest run with the one before it, if the output has no partitions."""
    runs = [run for run in manifest.runs if run.rows.get("scored", 0) + run.rows.get("failed", 0)]
    if len(runs) > 1:
        yield f"Latest run with new rows: {_describe_run(runs[-1])}; previous run: {_describe_run(runs[-2])}."


def _describe_run(run: Run) -> str:
    scored, failed = run.rows.get("scored", 0), run.rows.get("failed", 0)
    parts = [f"{scored:,} rows scored", *([f"{failed:,} failed"] if failed else [])]
    if scored and run.flagged is not None:
        parts.append(f"{run.flagged / scored:.1%} flagged")
    return ", ".join(parts)


def _describe_skipped(skipped: Mapping[str, str]) -> Iterator[str]:
    if skipped:
        path, reason = next(iter(skipped.items()))
        more = f", and {len(skipped) - 1:,} more" if len(skipped) > 1 else ""
        yield f"Unreadable files, not scored: {path} ({reason}){more}."
