"""What the manifest tells of how the verdicts came about: the fit, the runs, the files, the settings."""

import json
from collections import Counter

from ragassay.jobs.display.text_table import TextTable, format_number
from ragassay.schemas.manifest import SCORED, Manifest, Run

LAST_RUNS = 20
MOST_FILES = 20
"""Runs, and unreadable files, that are shown."""


def fit_table(run: Run) -> TextTable | None:
    """mu and sigma of each member; None where no row had a score."""
    fit = run.fit
    if fit is None or not fit.members:
        return None
    rows = [
        [
            name,
            member.value,
            f"{member.mu:.6g}",
            f"{member.sigma:.6g}",
            format_number(fit.weights[name] if fit.weights else None, ".3g"),
            format_number(member.suspicious_below, "g"),
            f"{member.count:,}",
            f"{member.low:.6g}",
        ]
        for name, member in fit.members.items()
    ]
    header = ["member", "value", "mu", "sigma", "weight", "alone suspicious below", "values", "lowest"]
    return TextTable(f"mu and sigma: {fit.source}", header, rows)


def rule_text(run: Run) -> str:
    """How sentences became a response's score; empty where no row had one."""
    fit = run.fit
    return f"Sentences are put together by their {fit.mean} mean, {fit.positive} (epsilon {fit.epsilon:g})." if fit else ""


def usage_table(run: Run) -> TextTable | None:
    """What each member spent in a run; None where it spent nothing."""
    if not run.usage:
        return None
    names = list(dict.fromkeys(name for spent in run.usage.values() for name in spent))
    rows = [
        [member, run.dtypes.get(member, ""), *(f"{spent[name]:,.6g}" if name in spent else "" for name in names)]
        for member, spent in run.usage.items()
    ]
    return TextTable(f"spent in run {run.run_id}", ["member", "dtype", *(name.replace("_", " ") for name in names)], rows)


def runs_table(manifest: Manifest) -> TextTable:
    """The last runs, the last first."""
    rows = [
        [
            run.run_id,
            run.started,
            f"{sum(run.seconds.values()):,.1f}",
            *(f"{run.rows.get(what, 0):,}" for what in ("in", "scored", "failed", "skipped")),
            f"{run.sentences:,}",
            format_number(run.flagged, ","),
        ]
        for run in reversed(manifest.runs[-LAST_RUNS:])
    ]
    header = ["run", "started", "seconds", "rows", "scored", "failed", "skipped", "sentences", "flagged"]
    left = len(manifest.runs) - len(rows)
    return TextTable(f"runs{f', the last {LAST_RUNS}; {left:,} before them' if left else ''}", header, rows)


def files_text(manifest: Manifest) -> str:
    """How many input files there are, and why some could not be read."""
    states = Counter(file.state for file in manifest.files.values())
    states[SCORED] += manifest.sealed.files
    counts = sorted((+states).items(), key=lambda state: (-state[1], state[0]))
    text = f"Input files: {', '.join(f'{count:,} {state}' for state, count in counts) or 'none'}."
    unreadable = [f"{file.path}: {file.error}" for file in manifest.files.values() if file.error]
    if unreadable:
        more = f"; and {len(unreadable) - MOST_FILES:,} more" if len(unreadable) > MOST_FILES else ""
        text += f" Unreadable: {'; '.join(unreadable[:MOST_FILES])}{more}."
    return text


def settings_text(manifest: Manifest) -> str:
    """What scores depend on, as the manifest has it."""
    return json.dumps(manifest.fingerprint, indent=1, ensure_ascii=False)
