"""What `init` found out about logs: all that a job file is written from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from ragassay.jobs.address import address_of
from ragassay.jobs.init import errors
from ragassay.jobs.init.columns import Taken, guess
from ragassay.jobs.init.names import Role
from ragassay.jobs.init.others import LabelColumn, ids_of, labels_of, slices_of, unread
from ragassay.jobs.init.sample import Column, columns_of
from ragassay.jobs.init.talk import Spoken, spoken
from ragassay.jobs.init.wording import said
from ragassay.jobs.input import Logs, check_row_ids, find_logs
from ragassay.jobs.sections import Columns
from ragassay.pipeline.errors import InputError

IDS_CHECKED = 2_000_000
"""Rows of a log whose ids are all read; of a larger one the run tells whether they are unique."""

ASKED = 0.5  # share of rows with a question, below which members that need none judge


@dataclass(frozen=True)
class Found:
    """What is known of logs.

    Attributes:
        uri: Where they are.
        rows: Rows, by the footers.
        files: Readable files.
        unreadable: Files that can't be read.
        mib: Size of the files.
        keys: Hive keys.
        partitions: Hive folders that hold files.
        sampled: Rows that were looked at.
        taken: Role -> its column; always with a context and a response, or none where there are conversations.
        messages: The column of conversations, where those are not columns of their own.
        asked: Whether enough rows have a question for members that ask with it.
        chars: Characters of a column, on average, by role.
        row_id: Column of the ids; None has them made.
        row_id_why: Why.
        labels: Columns with labels.
        slices: Columns to look at apart, by the names they get in an output.
        notes: What can't be read yet.
    """

    uri: str
    rows: int
    files: int
    unreadable: int
    mib: float
    keys: list[str]
    partitions: int
    sampled: int
    taken: Mapping[Role, Taken]
    messages: Spoken | None
    asked: bool
    chars: Mapping[Role, float]
    row_id: str | None
    row_id_why: str
    labels: list[LabelColumn]
    slices: list[str]
    notes: list[str]

    @property
    def named(self) -> bool:
        """Whether names say what is the context and the response, or the conversation; not those of attributes of spans."""
        taken = [self.messages] if self.messages else [self.taken[role] for role in (Role.CONTEXT, Role.RESPONSE)]
        return all(one.named and "." not in one.column for one in taken)

    @property
    def columns(self) -> Columns:
        """The columns, as a job has them."""
        return Columns.model_validate(
            {
                **({"messages": self.messages.column} if self.messages else {}),
                **{role.value: taken.column for role, taken in self.taken.items()},
                "row_id": self.row_id,
            }
        )


def look(uri: str) -> tuple[Logs, Found]:
    """Look at logs: footers, and some rows.

    Args:
        uri: Parquet file, folder, glob or object-store URI.

    Raises:
        InputError: They can't be read, or have no column that could be the context or the response.
    """
    logs = find_logs(uri)
    if not logs.files:
        raise InputError(errors.NO_READABLE_FILE, uri=uri, files=len(logs.unreadable), reason=logs.unreadable[0].error)
    columns = columns_of(logs)
    taken = guess(columns)
    notes = list(unread(columns))
    missing = [role for role in (Role.CONTEXT, Role.RESPONSE) if role not in taken]
    talk = spoken(columns) if missing else None
    if talk is not None:
        taken, notes = {}, []
    elif missing:
        raise _nothing_fits(uri, columns, missing, notes)
    rows = sum(file.rows or 0 for file in logs.files)
    by_name = {column.name: column for column in columns}
    texts = {role: _texts(by_name[one.column]) for role, one in taken.items()}
    mine = {one.column for one in taken.values()} | ({talk.column} if talk else set())
    row_id, why = _row_id(logs, columns, rows, mine)
    labels = labels_of(columns)
    partitions = {file.partition for file in logs.files if file.partition}
    keys = list(dict.fromkeys(key for place in partitions for key, _ in place))
    used = mine | {label.name for label in labels} | {row_id or ""}
    asked = texts.get(Role.QUESTION, [])
    found = Found(
        uri=address_of(uri),
        rows=rows,
        files=len(logs.files),
        unreadable=len(logs.unreadable),
        mib=logs.size / (1 << 20),
        keys=keys,
        partitions=len(partitions),
        sampled=max((len(column.values) for column in columns), default=0),
        taken=taken,
        messages=talk,
        asked=(
            talk.asked >= ASKED
            if talk
            else Role.QUESTION in taken and (not asked or sum(map(bool, asked)) >= ASKED * len(asked))
        ),
        chars=talk.chars if talk else {role: fmean(map(len, some)) if some else 0.0 for role, some in texts.items()},
        row_id=row_id,
        row_id_why=why,
        labels=labels,
        slices=slices_of(columns, used, keys),
        notes=notes,
    )
    return logs, found


def _texts(column: Column) -> list[str]:
    """A text a row that was looked at; empty where there is none."""
    return ["\n".join(filter(None, v)).strip() if isinstance(v, list) else (v or "").strip() for v in column.values]


def _row_id(logs: Logs, columns: Sequence[Column], rows: int, taken: set[str]) -> tuple[str | None, str]:
    """The column of the ids, and why."""
    candidates = [name for name in ids_of(columns) if name not in taken]
    if rows > IDS_CHECKED and candidates:
        return candidates[0], "by its name; no id stands twice in the rows looked at, the run looks at all"
    for name in candidates:
        try:
            check_row_ids(logs, logs.files, Columns(question="q", context="c", response="r", row_id=name))
        except InputError:
            continue
        return name, "by its name, and no id is missing or stands twice"
    return None, "no column's name and values are those of an id of each row: ids are made from file and row number"


def _nothing_fits(uri: str, columns: Sequence[Column], missing: Sequence[Role], notes: Sequence[str]) -> InputError:
    """The error for logs without a context or a response: all columns with their types."""
    lines = [f"  {said(column.name)}: {column.kind}{_length(column)}" for column in columns]
    lines += [f"  note: {note}" for note in notes]
    return InputError(errors.NO_COLUMN_FITS, uri=uri, roles=" or as ".join(missing), lines="\n".join(lines))


def _length(column: Column) -> str:
    lengths = [len(text) for text in _texts(column) if text] if column.passages else []
    return f", {fmean(lengths):,.0f} characters on average" if lengths else ""
