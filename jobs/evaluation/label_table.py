"""Labels as one long table, in whatever form they come: a column of the logs, Parquet, JSON Lines, Label Studio."""

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
    SENTENCE_COLUMNS,
    SUFFIX,
    WORDS,
    Label,
    LabelSource,
    is_lines,
    to_labels,
)
from ragassay.jobs.output.scored_dataset import Rows, ScoredDataset
from ragassay.jobs.storage.folder import open_file, read_named
from ragassay.pipeline.errors import InputError
from ragassay.schemas.review import MIN_PROBABILITY, ReviewLabel, ReviewLine

KEY = ["partition", "row_id"]
ITEM = [*KEY, "start", "end"]
DRAWN = ["stratum", "inclusion_probability"]
LABELS = pl.Schema(
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
        "times": pl.UInt32(),
    }
)
"""A row a thing that somebody says: of a response, where `start` and `end` are null; else of its characters [start, end), once
for each `sentence` of the output (from 0) that they touch, and once without. `label` is a `Label`; null where somebody has
looked and gives none. `row_key` is null where the output has no such row, `partition` where the file names none. `weak` is true
of a model's opinions. `times` counts the lines that say something of the same."""

END = 2**40
"""Behind the end of every response."""

SPANS = ("sentences.list.element.start", "sentences.list.element.end")
IS_RESPONSE = pl.col("start").is_null()
IS_CORRECT = pl.col("label") == Label.CORRECT.value


def load_labels(scored: ScoredDataset, source: LabelSource, *, sentences: bool = True) -> pl.DataFrame:
    """Load the labels of an output's rows; see LABELS.

    A response of which a file labels sentences only is wrong if one of them is, and correct if all that it has are.

    Args:
        scored: The output.
        source: Where the labels are.
        sentences: Whether sentence labels in the logs are wanted.

    Raises:
        InputError: There is no such column, the file can't be used, or a label could be of several rows.
    """
    said = read_labels(source) if source.file else None
    named = None
    if said is None:
        if source.column in {"verdict", "status", "run_id", "error"}:
            raise InputError(errors.OWN_COLUMN, column=source.column)
        scored.require_columns([source.column, *([source.sentences] if source.sentences else [])])
        named = _sentence_column(scored, source) if sentences else None
    keys = KEY if said is not None and said["partition"].count() else ["row_id"]
    found = [LABELS.to_frame()]
    columns = ["row_key", "row_id", *([source.column] if said is None else []), *([named] if named else [])]
    for rows in scored.batches(columns):
        if said is None:
            here = _of_logs(rows, source, named)
        else:
            place = pl.lit(rows.file.partition_name).alias("partition")
            numbered = pl.DataFrame(rows.table).with_columns(place).with_row_index("row")
            here = numbered.select("row", "row_key", *keys).join(said, on=keys, maintain_order="left_right")
        spoken = here.filter(~IS_RESPONSE)["row"].unique().sort().to_numpy()
        if len(spoken):
            places = pl.DataFrame({"row": spoken, "place": pl.Series(rows.read(SPANS, spoken)["sentences"])})
            here = _on_sentences(here.with_columns(pl.col("row").cast(places.schema["row"])), places, derive=said is not None)
        found.append(here.drop("row"))
    table = pl.concat(found, how="diagonal_relaxed")
    if said is None:
        return table
    several = table.drop_nulls("label").unique([*KEY, "row_key"], maintain_order=True).filter(pl.len().over(KEY) > 1)
    if len(several):
        count = len(several.join(several[:1], on=KEY, how="semi", nulls_equal=True))
        row = name_item({**several.row(0, named=True), "start": None})
        raise InputError(errors.ROW_UNCLEAR, file=source.file, row=row, rows=count, column="partition")
    return pl.concat([table, said.join(table, on=keys, how="anti")], how="diagonal_relaxed")


def label_of_rows(labels: pl.DataFrame) -> dict[int, Label]:
    """`row_key` -> label of the response, where it has one."""
    said = labels.filter(IS_RESPONSE).drop_nulls(["row_key", "label"])
    return dict(zip(said["row_key"], map(Label, said["label"]), strict=True))


def truth_of_sentences(labels: pl.DataFrame) -> pl.DataFrame:
    """`row_key`, `sentence`, and whether it is supported: `good`; of those that have a label."""
    said = labels.drop_nulls(["row_key", "sentence", "label"])
    return said.group_by("row_key", "sentence", maintain_order=True).agg(good=IS_CORRECT.all())


def weak_annotators(labels: pl.DataFrame) -> str | None:
    """Who said it, where these are the opinions of a model, such as those of `explain --feedback`; else None."""
    weak = labels.filter(pl.col("weak"))
    return ", ".join(weak["annotator"].drop_nulls().unique().sort()) or "a model" if len(weak) else None


def read_labels(source: LabelSource) -> pl.DataFrame:
    """Read labels from the source's file: LABELS without `row_key` and `sentence`, each label once for each way it was drawn.

    Raises:
        InputError: The file can't be read, lacks a column, or says two things of one response or sentence.
    """
    uri = source.file or ""
    lines = (read_lines(uri) if is_lines(uri) else _read_parquet(uri, source)).with_columns(times=pl.len().over(ITEM))
    words = last_words(lines) if is_lines(uri) else lines
    sure = words.filter(pl.col("label") != ReviewLabel.UNSURE.value)
    differ = sure.unique([*ITEM, "label"], keep="first", maintain_order=True).filter(pl.len().over(ITEM) > 1)
    if len(differ):
        one, other = differ.join(differ[:1], on=ITEM, how="semi", nulls_equal=True, maintain_order="left").head(2).to_dicts()
        fields = {"file": uri, "item": name_item(one), "label": one["label"], "other_label": other["label"]}
        if not is_lines(uri):
            raise InputError(errors.CONTRADICTION, **fields)
        items = differ.n_unique(ITEM)
        who, else_who = (line["annotator"] or "somebody" for line in (one, other))
        more = f" (and differ on {items - 1} more)" if items > 1 else ""
        raise InputError(errors.REVIEWERS_DISAGREE, reviewer=who, other=else_who, more=more, **fields)
    held = pl.concat([sure, words]).unique([*ITEM, *DRAWN], keep="first", maintain_order=True)
    partition = pl.col("partition").fill_null("") if held["partition"].count() else pl.col("partition")
    return held.select(
        pl.exclude("row_key", "sentence", "label", "partition"),
        partition,
        pl.col("label").replace_strict({word: label.value for word, label in WORDS.items()}, default=None),
    )


def read_lines(uri: str) -> pl.DataFrame:
    """Every line of a reviewers' file, in its order, with its words of `Said` as labels.

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
    text = text.removeprefix("\ufeff")
    lines = []
    if name.lower().endswith(EXPORT_SUFFIX):
        try:
            lines = _lines_of_export(text)
        except ValueError as error:
            raise InputError(errors.UNREADABLE, file=uri, reason=error) from error
    else:
        for number, line in enumerate(text.split("\n"), 1):  # a text may hold other line breaks
            if line.strip():
                try:
                    lines.append(ReviewLine.from_json(line))
                except ValueError as error:
                    raise InputError(errors.WRONG_LINE, file=uri, line=number, reason=error) from error
    said = (
        {**dict(line), "label": line.label.value, "annotator": line.reviewer, "at": line.at and line.at.astimezone(UTC)}
        for line in lines
    )
    return pl.DataFrame([{name: line.get(name) for name in LABELS} for line in said], schema=LABELS)


def last_words(lines: pl.DataFrame) -> pl.DataFrame:
    """What each reviewer says last of each thing: the latest by `at`, of the same time the last line."""
    return lines.sort("at", maintain_order=True).unique(["annotator", *ITEM], keep="last", maintain_order=True)


def name_item(item: Mapping[str, Any]) -> str:
    """What was spoken of, as a message names it; of a row of LABELS."""
    row = f"row {quote_value(item['row_id'], MAX_ID_CHARS)}" + (
        f" of partition {item['partition']}" if item["partition"] else ""
    )
    return row if item["start"] is None else f"the sentence {item['start']} to {item['end']} of {row}"


def _lines_of_export(text: str) -> list[ReviewLine]:
    """What people said in Label Studio of tasks that `export` made; annotations that were skipped are none.

    Args:
        text: A JSON export, not the minimal one: tasks with `data` and `annotations`.

    Raises:
        ValueError: It is none, or of other tasks; the message says what is wrong with which.
    """
    tasks = json.loads(text)
    if not (isinstance(tasks, list) and all(isinstance(task, dict) and "annotations" in task for task in tasks)):
        raise ValueError("it is no JSON export of Label Studio: a list of tasks with `annotations` (not JSON-MIN)")
    lines = []
    for number, task in enumerate(tasks, 1):
        name, data = f"task {task.get('id', number)}", task.get("data")
        if not (isinstance(data, dict) and isinstance(data.get("row_id"), str)):
            raise ValueError(f"{name} has no row_id in its data: it was not made by `ragassay export --format label-studio`")
        for said in _labels_of_task(task):
            row = {"row_id": data["row_id"], "partition": data.get("partition") or None}
            try:
                lines.append(ReviewLine.from_json(json.dumps({**row, **said})))
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from error
    return lines


def _labels_of_task(task: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for annotation in task["annotations"]:
        if annotation.get("was_cancelled"):
            continue
        who = annotation.get("completed_by")
        who = (who.get("email") or who.get("id")) if isinstance(who, dict) else who
        of_all = {
            "reviewer": None if who is None else str(who),
            "at": annotation.get("updated_at") or annotation.get("created_at"),
        }
        for region in annotation.get("result") or []:
            value = region.get("value") or {}
            for label in value.get("labels") or []:
                yield {**of_all, "start": value.get("start"), "end": value.get("end"), "label": label}


def _read_parquet(uri: str, source: LabelSource) -> pl.DataFrame:
    """A row a response, some with a list of sentence labels; or, with start and end, a row a sentence."""
    table = read_named(uri, ["row_id", source.column], f" ({SUFFIX} is JSON Lines)")
    names = table.column_names
    has_spans = {"start", "end"} <= set(names)
    if has_spans and table["start"].null_count + table["end"].null_count:
        raise InputError(errors.HALF_A_SPAN, file=uri)
    labels = [label and label.value for label in to_labels(table[source.column], source)]
    columns: dict[str, Any] = {"row_id": table["row_id"].cast(pa.string()).to_pylist(), "label": labels}
    columns["annotator"] = table["labelled_by"].to_pylist() if "labelled_by" in names else None
    columns |= {name: table[name].to_pylist() for name in ("weak", "inclusion_probability") if name in names}
    columns |= {name: table[name].cast(pa.string()).to_pylist() for name in ("stratum", "partition") if name in names}
    columns |= {name: table[name].to_pylist() for name in ("start", "end") if has_spans}
    for row_id, probability in zip(columns["row_id"], columns.get("inclusion_probability", ()), strict=False):
        if probability is not None and not (isinstance(probability, int | float) and MIN_PROBABILITY <= probability <= 1):
            row = name_item({"row_id": row_id, "partition": None, "start": None})
            of = {"column": "inclusion_probability", "row": row, "value": quote_value(probability), "least": MIN_PROBABILITY}
            raise InputError(errors.PROBABILITY_OUT_OF_RANGE, file=uri, **of)
    if "partition" in names:
        columns["partition"] = [place or "" for place in columns["partition"]]
    size = len(table)
    frame = pl.DataFrame({name: columns.get(name) or [None] * size for name in LABELS}, schema=LABELS)
    if has_spans:  # people are asked about some sentences of a response: it is correct if all of these are
        correct = frame.filter(IS_CORRECT.fill_null(False).all().over(KEY)).unique(KEY, keep="first", maintain_order=True)
        return pl.concat([frame, correct.with_columns(start=None, end=None).cast(LABELS)])
    if "sentence_labels" not in names:
        return frame
    return pl.concat([frame, _listed(frame, pl.Series(table["sentence_labels"])).select(LABELS.names())])


def _of_logs(rows: Rows, source: LabelSource, named: str | None) -> pl.DataFrame:
    """What the logs' own columns say of rows: number among them, `row_key` and label; places of sentences too."""
    labels = [label and label.value for label in to_labels(rows.table[source.column], source)]
    columns = {"row_key": rows.table["row_key"].to_numpy(), "label": labels, "start": None, "end": None}
    frame = pl.DataFrame(columns, schema={name: LABELS[name] for name in columns}).with_row_index("row")
    listed = [_listed(frame, pl.Series(rows.table[named]))] if named and rows.table[named].null_count < len(rows) else []
    return pl.concat([frame.drop_nulls("label"), *listed])


def _listed(frame: pl.DataFrame, lists: pl.Series) -> pl.DataFrame:
    """Rows with the sentence labels (start, end, supported) or unsupported spans (start, end) of a column of lists.

    Beside spans, and where a correct response has an empty list, all else is supported.
    """
    kind = lists.dtype.inner  # type: ignore[attr-defined]
    are_spans = "supported" not in [field.name for field in kind.fields]
    frame = frame.with_columns(place=lists, count=lists.list.len()).drop_nulls("place")
    supported = pl.lit(False) if are_spans else pl.col("place").struct.field("supported")
    each = frame.explode("place").with_columns(
        start=pl.col("place").struct.field("start").cast(pl.Int64),
        end=pl.col("place").struct.field("end").cast(pl.Int64),
        label=pl.when(supported).then(pl.lit(Label.CORRECT.value)).when(~supported).then(pl.lit(Label.WRONG.value)),
    )
    rest = frame.filter(((pl.col("count") > 0) & are_spans) | ((pl.col("count") == 0) & IS_CORRECT))
    rest = rest.with_columns(start=pl.lit(0, pl.Int64), end=pl.lit(END, pl.Int64), label=pl.lit(Label.CORRECT.value))
    return pl.concat([each.drop_nulls(["start", "end"]).drop("place", "count"), rest.drop("place", "count")])


def _on_sentences(here: pl.DataFrame, places: pl.DataFrame, *, derive: bool) -> pl.DataFrame:
    """Places, each with the sentences that it touches, beside the responses.

    Args:
        here: Labels of rows of a batch.
        places: Number of the row, and `place`: its sentences.
        derive: Give a response without a label one by those of its sentences.
    """
    count = pl.col("place").list.len()
    of_rows = places.drop_nulls("place").with_columns(count=count, sentence=pl.int_ranges(count)).explode("place", "sentence")
    of_rows = of_rows.with_columns(from_=pl.col("place").struct.field("start"), to_=pl.col("place").struct.field("end")).drop(
        "place"
    )
    touches = (pl.col("start") < pl.col("to_")) & (pl.col("from_") < pl.col("end"))
    marks = here.filter(~IS_RESPONSE).join(of_rows, on="row", how="left", maintain_order="left_right")
    marks = marks.with_columns(sentence=pl.when(touches).then("sentence")).drop("from_", "to_").unique(maintain_order=True)
    responses = here.filter(IS_RESPONSE)
    parts = [responses, marks.drop("count")]
    if derive:
        bare = marks.join(responses.drop_nulls("label"), on="row_key", how="anti")
        touched = pl.col("sentence").filter(IS_CORRECT).drop_nulls().n_unique()
        is_correct = (touched == pl.col("count").first()) & (touched > 0)
        made = bare.group_by("row_key", maintain_order=True).agg(
            pl.exclude("label", "sentence", "start", "end", "count", "times").first(),
            label=pl.when((~IS_CORRECT).any())
            .then(pl.lit(Label.WRONG.value))
            .when(is_correct)
            .then(pl.lit(Label.CORRECT.value)),
        )
        parts.append(made.drop_nulls("label"))
    return pl.concat(parts, how="diagonal_relaxed")


def _sentence_column(scored: ScoredDataset, source: LabelSource) -> str | None:
    """The column of the logs that labels sentences.

    Raises:
        InputError: The one that was named does not.
    """
    if source.sentences and not _are_places(scored, source.sentences):
        raise InputError(errors.NO_SENTENCE_LABELS, column=source.sentences)
    there = (name for name in SENTENCE_COLUMNS if name in scored.columns and _are_places(scored, name))
    return source.sentences or next(there, None)


def _are_places(scored: ScoredDataset, name: str) -> bool:
    """Whether a column is a list of structs with start and end, wherever it is."""
    for schema in set(map(scored.schema_of, scored.files)):
        if name in schema.names:
            kind = schema.field(name).type
            if not (pa.types.is_list(kind) or pa.types.is_large_list(kind)) or not pa.types.is_struct(kind.value_type):
                return False
            parts = {field.name: field.type for field in kind.value_type}
            if not all(key in parts and pa.types.is_integer(parts[key]) for key in ("start", "end")):
                return False
    return True
