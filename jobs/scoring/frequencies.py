"""Document frequencies of an output folder: counted once, on its first run's contexts, and the same for every later night.

A detector's value of a row must not depend on what else was logged that night, nor on where a broken run went on: so they are
counted before the first row is scored, kept in `frequencies.parquet`, and never counted again.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import fs as pafs
from pyarrow import parquet as pq

from ragassay.jobs.config.job import Job
from ragassay.jobs.config.splitting import SplittingConfig
from ragassay.jobs.input import LogFile, Logs, read_logs
from ragassay.jobs.runtime.clean_output import clean_task
from ragassay.jobs.runtime.resources import LEAST_LIGHT_CPUS
from ragassay.jobs.storage.folder import Folder, read_table, writing
from ragassay.pipeline.contain import contain_one
from ragassay.pipeline.detectors.frequencies import BUCKETS, Frequencies, count, merge
from ragassay.pipeline.detectors.terms import content_terms
from ragassay.pipeline.text.language import row_languages
from ragassay.pipeline.text.redact import Redaction, redacted, redaction_of
from ragassay.schemas.columns import passthrough_name

FREQUENCIES = "frequencies.parquet"
SAMPLE_ROWS = 20_000
"""Rows whose contexts are counted, spread over the files of the first run."""

MERGED_AT_ONCE = 64
"""Counts that one task adds up: each takes 2 MiB."""


def ensure_frequencies(job: Job, logs: Logs, files: Mapping[int, LogFile], output: Folder) -> Callable[[], Frequencies]:
    """The output folder's document frequencies; if it has none, they are counted from now on, beside what the caller does.

    Args:
        job: The job.
        logs: The input.
        files: Number in the manifest -> file that is about to be scored.
        output: The output folder.

    Returns:
        What waits for them, in a Ray task or here; they stand in the folder then.
    """
    import ray

    known = read_frequencies(output)
    if known is not None:
        return _getter(ray.put(known))
    share = max(1, SAMPLE_ROWS // max(1, len(files)))
    remote = ray.remote(num_cpus=LEAST_LIGHT_CPUS)
    in_file, merged = remote(clean_task(file_frequencies)), remote(clean_task(_merged))
    redaction = redaction_of(job.input.redact)  # here, since it looks in the working folder
    counted = [in_file.remote(logs.fs, file, number, job, share, redaction) for number, file in files.items()]
    while len(counted) > MERGED_AT_ONCE:
        counted = [merged.remote(*counted[at : at + MERGED_AT_ONCE]) for at in range(0, len(counted), MERGED_AT_ONCE)]
    return _getter(remote(clean_task(_keep)).remote(output, *counted))


def _getter(reference: Any) -> Callable[[], Frequencies]:
    def get() -> Frequencies:
        import ray

        found: Frequencies = ray.get(reference)
        return found

    return get


def _merged(*counted: Frequencies) -> Frequencies:
    return merge(counted)


def _keep(output: Folder, *counted: Frequencies) -> Frequencies:
    """Merge what was counted, and write it."""
    total = merge(counted)
    if not total.documents:  # of a first night without any context: the next one's count
        return total
    full = np.flatnonzero(total.counts)
    table = pa.table({"bucket": full, "documents": total.counts[full]}).replace_schema_metadata(
        {"documents": str(total.documents)}
    )
    with writing(output.fs, output.path(FREQUENCIES)) as stream:
        pq.write_table(table, stream)
    return total


def read_frequencies(output: Folder) -> Frequencies | None:
    """The frequencies that an output folder holds; None where there are none."""
    path = output.path(FREQUENCIES)
    if output.fs.get_file_info(path).type != pafs.FileType.File:
        return None
    table = read_table(output.fs, path)
    counts = np.zeros(BUCKETS, dtype=np.int64)
    counts[table["bucket"].to_numpy()] = table["documents"].to_numpy()
    return Frequencies(int(table.schema.metadata[b"documents"]), counts)


def file_frequencies(
    fs: pafs.FileSystem, file: LogFile, number: int, job: Job, rows: int, redaction: Redaction | None = None
) -> Frequencies:
    """Document frequencies of the passages in a file's first rows; a passage is a document, however often it was retrieved."""
    column = job.splitting.language_column
    carried = pa.schema([(passthrough_name(column), pa.string())] if column else [])
    tables = read_logs(fs, file, number, range(file.row_groups), job.input.columns, carried, job.input.skips_bad_files)
    return table_frequencies((redacted(table, redaction) for table in tables), job.splitting, rows)


def table_frequencies(tables: Iterable[pa.Table], splitter: SplittingConfig, rows: int | None = None) -> Frequencies:
    """Document frequencies of the different passages of rows, each by the language of its row.

    Args:
        tables: Rows of the schema `logs`.
        splitter: Says which language they have.
        rows: Rows that count, from the first; None counts all.
    """
    column = None if splitter.language_column is None else passthrough_name(splitter.language_column)
    contexts = (
        (language, context)
        for table in tables
        for language, context in zip(row_languages(table, splitter.language, column), table["context"].to_pylist(), strict=True)
    )
    found: dict[str, list[list[str | None] | None]] = {}
    for language, context in islice(contexts, rows):
        found.setdefault(language, []).append(context)
    return merge([context_frequencies(mine, language) for language, mine in found.items()])


def context_frequencies(contexts: Iterable[list[str | None] | None], language: str) -> Frequencies:
    """Document frequencies of the different passages of contexts."""
    passages = {passage for context in contexts for passage in context or [] if passage}

    terms = partial(content_terms, language=language)
    # One whose words can't be told counts as empty: the detectors say so of its rows.
    return count(contain_one(terms, passage, lambda _: []) for passage in sorted(passages))
