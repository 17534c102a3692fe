"""Judge a table in this process: the numbers that a run over it gives, without files and without Ray."""

import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from ragassay.jobs.api.in_process import load, through
from ragassay.jobs.api.progress import Progress
from ragassay.jobs.api.rows import NAME, log_rows, table_logs, with_verdicts
from ragassay.jobs.config.job import Job, with_dtypes
from ragassay.jobs.input.check_values import check_ids
from ragassay.jobs.output.fingerprint import make_fingerprint
from ragassay.jobs.scoring.frequencies import SAMPLE_ROWS, count_table_frequencies
from ragassay.jobs.scoring.register import check_input
from ragassay.jobs.scoring.stages import make_stages
from ragassay.jobs.verdicts.finalize import compute_response_scores
from ragassay.jobs.verdicts.fit import compute_stats
from ragassay.jobs.verdicts.languages import choose_languages, resolve_languages
from ragassay.jobs.verdicts.parts import find_calibration
from ragassay.jobs.verdicts.settings import resolve_settings
from ragassay.jobs.verdicts.threshold import compute_quantile_threshold
from ragassay.pipeline.stages.finalize import VerdictSettings
from ragassay.pipeline.stages.stage import Stage
from ragassay.pipeline.text.redact import make_redaction
from ragassay.pipeline.verdict.exact_quantile import ScoreHistogram, count_bins

ROWS = 64
"""Rows that go through the stages at a time."""


def judge_table(job: Job, table: pa.Table, progress: Progress) -> pa.Table:
    """Judge rows, as `ragassay run` does: by the bundled calibration, a file, or moments and threshold of the table itself.

    Args:
        job: The job; a cascade's judge is not asked.
        table: Question, context and response under the names of `input.columns`, and whatever else.
        progress: Told how far it is.

    Returns:
        The same rows in the same order, with the columns of `scored/`. A row that can't be scored has a status that says why.

    Raises:
        RagassayError: A column is missing or of a wrong type, a model can't be used, or nothing can be fitted.
    """
    job = with_dtypes(job)
    check_input(job, table_logs(table))
    rows = log_rows(table, job.input.columns, make_redaction(job.input.redact))
    if job.input.columns.row_id in table.column_names:
        check_ids(NAME, rows["row_id"].to_pylist(), job.input.columns)
    frequencies = None
    if job.members.detectors:
        progress.tell("counting words")
        frequencies = count_table_frequencies([rows], job.splitting, SAMPLE_ROWS)
    scoring = resolve_languages(job, make_fingerprint(job))
    steps = load(make_stages(scoring, (lambda: known) if (known := frequencies) else None), progress.tell)
    raw = pa.concat_tables(_scored(steps, rows, progress))
    progress.tell("deciding")
    return with_verdicts(raw, _settings(job, raw))


def _scored(steps: Sequence[Stage], rows: pa.Table, progress: Progress) -> Iterator[pa.Table]:
    for start in range(0, rows.num_rows, ROWS):
        part = rows.slice(start, ROWS)
        yield through(steps, part, progress.tell)
        progress.advance(part.num_rows)


def _settings(job: Job, raw: pa.Table) -> VerdictSettings:
    """How the rows' scores become verdicts; of a table, everything is one partition."""
    batches = raw.select(["members", "status", "sentences"]).combine_chunks().to_batches()
    stats: Mapping[str, Any] = {"": compute_stats(batches, job.members.values)}
    calibration = find_calibration(job, make_fingerprint(job))
    decided = resolve_settings(job, calibration, f"judge-{secrets.token_hex(3)}", stats, [""])
    settings = replace(decided.settings, languages=choose_languages(job, make_fingerprint(job), calibration))

    def look(low: int, high: int) -> Iterator[ScoreHistogram]:
        for scores in compute_response_scores(batches, settings):
            yield count_bins(scores, low, high)

    threshold = decided.threshold or compute_quantile_threshold(job.verdict.threshold, look)
    return replace(settings, threshold=threshold.value)
