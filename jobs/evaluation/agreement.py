"""`agreement`: how far reviewers say the same of the same things, and where they should talk."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from ragassay.jobs.evaluation import errors
from ragassay.jobs.evaluation.label_table import ITEM, last_words, read_lines
from ragassay.jobs.evaluation.labels import SUFFIX, is_lines
from ragassay.jobs.output.scored_dataset import open_scored
from ragassay.jobs.storage.folder import Folder, writing
from ragassay.pipeline.calibration.kappa import Agreement, agreement_of
from ragassay.pipeline.errors import ConfigError, InputError
from ragassay.schemas.review import ReviewLabel

Item = tuple[str | None, str, int | None, int | None]
"""What is spoken of: partition, row id, and the characters [start, end) of a sentence; both None for the response."""

Words = Mapping[Item, str]
"""What somebody says of each thing, in words of `Said`."""


@dataclass(frozen=True)
class Agreed:
    """Two reviewers on one kind of thing.

    Attributes:
        first: A reviewer.
        second: Another.
        what: responses or sentences.
        shared: Things that both have looked at.
        unsure: Those of them that one is unsure of, which count as no label.
        found: How far they agree on the others; None where there are none.
    """

    first: str
    second: str
    what: str
    shared: int
    unsure: int
    found: Agreement | None


def read_reviewers(files: Sequence[str]) -> dict[str, Words]:
    """Reviewer -> what they say last of each thing. One whom several files name is told apart by file.

    Raises:
        ConfigError: A file is no JSON Lines.
        InputError: A file can't be read, or there are no two reviewers.
    """
    said: list[tuple[str, str, Words]] = []
    for file in files:
        if not is_lines(file):
            raise ConfigError(errors.NO_REVIEW_LINES, file=file, suffix=SUFFIX)
        for (name,), words in last_words(read_lines(file)).group_by("annotator", maintain_order=True):
            said.append((name or "somebody", file, dict(zip(words.select(ITEM).iter_rows(), words["label"], strict=True))))
    names = [name for name, _, _ in said]
    found = {name if names.count(name) == 1 else f"{name} ({file})": words for name, file, words in said}
    if len(found) < 2:
        who = f"only {', '.join(found)} says anything" if found else "nobody says anything"
        raise InputError(errors.ONE_REVIEWER, files=", ".join(files), reviewers=who)
    return found


def agreement(reviewers: Mapping[str, Words]) -> list[Agreed]:
    """Every two reviewers, on responses and on sentences."""
    found = []
    for first, second in combinations(reviewers, 2):
        for what in ("responses", "sentences"):
            shared = [
                (reviewers[first][item], reviewers[second][item])
                for item in reviewers[first].keys() & reviewers[second].keys()
                if (item[2] is None) == (what == "responses")
            ]
            sure = [
                (a == ReviewLabel.SUPPORTED, b == ReviewLabel.SUPPORTED) for a, b in shared if ReviewLabel.UNSURE not in (a, b)
            ]
            found.append(Agreed(first, second, what, len(shared), len(shared) - len(sure), agreement_of(sure)))
    return found


def to_talk_about(reviewers: Mapping[str, Words], output: Folder | None) -> list[dict[str, Any]]:
    """What is said differently, unsure of it included: row, partition, place, who says what, and the text from an output.

    Raises:
        InputError: The output has none of these rows.
    """
    items: dict[Item, dict[str, str]] = {}
    for who, words in reviewers.items():
        for item, label in words.items():
            items.setdefault(item, {})[who] = label
    differ = {item: said for item, said in items.items() if len(set(said.values())) > 1}
    texts = _texts(output, {item[1] for item in differ}) if output and differ else {}
    if output and differ and not texts:
        raise InputError(errors.OF_OTHER_ROWS, output=output.uri)
    found = []
    for partition, row_id, start, end in sorted(differ, key=lambda item: (item[0] or "", item[1], item[2] or 0, item[3] or 0)):
        row: dict[str, Any] = {"row_id": row_id}
        row |= {"partition": partition} if partition else {}
        row |= {"start": start, "end": end} if start is not None else {}
        row["said"] = differ[partition, row_id, start, end]
        there = texts.get((partition, row_id), texts.get((None, row_id)) if partition is None else None)
        if there is not None:
            row |= {"question": there["question"], "text": (there["response"] or "")[start:end]}
        found.append(row)
    return found


def write_rows(rows: Sequence[Mapping[str, Any]], file: Folder) -> None:
    """Write rows to talk about as JSON Lines."""
    with writing(file.fs, file.root) as stream:
        for row in rows:
            stream.write((json.dumps(row, ensure_ascii=False) + "\n").encode())


def item_texts(rows: Sequence[Mapping[str, Any]]) -> Iterator[list[str]]:
    """Rows to talk about as cells of a table: row, place, who says what, text."""
    for row in rows:
        place = f"{row['start']} to {row['end']}" if "start" in row else "response"
        who = ", ".join(f"{name}: {said}" for name, said in row["said"].items())
        yield [row["row_id"], row.get("partition", ""), place, who, row.get("text", "")]


def _texts(output: Folder, row_ids: set[str]) -> dict[tuple[str | None, str], dict[str, Any]]:
    """Question and response of rows, by partition and id, and by id alone."""
    found: dict[tuple[str | None, str], dict[str, Any]] = {}
    for rows in open_scored(output).require_verdicts().batches(["row_id"]):
        chosen = [i for i, row_id in enumerate(rows.table["row_id"].to_pylist()) if row_id in row_ids]
        for table in rows.take(["row_id", "question", "response"], chosen):
            for row in table.to_pylist():
                found[rows.file.partition_name, row["row_id"]] = found[None, row["row_id"]] = row
    return found
