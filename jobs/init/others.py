"""The other columns that one would touch first: ids, labels, slices; and those that could be meant, and weren't taken."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from ragassay.jobs.decide.labels import LabelSource, to_labels
from ragassay.jobs.init.columns import measure
from ragassay.jobs.init.names import LABELS, TALK, Role, fit_of_id, fit_of_name, parts_of
from ragassay.jobs.init.sample import Column
from ragassay.jobs.init.wording import said
from ragassay.pipeline.errors import InputError
from ragassay.schemas.columns import SUPPORTED, passthrough_name

SLICES = 5
MOST_VALUES = 50
LONGEST_VALUE = 60  # characters


@dataclass(frozen=True)
class LabelColumn:
    """A column that people may have labelled.

    Attributes:
        name: Its name in an output.
        true_means: Whether `--true-means` has to say what true is.
        values: Different values in the rows looked at.
    """

    name: str
    true_means: bool
    values: list[str]


def ids_of(columns: Sequence[Column]) -> list[str]:
    """Columns that may be ids of rows, the likeliest first: by their names, and since no value stands twice in the sample."""
    mine = [c for c in columns if c.ids and c.everywhere and fit_of_id(c.name) and None not in c.values]
    mine = [c for c in mine if len(set(c.values)) == len(c.values)]
    return [c.name for c in sorted(mine, key=lambda c: -fit_of_id(c.name))]


def labels_of(columns: Sequence[Column]) -> list[LabelColumn]:
    """Columns with labels of responses that `evaluate` takes."""
    found = []
    for column in columns:
        values = [value for value in column.values if value is not None]
        if not values or not LABELS & set(parts_of(column.name)):
            continue
        for meaning in (None, SUPPORTED):
            try:
                to_labels(pa.array(values), LabelSource(column.name, meaning))
            except (InputError, pa.ArrowException):
                continue
            name = passthrough_name(column.name)
            found.append(LabelColumn(name, meaning is not None, sorted({str(value).lower() for value in values})))
            break
    return found


def slices_of(columns: Sequence[Column], taken: Collection[str], keys: Sequence[str]) -> list[str]:
    """What `--slice` could look at: hive keys, and columns with a few short values.

    Args:
        columns: All columns.
        taken: Those that are something else.
        keys: Hive keys.
    """
    found = [key for key in keys if key not in taken]
    for column in columns:
        values = [value for value in column.values if isinstance(value, str | int)]
        few = 2 <= len(set(values)) <= min(MOST_VALUES, len(values) // 3)
        short = all(len(str(value)) <= LONGEST_VALUE for value in values)
        if column.name not in taken and few and short and not fit_of_id(column.name):
            found.append(passthrough_name(column.name))
    return found[:SLICES]


def unread(columns: Sequence[Column]) -> Iterator[str]:
    """Columns that look like what is wanted, and can't be read as it, or could be read in place of others: in sentences."""
    for column in columns:
        roles = [role for role in Role if fit_of_name(column.name, role)]
        here = f"{said(column.name)} ({column.kind})"
        talks = not column.passages and (column.talk or TALK & set(parts_of(column.name)[-1:]))
        if talks or (column.passages and measure(column).talk):
            yield f"{here} holds conversations: `columns: {{messages: …}}` reads them, in place of the columns that were taken"
        elif not column.everywhere and roles:
            yield f"{here} is not in all files"
        elif roles and not (column.passages if Role.CONTEXT in roles else column.text):
            read = "a string or a list of strings or structs with a text" if Role.CONTEXT in roles else "a string"
            yield f"{here} could be the {roles[0]} by its name, and only {read} is read"
