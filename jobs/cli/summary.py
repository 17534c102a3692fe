"""The summary table that a run ends with."""

from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.table import Table

from ragassay.jobs.display.lines import print_lines
from ragassay.pipeline.verdict.normalize import Fit
from ragassay.schemas.manifest import DriftCheck, Escalation, Run, Shift
from ragassay.schemas.source import SourceTable

_NAMED = 5  # files that a line names


def print_summary(run: Run, output: str, console: Console) -> None:
    """Print what a run did: rows, sentences, flagged, rows/s, tokens computed and reused, where the output lies."""
    print_lines(_lines(run, output), console)


def print_fit(fits: Mapping[str, Fit], console: Console) -> None:
    """Print mu and sigma of every member."""
    table = Table("member", "mu", "sigma", "sentences")
    for name, fit in fits.items():
        table.add_row(name, f"{fit.mu:.6g}", f"{fit.sigma:.6g}", str(fit.count))
    console.print(table)


def drift_text(check: DriftCheck) -> str:
    """What drifted, as a line."""
    if check.note:
        return f"not checked: {check.note}"
    against = f"against {len(check.history)} earlier partition(s)"
    if not check.drifted:
        return f"none, {against}"
    return f"{', '.join(_shift_text(shift) for shift in check.drifted)}; {against}"


def _shift_text(shift: Shift) -> str:
    name = shift.metric + (f" of {shift.member}" if shift.member else "")
    values = f" ({shift.latest:.3g}, was {shift.history:.3g})" if shift.latest is not None and shift.history is not None else ""
    return f"{name} {shift.distance:.3g} > {shift.limit:g}{values}"


def _touched_text(uris: Sequence[str]) -> str:
    more = f" and {len(uris) - _NAMED} more (files_touched in manifest.json)" if len(uris) > _NAMED else ""
    return (
        f"{len(uris)} file(s) not scored again, though written anew since: {', '.join(uris[:_NAMED])}{more}. Size and footer "
        "are the same. Where answers were changed in place, give the file a new name"
    )


def _source_text(source: SourceTable) -> str:
    what = "snapshot" if source.kind == "iceberg" else "version"
    since = f", what came in since {what} {source.since}" if source.since is not None else ""
    keys = f", partitioned by {', '.join(source.partitioned_by)}" if source.partitioned_by else ""
    return f"{source.kind} {source.table}, {what} {source.version}{since}{keys}"


def _busy(used: Mapping[str, float]) -> float:
    """Share of the time between its first and its last call in which an engine was not waiting for rows."""
    total = used["engine_seconds"] + used["idle_seconds"]
    return used["engine_seconds"] / total if total else 1.0


def _escalation_lines(done: Escalation | None) -> list[tuple[str, str]]:
    if done is None:
        return []
    how = "the dynamic threshold" if done.share is None else f"a share of {done.share:g}"
    lines = [("escalated", f"{done.chosen:,} of {done.scored:,} responses, by {done.when} and {how}, to {done.judge}")]
    failed = ", ".join(f"{n:,} {status}" for status, n in sorted(done.failed.items()))
    kept = f"; {sum(done.failed.values()):,} keep the ensemble's: {failed}" if failed else ""
    lines.append(("decided", f"{done.decided:,} by {done.judge}, {done.changed:,} verdicts changed{kept}"))
    cost = f", {done.dollars:.4f} USD" if done.dollars is not None else ""
    computed, reused = done.usage.get("tokens_computed", 0), done.usage.get("tokens_reused", 0)
    lines.append(
        (
            f"tokens {done.judge}",
            f"{computed:,.0f} computed, {reused:,.0f} reused, {done.usage.get('prompts', 0):,.0f} prompts for {done.sent:,} "
            f"responses{cost}, {done.seconds:.1f} s",
        )
    )
    return lines


def traces_text(counts: Mapping[str, int]) -> str:
    """What was counted of an export of traces, as a line."""
    main = ("traces", "open traces", "late traces", "new files", "changed files", "records", "other records", "unreadable")
    notes = ", ".join(f"{n:,} {note}" for note, n in sorted(counts.items()) if note not in main and n)
    more = [f"{counts[name]:,} {name}" for name in main[1:] if counts.get(name)]
    return f"{counts.get('traces', 0):,} staged" + (f" ({notes})" if notes else "") + f"; {', '.join(more)}"


def _rows(run: Run) -> list[tuple[str, str]]:
    rows = run.rows
    text = f"{rows['in']:,} in = {rows['scored']:,} scored + {rows['failed']:,} failed + {rows['skipped']:,} skipped"
    return [("rows", text), *([("traces", traces_text(run.traces))] if run.traces else [])]


def _backfill_lines(run: Run) -> list[tuple[str, str]]:
    lines = []
    skips = run.skips
    if run.share < 1 or skips.get("sampled_out"):
        left_out = f", {skips['sampled_out']:,} rows sampled out" if skips.get("sampled_out") else ""
        lines.append(("sample", f"a share of {run.share:g} of the rows, by a hash of their ids{left_out}"))
    if skips.get("outside"):
        lines.append(("outside", f"{skips['outside']:,} rows in partitions that --partitions leaves out"))
    if run.deferred:
        left = run.deferred
        begun = f", beside {left.committed:,} of these files that are scored already" if left.committed else ""
        some = f"about {left.runs:,} more nights like this one"
        nights = "this run scored none: a larger budget" if left.runs is None else some
        where = f"{left.rows:,} rows in {left.files:,} files of {left.partitions:,} partitions"
        lines.append(("left", f"{where}{begun}; {nights}. The same command goes on"))
    return lines


def _fit_lines(run: Run) -> list[tuple[str, str]]:
    lines = []
    if run.fit:
        fits = ", ".join(f"{name} mu {fit.mu:.4g} sigma {fit.sigma:.4g}" for name, fit in run.fit.members.items())
        lines.append(("fit", f"{run.fit.source}: {fits}"))
    if run.origins:
        lines.append(("judged by", run.origins.text))
    return lines


def _lines(run: Run, output: str) -> list[tuple[str, str]]:
    rows = run.rows
    lines = [*([("table", _source_text(run.source))] if run.source else []), *_rows(run), *_backfill_lines(run)]
    failed = {status: n for status, n in run.statuses.items() if status != "ok"}
    if failed:
        lines.append(("failed", ", ".join(f"{n:,} {status}" for status, n in sorted(failed.items()))))
    for uri, reason in run.files_skipped.items():
        lines.append(("file skipped", f"{uri}: {reason}"))
    if run.files_touched:
        lines.append(("files touched", _touched_text(run.files_touched)))
    if run.resumed:
        lines.append(("resumed", f"{run.resumed:,} rows were committed by an earlier run"))
    lines.append(("sentences", f"{run.sentences:,}"))
    if run.flagged is not None:
        judged = rows["scored"] or 1
        share = f" ({run.flagged / judged:.1%} of the scored)" if rows["scored"] else ""
        if rows["in"] > rows["skipped"]:
            lines.append(("flagged", f"{run.flagged:,} responses{share}"))
        else:
            lines.append(("flagged", "verdicts are of rows that an earlier run scored: `ragassay report` counts them"))
        if run.threshold:
            tau = run.threshold.value
            lines.append(("threshold", (f"{tau:.6g}: " if tau is not None else "") + run.threshold.source))
            if tau is not None and run.fit and run.fit.sentence is not None:
                lines.append(
                    ("sentences", f"flagged at or below {run.fit.sentence * tau:.6g}; one that is decides its response")
                )
        lines += _fit_lines(run)
    lines += _escalation_lines(run.escalation)
    if run.drift:
        lines.append(("drift", drift_text(run.drift)))
    for name, used in run.usage.items():
        tokens = used["tokens_computed"] + used["tokens_reused"]
        reused = used["tokens_reused"] / tokens if tokens else 0.0
        lines.append(
            (
                f"tokens {name}",
                f"{used['tokens_computed']:,.0f} computed, {used['tokens_reused']:,.0f} reused ({reused:.0%}), "
                f"{used['prompts']:,.0f} prompts, {used['engine_seconds']:.1f} engine seconds"
                f" ({_busy(used):.0%} busy) in {run.dtypes.get(name, 'an unknown dtype')}",
            )
        )
    seconds = run.seconds.get("score", 0.0)
    done = rows["scored"] + rows["failed"] - run.resumed
    if seconds and done > 0:
        lines.append(("speed", f"{done / seconds:.2f} rows/s ({seconds:.1f} s for {done:,} rows, engine start-up included)"))
    lines.append(("output", f"{output} (scored/, raw/, stats/, manifest.json)"))
    return lines
