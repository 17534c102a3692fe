"""Judge a table in this process, with the results of a run over it, without files and without Ray."""

import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from ragassay.jobs.api.in_process import load_stages, run_stages
from ragassay.jobs.api.progress import Progress
from ragassay.jobs.api.row_stages import finalize_table
from ragassay.jobs.api.table_rows import TABLE_NAME, make_table_logs, read_table_rows
from ragassay.jobs.config.job import Job, resolve_engines
from ragassay.jobs.input.check_values import check_ids
from ragassay.jobs.output.fingerprint import make_fingerprint
from ragassay.jobs.scoring.frequencies import SAMPLE_ROWS, count_table_frequencies
from ragassay.jobs.scoring.register import check_input
from ragassay.jobs.scoring.stages import make_stages
from ragassay.jobs.verdicts.finalize_partition import compute_response_scores
from ragassay.jobs.verdicts.fit import compute_stats
from ragassay.jobs.verdicts.languages import choose_languages, resolve_languages
from ragassay.jobs.verdicts.resolve_parts import find_calibration
from ragassay.jobs.verdicts.settings import resolve_settings
from ragassay.jobs.verdicts.threshold import compute_quantile_threshold
from ragassay.pipeline.finalize import VerdictSettings
from ragassay.pipeline.stages.stage import Stage
from ragassay.pipeline.text.redact import make_redaction
from ragassay.pipeline.verdict.exact_quantile import ScoreHistogram, count_bins

BATCH_ROWS = 64
"""Rows per batch."""


def judge_table(job: Job, table: pa.Table, progress: Progress, name: str = TABLE_NAME) -> pa.Table:
    """Judge rows as `ragassay run` does: with the bundled or the job's calibration, or the table's moments and quantile.

    Args:
        job: The job; the judge of its cascade is not asked.
        table: Question, context and response under the names of `input.columns`, and other columns.
        progress: Where progress is reported.
        name: Name of the table for messages.

    Returns:
        The same rows in the same order, with the columns of `scored/`. The status of a row without a score states the reason.

    Raises:
        RagassayError: A column is missing or has a wrong type, a model can't be used, or nothing can be fitted.
    """
    job = resolve_engines(job)
    check_input(job, make_table_logs(table, name))
    rows = read_table_rows(table, job.input.columns, make_redaction(job.input.redact), name)
    if job.input.columns.row_id in table.column_names:
        check_ids(name, rows["row_id"].to_pylist(), job.input.columns)
    frequencies = None
    if job.members.detectors:
        progress.report_step("counting words")
        frequencies = count_table_frequencies([rows], job.splitting, SAMPLE_ROWS)
    scoring_job = resolve_languages(job, make_fingerprint(job))
    get_frequencies = (lambda: counted) if (counted := frequencies) else None
    stages = load_stages(make_stages(scoring_job, get_frequencies), progress.report_step)
    raw = pa.concat_tables(_score_batches(stages, rows, progress))
    progress.report_step("deciding")
    return finalize_table(raw, _resolve_table_settings(job, raw))


def _score_batches(stages: Sequence[Stage], rows: pa.Table, progress: Progress) -> Iterator[pa.Table]:
    for start in range(0, rows.num_rows, BATCH_ROWS):
        batch = rows.slice(start, BATCH_ROWS)
        yield run_stages(stages, batch, progress.report_step)
        progress.advance(batch.num_rows)


def _resolve_table_settings(job: Job, raw: pa.Table) -> VerdictSettings:
    """Resolve the settings of verdicts; the whole table is one partition."""
    batches = raw.select(["members", "status", "sentences"]).combine_chunks().to_batches()
    stats: Mapping[str, Any] = {"": compute_stats(batches, job.members.value_kinds)}
    fingerprint = make_fingerprint(job)
    calibration = find_calibration(job, fingerprint)
    resolved = resolve_settings(job, calibration, f"judge-{secrets.token_hex(3)}", stats, [""])
    settings = replace(resolved.settings, languages=choose_languages(job, fingerprint, calibration))

    def count_scores(low: int, high: int) -> Iterator[ScoreHistogram]:
        for scores in compute_response_scores(batches, settings):
            yield count_bins(scores, low, high)

    threshold = resolved.threshold or compute_quantile_threshold(job.verdict.threshold, count_scores)
    return replace(settings, threshold=threshold.value)
