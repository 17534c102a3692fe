"""What reviewers said of an output, as a labelled log to train on."""

from typing import Any

import polars as pl
import pyarrow as pa

from ragassay.jobs.config.input import Columns
from ragassay.jobs.evaluation.label_table import IS_CORRECT, load_labels, map_response_labels
from ragassay.jobs.evaluation.labels import SENTENCE_COLUMNS, LabelSource
from ragassay.jobs.output.manifest import open_output
from ragassay.jobs.output.scored_dataset import ScoredDataset, open_scored
from ragassay.jobs.output.snapshot import read_snapshot
from ragassay.jobs.training import errors
from ragassay.pipeline.errors import InputError

TEXTS = ["question", "context", "response"]


def reviewed_log(uri: str, source: LabelSource, columns: Columns) -> pa.Table:
    """The rows of an output that a file of labels speaks of, a row a response.

    Args:
        uri: Output folder, finalised.
        source: The file.
        columns: Names that the texts get.

    Returns:
        A table of question, context, response, label (null where only sentences have one) and labelled sentences.

    Raises:
        InputError: The file can't be used, or speaks of no row of the output.
        OutputError: There is no such output, or a run is rewriting it.
    """
    output = open_output(uri)
    found = read_snapshot(output, lambda folder, _: _labelled_rows(open_scored(folder), source))
    if not found:
        raise InputError(errors.LABELS_OF_OTHER_ROWS, file=source.file, output=output.uri)
    names = [columns.question, columns.context, columns.response, source.column, source.sentence_column or SENTENCE_COLUMNS[0]]
    kinds = [pa.string(), pa.list_(pa.string()), pa.string(), pa.string(), SAID]
    arrays = [pa.array([row[key] for row in found], kind) for key, kind in zip([*TEXTS, "label", "said"], kinds, strict=True)]
    return pa.table(arrays, names=names)


def _labelled_rows(scored: ScoredDataset, source: LabelSource) -> list[dict[str, Any]]:
    """The rows that labels speak of, with their labels."""
    labels = load_labels(scored, source).drop_nulls(["row_key", "label"])
    places = labels.drop_nulls("start").unique(["row_key", "start", "end"], maintain_order=True)
    places = places.with_columns(said=pl.struct("start", "end", supported=IS_CORRECT))
    label_of, spoken = map_response_labels(labels), set(labels["row_key"])
    said_of = {key: part["said"].to_list() for (key,), part in places.group_by("row_key")}
    found: list[dict[str, Any]] = []
    for rows in scored.read_batches(["row_key"]):
        chosen = [i for i, key in enumerate(rows.table["row_key"].to_pylist()) if key in spoken]
        found += [
            {**row, "label": label_of.get(row["row_key"]), "said": said_of.get(row["row_key"])}
            for table in rows.stream_columns(["row_key", *TEXTS], chosen)
            for row in table.to_pylist()
        ]
    return found


SAID = pa.list_(pa.struct([("start", pa.int64()), ("end", pa.int64()), ("supported", pa.bool_())]))
