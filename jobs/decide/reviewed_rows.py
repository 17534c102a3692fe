"""Labels, row by row of an output."""

from collections.abc import Mapping

from ragassay.jobs.decide import errors
from ragassay.jobs.decide.labels import PARTITION, Key, Label, LabelSource, Reviewed, row_name, to_labels
from ragassay.jobs.output.scored_dataset import Rows
from ragassay.pipeline.errors import InputError

SPANS = ("sentences.list.element.start", "sentences.list.element.end")


def labels_of_rows(rows: Rows, reviewed: Reviewed | None, source: LabelSource) -> tuple[list[Key], list[Label | None]]:
    """Key and label of rows of `scored/`; sentences are read only of rows whose label depends on them.

    Args:
        rows: The rows, with `row_id`.
        reviewed: The labels of a file; None where they stand in a column of the logs, which the rows have.
        source: Where the labels are.
    """
    partition = rows.file.partition_name if reviewed is None or reviewed.by_partition else None
    keys: list[Key] = [(partition, row_id) for row_id in rows.table["row_id"].to_pylist()]
    if reviewed is None:
        return keys, to_labels(rows.table[source.column], source)
    labels = [reviewed.responses.get(key) for key in keys]
    by_sentences = [i for i, key in enumerate(keys) if key in reviewed.by_sentences]
    if by_sentences:
        sentences = rows.read(SPANS, by_sentences)["sentences"].to_pylist()
        for i, spans in zip(by_sentences, sentences, strict=True):
            labels[i] = reviewed.label(keys[i], spans)
    return keys, labels


def refuse_repeated(file: str, met: Mapping[Key, int]) -> None:
    """Refuse labels that could be of several rows.

    Args:
        file: The file of labels.
        met: Row that it speaks of -> rows of the output that have this key.

    Raises:
        InputError: There are several.
    """
    if twice := next((key for key, rows in met.items() if rows > 1), None):
        raise InputError(errors.ROW_UNCLEAR, file=file, row=row_name(twice), rows=met[twice], column=PARTITION)
