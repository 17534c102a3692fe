"""Read labels of every form (log column, Parquet, JSON Lines, Label Studio) into one long table."""

import json
from collections.abc import Iterator, Mapping
from datetime import UTC
from typing import Any

import polars as pl
import pyarrow as pa

from ragassay.jobs.display.quoted import MAX_ID_CHARS, quote_value
from ragassay.jobs.evaluation import errors
from ragassay.jobs.evaluation.labels import (
    EXPORT_SUFFIX,
    LABEL_WORDS,
    LINES_SUFFIX,
    SENTENCE_COLUMNS,
    Label,
    LabelSource,
    is_review_file,
    parse_labels,
)
from ragassay.jobs.input.user_table import read_user_table
from ragassay.jobs.output.scored_dataset import Rows, ScoredDataset
from ragassay.jobs.storage.folder import open_file_folder
from ragassay.pipeline.errors import InputError
from ragassay.schemas.review import MIN_PROBABILITY, ReviewLabel, ReviewLine

ROW_COLUMNS = ["partition", "row_id"]
ITEM_COLUMNS = [*ROW_COLUMNS, "start", "end"]
SAMPLING_COLUMNS = ["stratum", "inclusion_probability"]
LABEL_SCHEMA = pl.Schema(
    {
        "row_key": pl.Int64(),
        "partition": pl.String(),
        "row_id": pl.String(),
        "sentence": pl.Int64(),
        "start": pl.Int64(),
        "end": pl.Int64(),
        "label": pl.String(),
        "annotator": pl.String(),
        "at": pl.Datetime("us", "UTC"),
        "stratum": pl.String(),
        "inclusion_probability": pl.Float64(),
        "weak": pl.Boolean(),
        "line_count": pl.UInt32(),
    }
)
"""One row per labeled item.

An item is a response, if `start` and `end` are null. Otherwise it is a span: the characters [start, end) of a response. A span
has one row per `sentence` (from 0) that it touches, plus one row whose `sentence` is null. `label` is a `Label`; null if the
annotator looked at the item but gave none. `row_key` is null if the output has no such row, `partition` if the file names none.
`weak` marks a model's opinions. `line_count` counts the lines on the same item.
"""

END_OF_RESPONSE = 2**40
"""An offset after the end of every response."""

SPAN_COLUMNS = ("sentences.list.element.start", "sentences.list.element.end")
IS_RESPONSE = pl.col("start").is_null()
IS_CORRECT = pl.col("label") == Label.CORRECT.value


def load_labels(scored: ScoredDataset, source: LabelSource, *, sentences: bool = True) -> pl.DataFrame:
    """Load the labels of an output's rows; see LABEL_SCHEMA.

    A response that has only sentence labels is wrong if a sentence is wrong, and correct if all its sentences are.

    Args:
        scored: The output.
        source: The labels.
        sentences: Whether to load sentence labels from the logs.

    Raises:
        InputError: A column is missing, the file can't be used, or a label matches several rows.
    """
    file_labels = read_labels(source) if source.file else None
    sentence_column = None
    if file_labels is None:
        if source.column in {"verdict", "status", "run_id", "error"}:
            raise InputError(errors.OWN_COLUMN, column=source.column)
        scored.require_columns([source.column, *([source.sentence_column] if source.sentence_column else [])])
        sentence_column = _find_sentence_column(scored, source) if sentences else None
    join_columns = ROW_COLUMNS if file_labels is not None and file_labels["partition"].count() else ["row_id"]
    parts = [LABEL_SCHEMA.to_frame()]
    columns = [
        "row_key",
        "row_id",
        *([source.column] if file_labels is None else []),
        *([sentence_column] if sentence_column else []),
    ]
    for rows in scored.read_batches(columns):
        if file_labels is None:
            labels = _read_log_labels(rows, source, sentence_column)
        else:
            partition = pl.lit(rows.file.partition_name).alias("partition")
            numbered = pl.DataFrame(rows.table).with_columns(partition).with_row_index("row")
            labels = numbered.select("row", "row_key", *join_columns).join(
                file_labels, on=join_columns, maintain_order="left_right"
            )
        labeled_rows = labels.filter(~IS_RESPONSE)["row"].unique().sort().to_numpy()
        if len(labeled_rows):
            spans = pl.DataFrame(
                {"row": labeled_rows, "span": pl.Series(rows.read_columns(SPAN_COLUMNS, labeled_rows)["sentences"])}
            )
            labels = _match_sentences(
                labels.with_columns(pl.col("row").cast(spans.schema["row"])), spans, derive=file_labels is not None
            )
        parts.append(labels.drop("row"))
    table = pl.concat(parts, how="diagonal_relaxed")
    if file_labels is None:
        return table
    ambiguous = (
        table.drop_nulls("label").unique([*ROW_COLUMNS, "row_key"], maintain_order=True).filter(pl.len().over(ROW_COLUMNS) > 1)
    )
    if len(ambiguous):
        count = len(ambiguous.join(ambiguous[:1], on=ROW_COLUMNS, how="semi", nulls_equal=True))
        row = describe_item({**ambiguous.row(0, named=True), "start": None})
        raise InputError(errors.AMBIGUOUS_ROW, file=source.file, row=row, rows=count, column="partition")
    return pl.concat([table, file_labels.join(table, on=join_columns, how="anti")], how="diagonal_relaxed")


def map_response_labels(labels: pl.DataFrame) -> dict[int, Label]:
    """Return `row_key` -> label of the response, for responses that have one."""
    known = labels.filter(IS_RESPONSE).drop_nulls(["row_key", "label"])
    return dict(zip(known["row_key"], map(Label, known["label"]), strict=True))


def list_sentence_truth(labels: pl.DataFrame) -> pl.DataFrame:
    """Return `row_key`, `sentence`, and whether it is `supported`, for labeled sentences."""
    known = labels.drop_nulls(["row_key", "sentence", "label"])
    return known.group_by("row_key", "sentence", maintain_order=True).agg(supported=IS_CORRECT.all())


def name_weak_labelers(labels: pl.DataFrame) -> str | None:
    """Return who gave the labels if a model did, as in a file of `explain --feedback`; None if people did."""
    weak = labels.filter(pl.col("weak"))
    return ", ".join(weak["annotator"].drop_nulls().unique().sort()) or "a model" if len(weak) else None


def read_labels(source: LabelSource) -> pl.DataFrame:
    """Read labels from the source's file.

    Returns:
        LABEL_SCHEMA without `row_key` and `sentence`; each label once for each stratum and inclusion probability.

    Raises:
        InputError: The file can't be read, lacks a column, or labels an item in two ways.
    """
    uri = source.file or ""
    lines = (read_review_lines(uri) if is_review_file(uri) else _read_parquet(uri, source)).with_columns(
        line_count=pl.len().over(ITEM_COLUMNS)
    )
    latest = keep_latest_labels(lines) if is_review_file(uri) else lines
    sure = latest.filter(pl.col("label") != ReviewLabel.UNSURE.value)
    conflicting = sure.unique([*ITEM_COLUMNS, "label"], keep="first", maintain_order=True).filter(
        pl.len().over(ITEM_COLUMNS) > 1
    )
    if len(conflicting):
        first, second = (
            conflicting.join(conflicting[:1], on=ITEM_COLUMNS, how="semi", nulls_equal=True, maintain_order="left")
            .head(2)
            .to_dicts()
        )
        fields = {"file": uri, "item": describe_item(first), "label": first["label"], "other_label": second["label"]}
        if not is_review_file(uri):
            raise InputError(errors.CONTRADICTION, **fields)
        items = conflicting.n_unique(ITEM_COLUMNS)
        first_reviewer, second_reviewer = (row["annotator"] or "an unnamed reviewer" for row in (first, second))
        more = f" (and differ on {items - 1} more)" if items > 1 else ""
        raise InputError(errors.REVIEWERS_DISAGREE, reviewer=first_reviewer, other=second_reviewer, more=more, **fields)
    kept = pl.concat([sure, latest]).unique([*ITEM_COLUMNS, *SAMPLING_COLUMNS], keep="first", maintain_order=True)
    partition = pl.col("partition").fill_null("") if kept["partition"].count() else pl.col("partition")
    return kept.select(
        pl.exclude("row_key", "sentence", "label", "partition"),
        partition,
        pl.col("label").replace_strict({word: label.value for word, label in LABEL_WORDS.items()}, default=None),
    )


def read_review_lines(uri: str) -> pl.DataFrame:
    """Read every line of a review file, in its order; labels are values of `ReviewLabel`.

    Raises:
        InputError: The file, or a line of it, can't be read.
    """
    folder, name = open_file_folder(uri)
    try:
        text = folder.read(name)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(errors.NOT_JSON_LINES, file=uri, reason=error) from error
    if text is None:
        raise InputError(errors.NO_FILE, file=uri)
    text = text.removeprefix("\ufeff")
    lines = []
    if name.lower().endswith(EXPORT_SUFFIX):
        try:
            lines = _parse_export(text)
        except ValueError as error:
            raise InputError(errors.UNREADABLE, file=uri, reason=error) from error
    else:
        for number, line in enumerate(text.split("\n"), 1):  # a text may contain other line breaks
            if line.strip():
                try:
                    lines.append(ReviewLine.from_json(line))
                except ValueError as error:
                    raise InputError(errors.INVALID_LINE, file=uri, line=number, reason=error) from error
    records = (
        {**dict(line), "label": line.label.value, "annotator": line.reviewer, "at": line.at and line.at.astimezone(UTC)}
        for line in lines
    )
    return pl.DataFrame([{name: line.get(name) for name in LABEL_SCHEMA} for line in records], schema=LABEL_SCHEMA)


def keep_latest_labels(labels: pl.DataFrame) -> pl.DataFrame:
    """Keep each annotator's latest label of each item: the latest by `at`; at the same time, the last line."""
    return labels.sort("at", maintain_order=True).unique(["annotator", *ITEM_COLUMNS], keep="last", maintain_order=True)


def describe_item(item: Mapping[str, Any]) -> str:
    """Describe an item for a message, from a row of LABEL_SCHEMA."""
    row = f"row {quote_value(item['row_id'], MAX_ID_CHARS)}" + (
        f" of partition {item['partition']}" if item["partition"] else ""
    )
    return row if item["start"] is None else f"the sentence {item['start']} to {item['end']} of {row}"


def _parse_export(text: str) -> list[ReviewLine]:
    """Parse a JSON export of Label Studio, of tasks that `ragassay export` made. Skipped annotations are left out.

    Args:
        text: A full JSON export, not JSON-MIN: tasks with `data` and `annotations`.

    Raises:
        ValueError: The text is not such an export; the message states the task and its fault.
    """
    tasks = json.loads(text)
    if not (isinstance(tasks, list) and all(isinstance(task, dict) and "annotations" in task for task in tasks)):
        raise ValueError("not a JSON export of Label Studio: give a list of tasks with `annotations` (JSON, not JSON-MIN)")
    lines = []
    for number, task in enumerate(tasks, 1):
        name, data = f"task {task.get('id', number)}", task.get("data")
        if not (isinstance(data, dict) and isinstance(data.get("row_id"), str)):
            raise ValueError(f"{name} has no row_id in its data: export tasks made by `ragassay export --format label-studio`")
        for label in _read_task(task):
            row_name = {"row_id": data["row_id"], "partition": data.get("partition") or None}
            try:
                lines.append(ReviewLine.from_json(json.dumps({**row_name, **label})))
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from error
    return lines


def _read_task(task: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for annotation in task["annotations"]:
        if annotation.get("was_cancelled"):
            continue
        annotator = annotation.get("completed_by")
        annotator = (annotator.get("email") or annotator.get("id")) if isinstance(annotator, dict) else annotator
        shared = {
            "reviewer": None if annotator is None else str(annotator),
            "at": annotation.get("updated_at") or annotation.get("created_at"),
        }
        for region in annotation.get("result") or []:
            value = region.get("value") or {}
            for label in value.get("labels") or []:
                yield {**shared, "start": value.get("start"), "end": value.get("end"), "label": label}


def _read_parquet(uri: str, source: LabelSource) -> pl.DataFrame:
    """Read a Parquet file: a row per response, some with a list of sentence labels; or, with start and end, a row per
    sentence.
    """
    table = read_user_table(uri, ["row_id", source.column], f" ({LINES_SUFFIX} is JSON Lines)")
    names = table.column_names
    has_spans = {"start", "end"} <= set(names)
    if has_spans and table["start"].null_count + table["end"].null_count:
        raise InputError(errors.INCOMPLETE_SPAN, file=uri)
    labels = [label and label.value for label in parse_labels(table[source.column], source)]
    columns: dict[str, Any] = {"row_id": table["row_id"].cast(pa.string()).to_pylist(), "label": labels}
    columns["annotator"] = table["labeled_by"].to_pylist() if "labeled_by" in names else None
    columns |= {name: table[name].to_pylist() for name in ("weak", "inclusion_probability") if name in names}
    columns |= {name: table[name].cast(pa.string()).to_pylist() for name in ("stratum", "partition") if name in names}
    columns |= {name: table[name].to_pylist() for name in ("start", "end") if has_spans}
    for row_id, probability in zip(columns["row_id"], columns.get("inclusion_probability", ()), strict=False):
        if probability is not None and not (isinstance(probability, int | float) and MIN_PROBABILITY <= probability <= 1):
            row = describe_item({"row_id": row_id, "partition": None, "start": None})
            fields = {
                "column": "inclusion_probability",
                "row": row,
                "value": quote_value(probability),
                "minimum": MIN_PROBABILITY,
            }
            raise InputError(errors.PROBABILITY_OUT_OF_RANGE, file=uri, **fields)
    if "partition" in names:
        columns["partition"] = [partition or "" for partition in columns["partition"]]
    row_count = len(table)
    frame = pl.DataFrame({name: columns.get(name) or [None] * row_count for name in LABEL_SCHEMA}, schema=LABEL_SCHEMA)
    if has_spans:  # reviewers see only some sentences of a response: it is correct if all of these are
        correct = frame.filter(IS_CORRECT.fill_null(False).all().over(ROW_COLUMNS)).unique(
            ROW_COLUMNS, keep="first", maintain_order=True
        )
        return pl.concat([frame, correct.with_columns(start=None, end=None).cast(LABEL_SCHEMA)])
    if "sentence_labels" not in names:
        return frame
    return pl.concat([frame, _list_sentence_labels(frame, pl.Series(table["sentence_labels"])).select(LABEL_SCHEMA.names())])


def _read_log_labels(rows: Rows, source: LabelSource, sentence_column: str | None) -> pl.DataFrame:
    """Read the labels in a batch of logs: row number, `row_key` and label; offsets too for sentence labels."""
    labels = [label and label.value for label in parse_labels(rows.table[source.column], source)]
    columns = {"row_key": rows.table["row_key"].to_numpy(), "label": labels, "start": None, "end": None}
    frame = pl.DataFrame(columns, schema={name: LABEL_SCHEMA[name] for name in columns}).with_row_index("row")
    listed = (
        [_list_sentence_labels(frame, pl.Series(rows.table[sentence_column]))]
        if sentence_column and rows.table[sentence_column].null_count < len(rows)
        else []
    )
    return pl.concat([frame.drop_nulls("label"), *listed])


def _list_sentence_labels(frame: pl.DataFrame, lists: pl.Series) -> pl.DataFrame:
    """Return a row per sentence label (start, end, supported) or unsupported span (start, end) in a column of lists.

    The rest of a response with spans, and a correct response with an empty list, count as supported.
    """
    struct = lists.dtype.inner  # type: ignore[attr-defined]
    are_spans = "supported" not in [field.name for field in struct.fields]
    frame = frame.with_columns(span=lists, count=lists.list.len()).drop_nulls("span")
    supported = pl.lit(False) if are_spans else pl.col("span").struct.field("supported")
    labeled = frame.explode("span").with_columns(
        start=pl.col("span").struct.field("start").cast(pl.Int64),
        end=pl.col("span").struct.field("end").cast(pl.Int64),
        label=pl.when(supported).then(pl.lit(Label.CORRECT.value)).when(~supported).then(pl.lit(Label.WRONG.value)),
    )
    rest = frame.filter(((pl.col("count") > 0) & are_spans) | ((pl.col("count") == 0) & IS_CORRECT))
    rest = rest.with_columns(
        start=pl.lit(0, pl.Int64), end=pl.lit(END_OF_RESPONSE, pl.Int64), label=pl.lit(Label.CORRECT.value)
    )
    return pl.concat([labeled.drop_nulls(["start", "end"]).drop("span", "count"), rest.drop("span", "count")])


def _match_sentences(labels: pl.DataFrame, spans: pl.DataFrame, *, derive: bool) -> pl.DataFrame:
    """Match labeled spans with the sentences that they touch, and append the labels of responses.

    Args:
        labels: Labels of rows of a batch.
        spans: Row number, and `span`: the row's sentences.
        derive: Whether a response without a label gets one from its sentences.
    """
    count = pl.col("span").list.len()
    sentences = spans.drop_nulls("span").with_columns(count=count, sentence=pl.int_ranges(count)).explode("span", "sentence")
    sentences = sentences.with_columns(from_=pl.col("span").struct.field("start"), to_=pl.col("span").struct.field("end")).drop(
        "span"
    )
    touches = (pl.col("start") < pl.col("to_")) & (pl.col("from_") < pl.col("end"))
    matched = labels.filter(~IS_RESPONSE).join(sentences, on="row", how="left", maintain_order="left_right")
    matched = matched.with_columns(sentence=pl.when(touches).then("sentence")).drop("from_", "to_").unique(maintain_order=True)
    responses = labels.filter(IS_RESPONSE)
    parts = [responses, matched.drop("count")]
    if derive:
        without_label = matched.join(responses.drop_nulls("label"), on="row_key", how="anti")
        touched = pl.col("sentence").filter(IS_CORRECT).drop_nulls().n_unique()
        is_correct = (touched == pl.col("count").first()) & (touched > 0)
        derived = without_label.group_by("row_key", maintain_order=True).agg(
            pl.exclude("label", "sentence", "start", "end", "count", "line_count").first(),
            label=pl.when((~IS_CORRECT).any())
            .then(pl.lit(Label.WRONG.value))
            .when(is_correct)
            .then(pl.lit(Label.CORRECT.value)),
        )
        parts.append(derived.drop_nulls("label"))
    return pl.concat(parts, how="diagonal_relaxed")


def _find_sentence_column(scored: ScoredDataset, source: LabelSource) -> str | None:
    """Find the column of the logs that labels sentences.

    Raises:
        InputError: The column that the source names does not.
    """
    if source.sentence_column and not _has_spans(scored, source.sentence_column):
        raise InputError(errors.NO_SENTENCE_LABELS, column=source.sentence_column)
    usable = (name for name in SENTENCE_COLUMNS if name in scored.columns and _has_spans(scored, name))
    return source.sentence_column or next(usable, None)


def _has_spans(scored: ScoredDataset, column: str) -> bool:
    """Return whether a column is a list of structs with integer start and end in every file that has it."""
    for schema in set(map(scored.schema_of, scored.files)):
        if column in schema.names:
            column_type = schema.field(column).type
            if not (pa.types.is_list(column_type) or pa.types.is_large_list(column_type)) or not pa.types.is_struct(
                column_type.value_type
            ):
                return False
            fields = {field.name: field.type for field in column_type.value_type}
            if not all(key in fields and pa.types.is_integer(fields[key]) for key in ("start", "end")):
                return False
    return True
