"""Read the explanations of a strategy, and remove outdated rows."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from ragassay.jobs.output.sidecar_dataset import open_explanations
from ragassay.jobs.storage.folder import Folder
from ragassay.schemas.explanation_columns import RETRIED_STATUSES

READ_COLUMNS = ["row_key", "run_id", "explanations"]


def read_entries(output: Folder, strategy: str) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield each row of `explanations/` with each of its entries."""
    for row in open_explanations(output, strategy).read_rows(READ_COLUMNS):
        for entry in row["explanations"]:
            yield row, entry


def read_explanations(output: Folder, strategy: str) -> dict[int, list[dict[str, Any]]]:
    """Read the explanations of each response: `row_key` -> entries in sentence order."""
    return {row["row_key"]: row["explanations"] for row in open_explanations(output, strategy).read_rows(READ_COLUMNS)}


def remove_outdated_rows(
    output: Folder,
    strategy: str,
    flagged: Mapping[int, tuple[int, ...]],
    chosen: Collection[int],
    keep_answers: Callable[[Iterable[Mapping[str, Any]]], None],
) -> set[int]:
    """Remove duplicate rows, rows with other deciding sentences, and chosen rows with an unanswered question.

    Args:
        output: The output folder.
        strategy: Strategy of the explanations.
        flagged: `row_key` -> indices of the current deciding sentences.
        chosen: `row_key`s of the rows that this run explains.
        keep_answers: Stores the answers of removed entries.

    Returns:
        `row_key`s of the remaining rows.
    """
    dataset, remaining = open_explanations(output, strategy), set[int]()
    for path in dataset.list_files():
        is_kept = []
        removed: list[Mapping[str, Any]] = []
        for row in dataset.read_rows(READ_COLUMNS, [path]):
            key = row["row_key"]
            is_current = key not in remaining and _list_sentences(row) == flagged.get(key)
            is_kept.append(is_current and (key not in chosen or _is_final(row)))
            if is_kept[-1]:
                remaining.add(key)
            else:
                removed.extend(row["explanations"])
        keep_answers(removed)
        dataset.rewrite_rows(path, np.array(is_kept, dtype=bool))
    return remaining


def _list_sentences(row: Mapping[str, Any]) -> tuple[int, ...]:
    return tuple(entry["sentence"] for entry in row["explanations"])


def _is_final(row: Mapping[str, Any]) -> bool:
    return all(entry["status"] not in RETRIED_STATUSES for entry in row["explanations"])
