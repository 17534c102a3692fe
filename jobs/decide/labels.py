"""Labels of responses and sentences: a column of the logs, or a file of reviewers: Parquet, JSON Lines, Label Studio."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ragassay.jobs.decide import errors
from ragassay.jobs.output.scored_dataset import Rows
from ragassay.jobs.quoted import MOST_OF_ID, quoted, some_of
from ragassay.jobs.storage import open_file, read_table
from ragassay.pipeline.errors import InputError
from ragassay.schemas.columns import HALLUCINATED, SUPPORTED
from ragassay.schemas.review import LEAST_PROBABILITY, ReviewLine, Said


class Label(StrEnum):
    """What a person says of a response."""

    CORRECT = "correct"
    PARTIAL = "partial"
    WRONG = "wrong"


WORDS = {
    "correct": Label.CORRECT,
    "supported": Label.CORRECT,
    "partial": Label.PARTIAL,
    "wrong": Label.WRONG,
    "hallucinated": Label.WRONG,
    "unsupported": Label.WRONG,
}
TRUE_MEANS = {
    **dict.fromkeys(("hallucinated", "hallucination", "unsupported", "wrong"), HALLUCINATED),
    **dict.fromkeys(("supported", "correct", "grounded", "faithful"), SUPPORTED),
}
PARTITION = "partition"
DRAWN = ("stratum", "inclusion_probability")
SENTENCE_COLUMNS = ("sentence_labels", "spans")
EXPORT_SUFFIX = ".json"
SUFFIX = ".jsonl"
SUFFIXES = (SUFFIX, EXPORT_SUFFIX)
"""By its name a file of labels is one of these; else it is Parquet."""

NEVER = datetime.min.replace(tzinfo=UTC)
SPANS = ("sentences.list.element.start", "sentences.list.element.end")


@dataclass(frozen=True)
class LabelSource:
    """Where labels come from.

    Attributes:
        column: Column of the labels: booleans (or 0 and 1), or the words of WORDS; null is no label.
        true_means: What true says of a response, supported or hallucinated; None takes it from the column's name.
        ignore: Label values that count as no label.
        sentences: Column of sentence labels (structs of start, end, supported) or of unsupported spans (start, end); None
            takes one of SENTENCE_COLUMNS if it is there.
        where: Column -> the value, as text, that a row must have to be looked at; see `jobs.decide.labelled.as_text`.
        file: Parquet file with row_id and the label column, a row a response, or, with start and end, a row a sentence;
            with a column `partition` (`dt=2026-11-20`, as in the export of flagged rows) ids may repeat between partitions.
            Or JSON Lines of the review page, whose name ends in `.jsonl`; see `schemas.review`. None takes the labels from
            the logs' own columns.
    """

    column: str
    true_means: str | None = None
    ignore: frozenset[str] = frozenset()
    sentences: str | None = None
    where: Mapping[str, str] = field(default_factory=dict)
    file: str | None = None


Key = tuple[str | None, str]
"""Partition and id of a row; None is any partition."""

Drawn = tuple[str | None, float | None]
"""Stratum of a row in the reviewers' sample, and the probability with which it was drawn; None where it is not said."""

Item = tuple[str | None, str, int | None, int | None]
"""What a line speaks of: partition, row id, and the characters [start, end) of a sentence; both None for the response."""


@dataclass(frozen=True)
class Reviewed:
    """Labels from a file, by partition and row id; by row id alone where the file has no column `partition`.

    Attributes:
        responses: Row -> label.
        sentences: Row -> labelled sentences (start, end, supported), where the file has a row a sentence.
        by_sentences: Rows of which nothing is labelled but sentences, all of them supported: the response is correct if those
            are all the sentences that it has, which only the output tells.
        by_partition: Whether the file names partitions.
        weak: Who said it, where the file says that these are the opinions of a model; else None.
        drawn: Every row that the file speaks of, with or without a label -> from which stratum and with what probability it was
            drawn, as its lines say; several where they differ.
        repeated: Lines that say something again.
    """

    responses: dict[Key, Label] = field(default_factory=dict)
    sentences: dict[Key, list[dict[str, Any]]] = field(default_factory=dict)
    by_sentences: set[Key] = field(default_factory=set)
    by_partition: bool = False
    weak: str | None = None
    drawn: dict[Key, set[Drawn]] = field(default_factory=dict)
    repeated: int = 0

    def speaks_of(self, key: Key) -> bool:
        """Whether a row has a label, or may have one by its sentences."""
        return key in self.responses or key in self.by_sentences

    def label(self, key: Key, sentences: Sequence[dict[str, Any]] | None) -> Label | None:
        """Label of a row of the output, by its sentences (start, end) there where it has no label of its own."""
        if key not in self.by_sentences:
            return self.responses.get(key)
        truth = sentence_truth([(s["start"], s["end"]) for s in sentences or ()], self.sentences[key], None)
        return Label.CORRECT if truth and all(truth) else None


def to_labels(column: pa.Array | pa.ChunkedArray, source: LabelSource) -> list[Label | None]:
    """Labels of a column, null and NaN as None.

    Raises:
        InputError: The type, or a value, is no label.
    """
    kind = column.type
    if pa.types.is_dictionary(kind):
        column = column.cast(kind.value_type)
        kind = column.type
    if pa.types.is_floating(kind):
        column = pc.if_else(pc.is_nan(column), None, column)
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return _from_truth(column, source)
    if not (
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind) or pa.types.is_null(kind)
    ):
        raise InputError(errors.COLUMN_TYPE, column=source.column, type=kind, forms=_forms())
    unknown = sorted({str(v) for v in pc.unique(column).to_pylist() if v is not None} - set(WORDS) - source.ignore)
    if unknown:
        raise InputError(errors.UNKNOWN_VALUES, column=source.column, type=kind, values=some_of(unknown), forms=_forms())
    return [None if v is None or v in source.ignore else WORDS[v] for v in column.to_pylist()]


def read_reviewed(source: LabelSource) -> Reviewed:
    """Read labels from the source's file.

    Raises:
        InputError: The file can't be read, lacks a column, or says two things of one response or sentence.
    """
    uri = source.file or ""
    if is_lines(uri):
        return _reviewed_lines(uri)
    where, name = open_file(uri)
    try:
        table = read_table(where.fs, where.path(name))
    except (OSError, pa.ArrowInvalid) as error:
        raise InputError(errors.NO_PARQUET, file=uri, suffix=SUFFIX, reason=error) from error
    missing = sorted({"row_id", source.column} - set(table.column_names))
    if missing:
        raise InputError(errors.MISSING_COLUMN, file=uri, columns=", ".join(missing), known=", ".join(table.column_names))
    by_partition = PARTITION in table.column_names
    places = table[PARTITION].cast(pa.string()).to_pylist() if by_partition else [None] * len(table)
    ids: list[Key] = list(zip(places, table["row_id"].cast(pa.string()).to_pylist(), strict=True))
    labels = to_labels(table[source.column], source)
    if {"start", "end"} <= set(table.column_names) and table["start"].null_count + table["end"].null_count:
        raise InputError(errors.HALF_A_SPAN, file=uri)
    if {"start", "end"} <= set(table.column_names):
        spans = (table["start"].to_pylist(), table["end"].to_pylist())
        return replace(_reviewed_sentences(uri, ids, *spans, labels, by_partition), drawn=_drawn(uri, table, ids))
    responses: dict[Key, Label] = {}
    for key, label in zip(ids, labels, strict=True):
        if label is not None and responses.setdefault(key, label) != label:
            raise InputError(errors.CONTRADICTION, file=uri, label=responses[key], other=label, row=row_name(key))
    found = Reviewed(responses, by_partition=by_partition, weak=_weak(table), drawn=_drawn(uri, table, ids))
    if "sentence_labels" in table.column_names:
        said = zip(ids, table["sentence_labels"].to_pylist(), strict=True)
        found.sentences.update({key: sentences for key, sentences in said if sentences is not None})
    return found


def _drawn(uri: str, table: pa.Table, ids: Sequence[Key]) -> dict[Key, set[Drawn]]:
    """Strata and probabilities of a Parquet file, where it has such columns."""
    there = [table[name].to_pylist() if name in table.column_names else [None] * len(ids) for name in DRAWN]
    found: dict[Key, set[Drawn]] = {}
    for key, stratum, probability in zip(ids, *there, strict=True):
        if probability is not None and not (isinstance(probability, int | float) and LEAST_PROBABILITY <= probability <= 1):
            raise InputError(
                errors.PROBABILITY_OUT_OF_RANGE,
                file=uri,
                column=DRAWN[1],
                row=row_name(key),
                value=quoted(probability),
                least=LEAST_PROBABILITY,
            )
        found.setdefault(key, set()).add((None if stratum is None else str(stratum), probability))
    return found


def is_lines(uri: str) -> bool:
    """Whether a file of labels says by itself what they mean, by its name: JSON Lines, or an export of Label Studio."""
    return uri.lower().endswith(SUFFIXES)


def _reviewed_lines(uri: str) -> Reviewed:
    """A label of a response stands beside those of its sentences; without one it is wrong if one of them is."""
    lines = read_lines(uri)
    held = settled(uri, lines)
    found = Reviewed(by_partition=any(line.partition for line in lines), repeated=len(lines) - len(held))
    for line in held.values():
        key = ((line.partition or "") if found.by_partition else None, line.row_id)
        found.drawn.setdefault(key, set()).add((line.stratum, line.inclusion_probability))
        if line.label is Said.UNSURE:
            continue
        if line.start is None:
            found.responses[key] = WORDS[line.label]
        else:
            place = {"start": line.start, "end": line.end, "supported": line.label is Said.SUPPORTED}
            found.sentences.setdefault(key, []).append(place)
    for key in found.sentences.keys() - found.responses.keys():
        if all(sentence["supported"] for sentence in found.sentences[key]):
            found.by_sentences.add(key)
        else:
            found.responses[key] = Label.WRONG
    return found


def _weak(table: pa.Table) -> str | None:
    """Who said it, if a file says that a model did, such as that of `explain --feedback`."""
    if "weak" not in table.column_names or not pc.any(pc.fill_null(table["weak"], False)).as_py():
        return None
    names = pc.unique(table["labelled_by"]).to_pylist() if "labelled_by" in table.column_names else []
    return ", ".join(sorted(name for name in names if name)) or "a model"


def row_name(key: Key) -> str:
    """A row as a message names it."""
    partition, row_id = key
    return f"row {quoted(row_id, MOST_OF_ID)}" + (f" of partition {partition}" if partition else "")


def sentence_truth(
    spans: Sequence[tuple[int, int]], labels: Sequence[dict[str, Any]] | None, label: Label | None
) -> list[bool | None]:
    """Whether each sentence is supported, by labelled sentences or unsupported spans of the same response.

    Args:
        spans: Our sentences, [start, end) in the response.
        labels: Structs of start, end and supported; or of start and end, which are unsupported.
        label: The response's label: without any span, the sentences of a response that is not correct are unknown.

    Returns:
        True, False, or None where nothing is said of it.
    """
    if labels is None:
        return [None] * len(spans)
    are_spans = not any("supported" in part for part in labels if part)
    if are_spans and not labels and label is not Label.CORRECT:
        return [None] * len(spans)
    truth: list[bool | None] = []
    for start, end in spans:
        known = (part for part in labels if part and part["start"] is not None and part["end"] is not None)
        over = [part for part in known if part["start"] < end and start < part["end"]]
        said = [part.get("supported", False) for part in over]
        if False in said:
            truth.append(False)
        else:
            truth.append(True if are_spans or True in said else None)
    return truth


def _from_truth(column: pa.Array | pa.ChunkedArray, source: LabelSource) -> list[Label | None]:
    meaning = source.true_means or TRUE_MEANS.get(source.column.lower().removeprefix("is_"))
    if meaning is None:
        raise InputError(
            errors.TRUE_UNCLEAR, column=source.column, type=column.type, supported=SUPPORTED, hallucinated=HALLUCINATED
        )
    values = column.to_pylist()
    odd = sorted({str(v) for v in values if v is not None and v not in (0, 1)})
    if odd:
        raise InputError(errors.ODD_NUMBERS, column=source.column, values=", ".join(odd[:10]))
    return [None if v is None else Label.CORRECT if bool(v) == (meaning == SUPPORTED) else Label.WRONG for v in values]


def _reviewed_sentences(
    uri: str,
    ids: Sequence[Key],
    starts: Sequence[int],
    ends: Sequence[int],
    labels: Sequence[Label | None],
    by_partition: bool,
) -> Reviewed:
    """A response is wrong if one of its sentences is, correct if all its sentences in the file are; else unlabelled."""
    said: dict[Key, dict[tuple[int, int], Label | None]] = {}
    for key, start, end, label in zip(ids, starts, ends, labels, strict=True):
        mine = said.setdefault(key, {})
        if mine.get((start, end), label) != label:
            raise InputError(errors.SENTENCE_CONTRADICTION, file=uri, start=start, end=end, row=row_name(key))
        mine[start, end] = label
    found = Reviewed(by_partition=by_partition)
    for key, sentences in said.items():
        known = {place: label for place, label in sentences.items() if label is not None}
        if known:
            found.sentences[key] = [
                {"start": start, "end": end, "supported": label is Label.CORRECT} for (start, end), label in known.items()
            ]
        if any(label is not Label.CORRECT for label in known.values()):
            found.responses[key] = Label.WRONG
        elif len(known) == len(sentences):
            found.responses[key] = Label.CORRECT
    return found


def _forms() -> str:
    return ", ".join(WORDS)


def item_of(line: ReviewLine) -> Item:
    """What a line speaks of."""
    return line.partition, line.row_id, line.start, line.end


def item_name(item: Item) -> str:
    """What was spoken of, as a message names it."""
    partition, row_id, start, end = item
    row = f"row {quoted(row_id, MOST_OF_ID)}" + (f" of partition {partition}" if partition else "")
    return row if start is None else f"the sentence {start} to {end} of {row}"


def read_lines(uri: str) -> list[ReviewLine]:
    """Every line of a reviewers' file, in its order.

    Raises:
        InputError: The file can't be read, or a line of it.
    """
    where, name = open_file(uri)
    try:
        text = where.read(name)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(errors.NO_JSON_LINES, file=uri, reason=error) from error
    if text is None:
        raise InputError(errors.NO_FILE, file=uri)
    if name.lower().endswith(EXPORT_SUFFIX):
        try:
            return lines_of_export(text.removeprefix("\ufeff"))
        except ValueError as error:
            raise InputError(errors.UNREADABLE, file=uri, reason=error) from error
    found = []
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), 1):  # a text may hold other line breaks
        if line.strip():
            try:
                found.append(ReviewLine.from_json(line))
            except ValueError as error:
                raise InputError(errors.WRONG_LINE, file=uri, line=number, reason=error) from error
    return found


def last_words(lines: Iterable[ReviewLine]) -> dict[str | None, dict[Item, ReviewLine]]:
    """Reviewer -> what they say last of each thing: the latest by `at`, of the same time the last line."""
    found: dict[str | None, dict[Item, ReviewLine]] = {}
    for line in lines:
        mine = found.setdefault(line.reviewer, {})
        before = mine.get(item_of(line))
        if before is None or (line.at or NEVER) >= (before.at or NEVER):
            mine[item_of(line)] = line
    return found


def settled(uri: str, lines: Sequence[ReviewLine]) -> dict[Item, ReviewLine]:
    """The one line that holds of each thing; one that knows goes before one that is unsure.

    Raises:
        InputError: Two reviewers differ.
    """
    found: dict[Item, ReviewLine] = {}
    differ: list[tuple[ReviewLine, ReviewLine]] = []
    for mine in last_words(lines).values():
        for item, line in mine.items():
            other = found.get(item)
            if other is None or other.label is Said.UNSURE:
                found[item] = line
            elif line.label not in (other.label, Said.UNSURE):
                differ.append((other, line))
    if differ:
        one, other = differ[0]
        more = f" (and differ on {len(differ) - 1} more)" if len(differ) > 1 else ""
        raise InputError(
            errors.REVIEWERS_DISAGREE,
            file=uri,
            reviewer=_who(one),
            label=one.label,
            other=_who(other),
            other_label=other.label,
            item=item_name(item_of(one)),
            more=more,
        )
    return found


def _who(line: ReviewLine) -> str:
    return line.reviewer or "somebody"


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
