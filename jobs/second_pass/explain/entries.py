"""What `explanations/` holds of a strategy: which rows are done, and what has to go before it is done anew."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from ragassay.jobs.output.sidecar import open_explanations
from ragassay.jobs.storage.folder import Folder
from ragassay.schemas.explanations import RETRIED_STATUSES

READ = ["row_key", "run_id", "explanations"]


def read_entries(output: Folder, strategy: str) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Every explanation that is written, with its row."""
    for row in open_explanations(output, strategy).read_rows(READ):
        for entry in row["explanations"]:
            yield row, entry


def read_explanations(output: Folder, strategy: str) -> dict[int, list[dict[str, Any]]]:
    """`row_key` -> the explanations of a response, in the order of its sentences."""
    return {row["row_key"]: row["explanations"] for row in open_explanations(output, strategy).read_rows(READ)}


def remove_outdated_rows(
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
    dataset, stay = open_explanations(output, strategy), set[int]()
    for path in dataset.list_files():
        good = []
        gone: list[Mapping[str, Any]] = []
        for row in dataset.read_rows(READ, [path]):
            key = row["row_key"]
            stays = key not in stay and _sentences(row) == flagged.get(key) and (key not in chosen or _is_final(row))
            good.append(stays)
            (stay.add(key) if stays else gone.extend(row["explanations"]))
        keep(gone)
        dataset.rewrite_rows(path, np.array(good, dtype=bool))
    return stay


def _sentences(row: Mapping[str, Any]) -> tuple[int, ...]:
    return tuple(entry["sentence"] for entry in row["explanations"])


def _is_final(row: Mapping[str, Any]) -> bool:
    return all(entry["status"] not in RETRIED_STATUSES for entry in row["explanations"])
