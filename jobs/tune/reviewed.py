"""What reviewers said of an output, as a labelled log to train on."""

from collections import Counter
from typing import Any

import pyarrow as pa

from ragassay.jobs.decide.labels import (
    SENTENCE_COLUMNS,
    Key,
    LabelSource,
    Reviewed,
    labels_of_rows,
    read_reviewed,
    refuse_repeated,
)
from ragassay.jobs.output.manifest import existing_output
from ragassay.jobs.output.scored_dataset import ScoredDataset, open_scored
from ragassay.jobs.output.snapshot import read_snapshot
from ragassay.jobs.sections import Columns
from ragassay.jobs.tune import errors
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
    reviewed = read_reviewed(source)
    output = existing_output(uri)
    found, met = read_snapshot(output, lambda folder, _: _labelled_rows(open_scored(folder), reviewed, source))
    refuse_repeated(source.file or "", met)
    if not found:
        raise InputError(errors.LABELS_OF_OTHER_ROWS, file=source.file, output=output.uri)
    names = [columns.question, columns.context, columns.response, source.column, source.sentences or SENTENCE_COLUMNS[0]]
    kinds = [pa.string(), pa.list_(pa.string()), pa.string(), pa.string(), SAID]
    arrays = [pa.array([row[key] for row in found], kind) for key, kind in zip([*TEXTS, "label", "said"], kinds, strict=True)]
    return pa.table(arrays, names=names)


def _labelled_rows(scored: ScoredDataset, reviewed: Reviewed, source: LabelSource) -> tuple[list[dict[str, Any]], Counter[Key]]:
    """The rows that labels speak of, with their labels; and how often each key was met."""
    found: list[dict[str, Any]] = []
    met: Counter[Key] = Counter()
    for rows in scored.batches(["row_id"]):
        keys, labels = labels_of_rows(rows, reviewed, source)
        chosen = [i for i, key in enumerate(keys) if reviewed.speaks_of(key)]
        if not chosen:
            continue
        met.update(keys[i] for i in chosen)
        found += [
            {**text, "label": labels[i], "said": reviewed.sentences.get(keys[i])}
            for i, text in zip(chosen, rows.read(TEXTS, chosen).to_pylist(), strict=True)
        ]
    return found, met


SAID = pa.list_(pa.struct([("start", pa.int64()), ("end", pa.int64()), ("supported", pa.bool_())]))
