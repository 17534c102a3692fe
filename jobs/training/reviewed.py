"""Convert the labels of reviewers into a labeled log."""

from typing import Any

import polars as pl
import pyarrow as pa

from ragassay.jobs.config.input import Columns
from ragassay.jobs.evaluation.label_table import IS_CORRECT, load_labels, map_response_labels
from ragassay.jobs.evaluation.labels import SENTENCE_COLUMNS, LabelSource
from ragassay.jobs.output.manifest import open_output
from ragassay.jobs.output.scored_dataset import ScoredDataset, open_scored
from ragassay.jobs.output.snapshot import read_snapshot

TEXTS = ["question", "context", "response"]


def read_reviewed_log(uri: str, source: LabelSource, columns: Columns) -> pa.Table:
    """Read the rows of an output that a label file refers to, one row per response.

    Args:
        uri: Output folder with verdicts.
        source: The label file.
        columns: Names of the text columns in the result.

    Returns:
        A table of question, context, response, label (null if only sentences are labeled) and sentence labels.

    Raises:
        InputError: The label file can't be used, or matches no row of the output.
        OutputError: The output does not exist, or a run is rewriting it.
    """
    output = open_output(uri)
    rows = read_snapshot(output, lambda folder, _: _read_labeled_rows(open_scored(folder), source))
    names = [columns.question, columns.context, columns.response, source.column, source.sentence_column or SENTENCE_COLUMNS[0]]
    types = [pa.string(), pa.list_(pa.string()), pa.string(), pa.string(), SENTENCE_LABELS_TYPE]
    arrays = [
        pa.array([row[key] for row in rows], kind)
        for key, kind in zip([*TEXTS, "label", "sentence_labels"], types, strict=True)
    ]
    return pa.table(arrays, names=names)


def _read_labeled_rows(scored: ScoredDataset, source: LabelSource) -> list[dict[str, Any]]:
    """Read the labeled rows, with their labels."""
    labels = load_labels(scored, source).drop_nulls(["row_key", "label"])
    sentence_labels = labels.drop_nulls("start").unique(["row_key", "start", "end"], maintain_order=True)
    sentence_labels = sentence_labels.with_columns(sentence_labels=pl.struct("start", "end", supported=IS_CORRECT))
    label_of, labeled_keys = map_response_labels(labels), set(labels["row_key"])
    labels_by_row = {key: part["sentence_labels"].to_list() for (key,), part in sentence_labels.group_by("row_key")}
    labeled_rows: list[dict[str, Any]] = []
    for rows in scored.read_batches(["row_key"]):
        chosen = [i for i, key in enumerate(rows.table["row_key"].to_pylist()) if key in labeled_keys]
        labeled_rows += [
            {**row, "label": label_of.get(row["row_key"]), "sentence_labels": labels_by_row.get(row["row_key"])}
            for table in rows.stream_columns(["row_key", *TEXTS], chosen)
            for row in table.to_pylist()
        ]
    return labeled_rows


SENTENCE_LABELS_TYPE = pa.list_(pa.struct([("start", pa.int64()), ("end", pa.int64()), ("supported", pa.bool_())]))
