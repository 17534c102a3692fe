"""What people said in Label Studio, of tasks that `export --format label-studio` made: its JSON export as review lines."""

import json
from collections.abc import Iterator
from typing import Any

from ragassay.schemas.review import ReviewLine

EXPORT_SUFFIX = ".json"


def lines_of_export(text: str) -> list[ReviewLine]:
    """Every sentence that somebody labelled; annotations that were skipped are none.

    Args:
        text: A JSON export, not the minimal one: tasks with `data` and `annotations`.

    Raises:
        ValueError: It is none, or of other tasks; the message says what is wrong with which.
    """
    tasks = json.loads(text)
    if not (isinstance(tasks, list) and all(isinstance(task, dict) and "annotations" in task for task in tasks)):
        raise ValueError("it is no JSON export of Label Studio: a list of tasks with `annotations` (not JSON-MIN)")
    return [line for number, task in enumerate(tasks, 1) for line in _lines(task, f"task {task.get('id', number)}")]


def _lines(task: dict[str, Any], name: str) -> Iterator[ReviewLine]:
    data = task.get("data")
    if not (isinstance(data, dict) and isinstance(data.get("row_id"), str)):
        raise ValueError(f"{name} has no row_id in its data: it was not made by `ragassay export --format label-studio`")
    for annotation in task["annotations"]:
        if annotation.get("was_cancelled"):
            continue
        who = annotation.get("completed_by")
        who = (who.get("email") or who.get("id")) if isinstance(who, dict) else who
        for region in annotation.get("result") or []:
            value = region.get("value") or {}
            for label in value.get("labels") or []:
                yield _line(
                    name,
                    row_id=data["row_id"],
                    partition=data.get("partition") or None,
                    start=value.get("start"),
                    end=value.get("end"),
                    label=label,
                    reviewer=None if who is None else str(who),
                    at=annotation.get("updated_at") or annotation.get("created_at"),
                )


def _line(name: str, **said: Any) -> ReviewLine:
    try:
        return ReviewLine.model_validate(said)
    except ValueError as error:
        faults = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())  # type: ignore[attr-defined]
        raise ValueError(f"{name}: {faults}") from error
