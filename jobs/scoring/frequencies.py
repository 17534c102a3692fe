"""Document frequencies of an output folder: counted once, on the contexts of its first run, and used by every later run.

The value of a detector for a row must not depend on the other rows of the run, nor on where an interrupted run resumed.
Therefore frequencies are counted before the first row is scored, kept in `frequencies.parquet`, and never counted again.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import islice

import numpy as np
import pyarrow as pa
from pyarrow import fs as pafs
from pyarrow import parquet as pq

from ragassay.jobs.config.job import Job
from ragassay.jobs.config.splitting import SplittingConfig
from ragassay.jobs.input import LogFile, Logs, read_logs
from ragassay.jobs.runtime.resources import MIN_LIGHT_CPUS
from ragassay.jobs.runtime.tasks import make_task, share
from ragassay.jobs.storage.folder import Folder, open_atomic, read_table
from ragassay.pipeline.contain import contain_item
from ragassay.pipeline.detectors.frequencies import BUCKETS, DocumentFrequencies, count_frequencies, merge_frequencies
from ragassay.pipeline.detectors.terms import stem_content_words
from ragassay.pipeline.text.language_codes import read_row_languages
from ragassay.pipeline.text.redact import Redaction, make_redaction, redact_rows
from ragassay.schemas.columns import passthrough_name

FREQUENCIES = "frequencies.parquet"
SAMPLE_ROWS = 20_000
"""Rows whose contexts are counted, distributed over the files of the first run."""

MERGE_SIZE = 64
"""Maximum counts that one task merges; each takes 2 MiB."""


def ensure_frequencies(job: Job, logs: Logs, files: Mapping[int, LogFile], output: Folder) -> Callable[[], DocumentFrequencies]:
    """Make sure that the output folder has document frequencies. If not, tasks count them while the caller continues.

    Args:
        job: The job.
        logs: The input.
        files: Number of a file -> the file, for all files of the input.
        output: The output folder.

    Returns:
        Function that waits for the frequencies and returns them. It works in the driver and in a task.
    """
    existing = read_frequencies(output)
    if existing is not None:
        return share(existing).result
    rows_per_file = max(1, SAMPLE_ROWS // max(1, len(files)))
    count_file, merge_counts, merge_and_write = (
        make_task(function, MIN_LIGHT_CPUS) for function in (count_file_frequencies, _merge_counts, _merge_and_write)
    )
    redaction = make_redaction(job.input.redact)  # here, because it reads the working folder
    counts = [count_file(logs.fs, file, number, job, rows_per_file, redaction) for number, file in files.items()]
    while len(counts) > MERGE_SIZE:
        counts = [merge_counts(*counts[start : start + MERGE_SIZE]) for start in range(0, len(counts), MERGE_SIZE)]
    return merge_and_write(output, *counts).result


def _merge_counts(*counts: DocumentFrequencies) -> DocumentFrequencies:
    return merge_frequencies(counts)


def _merge_and_write(output: Folder, *counts: DocumentFrequencies) -> DocumentFrequencies:
    total = merge_frequencies(counts)
    if not total.documents:  # a first run without any context writes nothing: the next run counts
        return total
    buckets = np.flatnonzero(total.counts)
    table = pa.table({"bucket": buckets, "documents": total.counts[buckets]}).replace_schema_metadata(
        {"documents": str(total.documents)}
    )
    with open_atomic(output.fs, output.path(FREQUENCIES)) as stream:
        pq.write_table(table, stream)
    return total


def read_frequencies(output: Folder) -> DocumentFrequencies | None:
    """Read the document frequencies of an output folder; None if it has none."""
    path = output.path(FREQUENCIES)
    if output.fs.get_file_info(path).type != pafs.FileType.File:
        return None
    table = read_table(output.fs, path)
    counts = np.zeros(BUCKETS, dtype=np.int64)
    counts[table["bucket"].to_numpy()] = table["documents"].to_numpy()
    return DocumentFrequencies(int(table.schema.metadata[b"documents"]), counts)


def count_file_frequencies(
    fs: pafs.FileSystem, file: LogFile, number: int, job: Job, rows: int, redaction: Redaction | None = None
) -> DocumentFrequencies:
    """Count the document frequencies in the first rows of a file. A passage is one document, however often it was retrieved."""
    column = job.splitting.language_column
    passthrough = pa.schema([(passthrough_name(column), pa.string())] if column else [])
    tables = read_logs(fs, file, number, range(file.row_groups), job.input.columns, passthrough, job.input.skips_bad_files)
    return count_table_frequencies((redact_rows(table, redaction) for table in tables), job.splitting, rows)


def count_table_frequencies(
    tables: Iterable[pa.Table], splitter: SplittingConfig, rows: int | None = None
) -> DocumentFrequencies:
    """Count the document frequencies of the distinct passages of rows, each in the language of its row.

    Args:
        tables: Rows of the schema `logs`.
        splitter: Settings that determine the language of a row.
        rows: Number of rows that count, from the first; None for all.
    """
    column = None if splitter.language_column is None else passthrough_name(splitter.language_column)
    contexts = (
        (language, context)
        for table in tables
        for language, context in zip(
            read_row_languages(table, splitter.language, column), table["context"].to_pylist(), strict=True
        )
    )
    by_language: dict[str, list[list[str | None] | None]] = {}
    for language, context in islice(contexts, rows):
        by_language.setdefault(language, []).append(context)
    return merge_frequencies([count_context_frequencies(group, language) for language, group in by_language.items()])


def count_context_frequencies(contexts: Iterable[list[str | None] | None], language: str) -> DocumentFrequencies:
    """Count the document frequencies of the distinct passages of contexts."""
    passages = {passage for context in contexts for passage in context or [] if passage}
    find_terms = partial(stem_content_words, language=language)
    # A passage whose words can't be determined counts as empty; the detectors report its rows.
    return count_frequencies(contain_item(find_terms, passage, lambda _: []) for passage in sorted(passages))
