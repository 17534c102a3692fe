"""What `explanations/` holds of a strategy: which rows are done, and what has to go before it is done anew."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa
from pyarrow import fs as pafs
from pyarrow import parquet as pq

from ragassay.jobs.output.scored_dataset import batches
from ragassay.jobs.storage import Folder, writing
from ragassay.schemas.explanations import ASKED_AGAIN, dataset_of

ROWS = 1024


def entries(output: Folder, strategy: str) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Every explanation that is written, with its row."""
    for path in _files(output, strategy):
        for row in _rows(output.fs, path):
            for entry in row["explanations"]:
                yield row, entry


def explained_rows(output: Folder, strategy: str) -> dict[int, list[dict[str, Any]]]:
    """`row_key` -> the explanations of a response, in the order of its sentences."""
    return {row["row_key"]: row["explanations"] for path in _files(output, strategy) for row in _rows(output.fs, path)}


def take_out(
    output: Folder,
    strategy: str,
    flagged: Mapping[int, tuple[int, ...]],
    chosen: Collection[int],
    keep: Callable[[Iterable[Mapping[str, Any]]], None],
) -> set[int]:
    """Take out the rows that are to be written anew; their answers are kept first.

    Args:
        output: The output folder.
        strategy: Which explanations.
        flagged: `row_key` -> numbers of the sentences that are flagged now; a row that is not there is flagged no longer.
        chosen: `row_key`s of the rows that this run explains: of the others, what was not answered stays as it is.
        keep: Keeps the explanations of rows that go.

    Returns:
        `row_key`s of the rows that stay.
    """
    stay: set[int] = set()
    for path in _files(output, strategy):
        good = []
        gone: list[Mapping[str, Any]] = []
        for row in _rows(output.fs, path):
            key = row["row_key"]
            stays = key not in stay and _sentences(row) == flagged.get(key) and (key not in chosen or _is_final(row))
            good.append(stays)
            (stay.add(key) if stays else gone.extend(row["explanations"]))
        if all(good):
            continue
        keep(gone)
        table = pa.Table.from_batches(list(batches(output.fs, [path], rows=ROWS))).filter(pa.array(good))
        if len(table):
            with writing(output.fs, path) as stream:
                pq.write_table(table, stream, compression="zstd")
        else:
            output.fs.delete_file(path)
    return stay


def _sentences(row: Mapping[str, Any]) -> tuple[int, ...]:
    return tuple(entry["sentence"] for entry in row["explanations"])


def _is_final(row: Mapping[str, Any]) -> bool:
    return all(entry["status"] not in ASKED_AGAIN for entry in row["explanations"])


def _files(output: Folder, strategy: str) -> list[str]:
    return [info.path for info in output.list(dataset_of(strategy), ".parquet")]


def _rows(fs: pafs.FileSystem, path: str) -> Iterator[dict[str, Any]]:
    for batch in batches(fs, [path], ["row_key", "run_id", "explanations"], ROWS):
        yield from batch.to_pylist()
