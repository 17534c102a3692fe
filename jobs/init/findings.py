"""What `init` finds out about an input, and about logs: all that a job file is written from."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from ragassay.jobs.config.input import Columns
from ragassay.jobs.evaluation.labels import LabelSource, parse_labels
from ragassay.jobs.init import errors
from ragassay.jobs.init.choices import Choice, choose_columns, choose_talk
from ragassay.jobs.init.columns import Column, columns_of, mean
from ragassay.jobs.init.names import LABELS, Role, names_talk, rate_id, rate_name, show, show_all, words_of_name
from ragassay.jobs.input import Logs, check_row_ids, find_logs
from ragassay.pipeline.errors import InputError
from ragassay.schemas.columns import SUPPORTED, passthrough_name

ASKED = 0.5  # share of rows with a question, below which members that need none judge
CHARS_A_TOKEN = 4  # roughly, of English
IDS_CHECKED = 2_000_000
"""Rows of a log whose ids are all read; of a larger one the run tells whether they are unique."""
SLICES, MOST_VALUES, LONGEST_VALUE = 5, 50, 60  # columns; their values; characters of a value


@dataclass(frozen=True)
class Findings:
    """What is known of an input.

    Attributes:
        files: Its files.
        size: How large it is, in words.
        sample: What was looked at, in words.
        is_asked: Whether enough rows have a question for members that ask with it.
        is_certain: Whether nothing but logs, or traces, is like this: by the names of columns, or by a retrieval.
        doubts: What could be wrong, in words.
        key: The first Hive key of an output.
        slices: Columns to look at apart, by their names in an output.
        preset: The tool that wrote these traces; None for logs.
        choices: Columns of logs: those of question, context and response, or of messages; and of ids.
        labels: Columns with labels, by their names in an output -> whether `evaluation.true_means` must be set.
    """

    files: Logs
    size: str
    sample: str
    is_asked: bool
    is_certain: bool
    doubts: Sequence[str]
    key: str | None
    slices: Sequence[str]
    preset: str | None = None
    choices: Sequence[Choice] = ()
    labels: Mapping[str, bool] = field(default_factory=dict)


def size_of(files: Logs) -> str:
    """How large files are, in words."""
    return f"{len(files.files):,} file{'s' * (len(files.files) != 1)}, {files.size / (1 << 20):,.1f} MiB"


def look_at_logs(uri: str) -> Findings:
    """Look at logs: footers, and some rows.

    Args:
        uri: File, folder, glob or object-store URI.

    Raises:
        InputError: They can't be read, or have no column that could be the context or the response.
    """
    logs = find_logs(uri)
    if not logs.files:
        raise InputError(errors.NO_READABLE_FILE, uri=uri, files=len(logs.unreadable), reason=logs.unreadable[0].error)
    columns = columns_of(logs)
    by_role, doubts = choose_columns(columns), list(_find_doubts(columns))
    missing = [role for role in (Role.CONTEXT, Role.RESPONSE) if role not in by_role]
    talk = choose_talk(columns) if missing else None
    if missing and talk is None:
        raise _no_column(uri, columns, missing, doubts)
    found = [talk] if talk else list(by_role.values())
    rows = sum(file.rows or 0 for file in logs.files)
    row_id = _choose_row_id(logs, rows, columns, {choice.column for choice in found})
    no_question = Choice(Role.QUESTION, None, ["no column's name or texts are like one"])
    choices = [*([] if talk or Role.QUESTION in by_role else [no_question]), *found, row_id]
    texts = {role: read for choice in found for role, read in choice.texts.items()}
    asked = texts.get(Role.QUESTION)
    labels = _find_labels(columns)
    partitions = dict.fromkeys(file.partition for file in logs.files if file.partition)
    keys = list(dict.fromkeys(key for partition in partitions for key, _ in partition))
    taken = {*(choice.column for choice in choices), *labels}
    parted = f", {len(partitions):,} partition(s) by {show_all(keys)}" if keys else ""
    return Findings(
        files=logs,
        size=f"{rows:,} row{'s' * (rows != 1)} in {size_of(logs)}{parted}",
        sample=_describe_sample(rows, max((len(column.values) for column in columns), default=0), texts),
        is_asked=asked is not None and len(list(filter(None, asked))) >= ASKED * len(asked),
        is_certain=all(c.is_named and "." not in (c.column or "") for c in found if c.key != Role.QUESTION),
        doubts=[] if talk else doubts,
        key=next(iter(keys), None),
        slices=[*(key for key in keys if key not in taken), *_find_slices(columns, taken)][:SLICES],
        choices=choices,
        labels=labels,
    )


def _describe_sample(rows: int, sampled: int, texts: Mapping[Role, Sequence[str]]) -> str:
    if not sampled:
        return "There is no row to look at yet, so names and types decided."
    chars = {role: mean(list(map(len, read))) for role, read in texts.items()}
    lengths = ", ".join(f"{role} {length:,.0f}" for role, length in chars.items())
    tokens = sum(chars.values()) / CHARS_A_TOKEN
    return (
        f"Characters on average, of {sampled:,} rows looked at: {lengths}; roughly {tokens:,.0f} tokens a row, "
        f"{rows * tokens:,.0f} in all."
    )


def _no_column(uri: str, columns: Sequence[Column], missing: Sequence[Role], notes: Sequence[str]) -> InputError:
    lines = []
    for column in columns:
        length = f", {column.chars:,.0f} characters on average" if column.passages and column.filled else ""
        lines.append(f"  {show(column.name)}: {column.kind}{length}")
    lines += [f"  note: {note}" for note in notes]
    return InputError(errors.NO_COLUMN_FITS, uri=uri, roles=" or as ".join(missing), lines="\n".join(lines))


def _choose_row_id(logs: Logs, rows: int, columns: Sequence[Column], taken: Collection[str | None]) -> Choice:
    """The column of the ids: by its name, and since no value is missing or stands twice."""
    fits = [c for c in columns if c.name not in taken and c.ids and c.everywhere and rate_id(c.name)]
    fits = [c for c in fits if None not in c.values and len(set(c.values)) == len(c.values)]
    for column in sorted(fits, key=lambda c: -rate_id(c.name)):
        if rows > IDS_CHECKED:
            why = "by its name; no id stands twice in the rows looked at, the run looks at all"
            return Choice("row_id", column.name, [why])
        try:
            check_row_ids(logs, logs.files, Columns(row_id=column.name))
        except InputError:
            continue
        return Choice("row_id", column.name, ["by its name, and no id is missing or stands twice"])
    why = "no column's name and values are those of an id of each row: ids are made from file and row number"
    return Choice("row_id", None, [why])


def _find_labels(columns: Sequence[Column]) -> dict[str, bool]:
    """Columns with labels of responses that `evaluate` takes."""
    found: dict[str, bool] = {}
    for column in columns:
        values = [value for value in column.values if value is not None]
        if not values or not set(LABELS) & set(words_of_name(column.name)):
            continue
        for meaning in (SUPPORTED, None):
            try:
                parse_labels(pa.array(values), LabelSource(column.name, meaning))
            except (InputError, pa.ArrowException):
                continue
            found[passthrough_name(column.name)] = meaning is not None
    return found


def _find_slices(columns: Sequence[Column], taken: Collection[str | None]) -> Iterator[str]:
    """Columns with a few short values, which `--slice` could look at."""
    for column in columns:
        values = [value for value in column.values if isinstance(value, str | int)]
        few = 2 <= len(set(values)) <= min(MOST_VALUES, len(values) // 3)
        short = all(len(str(value)) <= LONGEST_VALUE for value in values)
        if column.name not in taken and few and short and not rate_id(column.name):
            yield passthrough_name(column.name)


def _find_doubts(columns: Sequence[Column]) -> Iterator[str]:
    """Columns that look like what is wanted, and can't be read as it, or could be read in place of others."""
    for column in columns:
        roles = [role for role in Role if rate_name(column.name, role)]
        here = f"{show(column.name)} ({column.kind})"
        if column.holds_talk if column.passages else column.talk or names_talk(column.name):
            setting = "`input: {columns: {messages: …}}`"
            yield f"{here} holds conversations: {setting} reads them, in place of the columns that were taken"
        elif not column.everywhere and roles:
            yield f"{here} is not in all files"
        elif roles and not (column.passages if Role.CONTEXT in roles else column.text):
            read = "a string or a list of strings or structs with a text" if Role.CONTEXT in roles else "a string"
            yield f"{here} could be the {roles[0]} by its name, and only {read} is read"
