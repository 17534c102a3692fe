"""The labels of a reviewers' file, row by row of an output."""

from collections.abc import Mapping

from pyarrow import parquet as pq

from ragassay.jobs.decide.labels import PARTITION, Key, Label, Reviewed, row_name
from ragassay.jobs.output.partitions import hive_path, read_group
from ragassay.pipeline.errors import InputError


def labels_of_group(
    parquet: pq.ParquetFile, group: int, place: str, reviewed: Reviewed
) -> tuple[list[Key], list[Label | None]]:
    """Key and label of every row of a row group of `scored/`; sentences are read only where a label depends on them.

    Args:
        parquet: The file.
        group: Number of the row group.
        place: The file's partition, as on disk.
        reviewed: The labels.
    """
    partition = hive_path(place) if reviewed.by_partition else None
    keys = [(partition, row_id) for row_id in read_group(parquet, group, ["row_id"], place)["row_id"].to_pylist()]
    if reviewed.by_sentences.isdisjoint(keys):
        return keys, [reviewed.responses.get(key) for key in keys]
    sentences = read_group(parquet, group, ["sentences"], place)["sentences"].to_pylist()
    return keys, [reviewed.label(key, mine) for key, mine in zip(keys, sentences, strict=True)]


def refuse_repeated(file: str, met: Mapping[Key, int]) -> None:
    """Refuse labels that could be of several rows.

    Args:
        file: The file of labels.
        met: Row that it speaks of -> rows of the output that have this key.

    Raises:
        InputError: There are several.
    """
    if twice := next((key for key, rows in met.items() if rows > 1), None):
        raise InputError(
            f"labels {file}: {row_name(twice)} is {met[twice]} rows of this output: name their partitions in "
            f"a column {PARTITION!r}, such as `ragassay export --format flagged` writes"
        )
