"""What happened tonight, in a few figures and lines: how much was flagged, what failed, what drifted, what has changed."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ragassay.jobs.output.partitions import hive_keys
from ragassay.jobs.report.gather import Gathered, Share
from ragassay.schemas.manifest import DriftCheck, Manifest, Run

NO_NIGHT = "__HIVE_DEFAULT_PARTITION__"
"""Value of a hive key that a row has not: no night."""


@dataclass(frozen=True)
class Tile:
    """A figure.

    Attributes:
        value: The figure.
        name: What it is.
        before: What it was the night before; empty where there was none.
    """

    value: str
    name: str
    before: str = ""


@dataclass(frozen=True)
class Tonight:
    """The head of the page.

    Attributes:
        night: The last night; empty where the output has no nights, or but one.
        before: The night before it; empty likewise.
        tiles: Figures of the last night; of all where there is no other.
        total: Figures of the whole output, those of the tiles left out where these are of all: (figure, what it is).
        drift: What of tonight has drifted, in words.
        drifted: Whether something has.
        lines: What else there is to say.
    """

    night: str
    before: str
    tiles: list[Tile]
    total: list[tuple[str, str]]
    drift: str
    drifted: bool
    lines: list[str]


def tonight(found: Gathered, run: Run, manifest: Manifest, drift: DriftCheck) -> Tonight:
    """What stands at the head of the page.

    Args:
        found: What stands in `scored/`.
        run: The run that gave the last verdicts.
        manifest: Of the output folder.
        drift: The last partition against its history.
    """
    nights = [share for share in found.days if share.value != NO_NIGHT]
    of_nights = len(nights) > 1
    last, before = (nights[-1], nights[-2]) if of_nights else (_all(found), None)
    return Tonight(
        night=last.value if of_nights else "",
        before=before.value if before else "",
        tiles=_tiles(last, before),
        total=list(_total(found, whole=of_nights)),
        drift=_drift(drift, last.value if of_nights else ""),
        drifted=bool(drift.drifted),
        lines=[*_sample(manifest), *([] if found.days else _runs(manifest)), *_files(run.files_skipped)],
    )


def _total(found: Gathered, *, whole: bool) -> Iterator[tuple[str, str]]:
    scored, rows = found.scores.count, found.rows.total()
    if whole:
        share = f" ({found.flagged / scored:.1%})" if scored else ""
        yield f"{rows:,}", "rows"
        yield f"{rows - scored:,}", "without a score"
        yield f"{found.flagged:,}", f"flagged{share}"
    yield f"{scored:,}", "scored"
    yield f"{found.sentences:,}", "sentences"
    for judge, decided in found.judged.items():
        yield f"{decided:,}", f"decided by {judge}"


def _all(found: Gathered) -> Share:
    scored = found.scores.count
    unscored = Counter({status: rows for status, rows in found.rows.items() if status in found.failed})
    return Share("", scored, found.flagged, found.scores.mean * scored, unscored)


def _tiles(last: Share, before: Share | None) -> list[Tile]:
    failed, failed_before = last.unscored.total(), before.unscored.total() if before else 0
    reasons = ", ".join(f"{rows:,} {status}" for status, rows in last.unscored.most_common())
    was = before is not None
    return [
        Tile(
            f"{last.flagged_share:.1%}" if last.scored else "–",
            f"flagged: {last.flagged:,} of {last.scored:,} responses",
            _points(last, before) if before else "",
        ),
        Tile(_score(last), "mean score", f"was {_score(before)}" if before else ""),
        Tile(f"{last.rows:,}", "rows", f"was {before.rows:,}" if before else ""),
        Tile(f"{failed:,}", f"without a score{': ' if reasons else ''}{reasons}", f"was {failed_before:,}" if was else ""),
    ]


def _score(share: Share) -> str:
    return "–" if share.mean_score is None else f"{share.mean_score:.3f}"


def _points(last: Share, before: Share) -> str:
    if not before.scored:
        return "was none"
    was = f"was {before.flagged_share:.1%}"
    if not last.scored:
        return was
    points = 100 * (last.flagged_share - before.flagged_share)
    return f"{was} ({points:+.1f} points)"


def _drift(check: DriftCheck, night: str) -> str:
    if check.note:
        return f"not checked: {check.note}"
    if any(night not in hive_keys(place).values() for place in check.latest if night):
        return f"{', '.join(check.latest)}: {_shifts(check)}"  # rows without a night count as the last one there
    return _shifts(check)


def _shifts(check: DriftCheck) -> str:
    shifts = [
        f"{shift.metric}{f' of {shift.member}' if shift.member else ''} {shift.distance:.3g} (limit {shift.limit:g})"
        for shift in check.drifted
    ]
    against = f"against {len(check.history):,} partition{'s' if len(check.history) != 1 else ''} before"
    if not shifts:
        return f"none in {len(check.shifts):,} comparisons {against}"
    return f"{len(shifts):,} of {len(check.shifts):,} comparisons {against}: {', '.join(shifts)}"


def _sample(manifest: Manifest) -> Iterator[str]:
    """Whether it is of a sample of the rows."""
    files = [file for file in manifest.files.values() if file.sampled_out]
    if files:
        rows, out = sum(file.rows or 0 for file in files), sum(file.sampled_out for file in files)
        yield (
            f"A sample: of {len(files):,} files {rows - out:,} of {rows:,} rows were scored, chosen by a hash of their "
            "ids; counts are of these, and shares are estimates of all."
        )


def _runs(manifest: Manifest) -> Iterator[str]:
    """The last run against the one before it, where logs come without nights."""
    runs = [run for run in manifest.runs if run.rows.get("scored", 0) + run.rows.get("failed", 0)]
    if len(runs) > 1:
        yield f"The last run with new rows: {_run(runs[-1])}; the one before: {_run(runs[-2])}."


def _run(run: Run) -> str:
    scored, failed = run.rows.get("scored", 0), run.rows.get("failed", 0)
    parts = [f"{scored:,} rows scored", *([f"{failed:,} failed"] if failed else [])]
    if scored and run.flagged is not None:
        parts.append(f"{run.flagged / scored:.1%} flagged")
    return ", ".join(parts)


def _files(skipped: Mapping[str, str]) -> Iterator[str]:
    if skipped:
        path, why = next(iter(skipped.items()))
        more = f", and {len(skipped) - 1:,} more" if len(skipped) > 1 else ""
        yield f"Files that could not be read and were left out: {path} ({why}){more}."
