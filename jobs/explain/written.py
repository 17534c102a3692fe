"""What `explanations/` holds of a strategy: which rows are done, and what has to go before it is done anew."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyarrow import fs as pafs
from pyarrow import parquet as pq

from ragassay.jobs.explain.answers import AnswerFiles
from ragassay.jobs.output.partitions import batches
from ragassay.jobs.storage import Folder, writing
from ragassay.schemas.explanations import ASKED_AGAIN

EXPLANATIONS = "explanations"
ROWS = 1024


def dataset_of(strategy: str) -> str:
    """Folder of a strategy's explanations below the output folder: `strategy` is their first hive key."""
    return f"{EXPLANATIONS}/strategy={strategy}"


@dataclass(frozen=True)
class Done:
    """What is written of a row.

    Attributes:
        sentences: Numbers of the sentences that are explained.
        final: Whether none of them has to be asked about again.
    """

    sentences: tuple[int, ...]
    final: bool


def entries(output: Folder, strategy: str) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Every explanation that is written, with its row."""
    for path in _files(output, strategy):
        for row in _rows(output.fs, path):
            for entry in row["explanations"]:
                yield row, entry


def explained_rows(output: Folder, strategy: str) -> dict[int, list[dict[str, Any]]]:
    """`row_key` -> the explanations of a response, in the order of its sentences."""
    return {row["row_key"]: row["explanations"] for path in _files(output, strategy) for row in _rows(output.fs, path)}


def take_out(output: Folder, strategy: str, flagged: Mapping[int, tuple[int, ...]], answers: AnswerFiles) -> set[int]:
    """Take out the rows that are to be written anew; their answers are kept first.

    Args:
        output: The output folder.
        strategy: Which explanations.
        flagged: `row_key` -> numbers of the sentences that are flagged now; a row that is not there is flagged no longer.
        answers: Where answers are kept.

    Returns:
        `row_key`s of the rows that stay.
    """
    stay: set[int] = set()
    for path in _files(output, strategy):
        rows = list(_rows(output.fs, path))
        good = [(done := _done(row)).final and done.sentences == flagged.get(row["row_key"]) for row in rows]
        stay |= {row["row_key"] for row, keep in zip(rows, good, strict=True) if keep}
        if all(good):
            continue
        answers.keep(entry for row, keep in zip(rows, good, strict=True) if not keep for entry in row["explanations"])
        table = pa.Table.from_batches(list(batches(output.fs, [path], rows=ROWS))).filter(pa.array(good))
        if len(table):
            with writing(output.fs, path) as stream:
                pq.write_table(table, stream, compression="zstd")
        else:
            output.fs.delete_file(path)
    return stay


def _files(output: Folder, strategy: str) -> list[str]:
    return [info.path for info in output.list(dataset_of(strategy), ".parquet")]


def _rows(fs: pafs.FileSystem, path: str) -> Iterator[dict[str, Any]]:
    for batch in batches(fs, [path], ["row_key", "run_id", "explanations"], ROWS):
        yield from batch.to_pylist()


def _done(row: Mapping[str, Any]) -> Done:
    statuses = {entry["status"] for entry in row["explanations"]}
    return Done(tuple(entry["sentence"] for entry in row["explanations"]), not statuses & set(ASKED_AGAIN))
