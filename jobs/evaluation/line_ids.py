"""Find the rows of an output that the lines of a label file are about: by `row_id`, or by a column of the logs."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from ragassay.jobs.display.quoted import MAX_ID_CHARS, quote_value
from ragassay.jobs.evaluation import errors
from ragassay.jobs.input.types import plain_type
from ragassay.jobs.output.manifest import read_manifest
from ragassay.jobs.output.scored_dataset import ScoredDataset
from ragassay.jobs.storage.folder import open_folder
from ragassay.pipeline.errors import InputError, RagassayError
from ragassay.schemas.columns import passthrough_schema

ROW_ID = "row_id"


@dataclass(frozen=True)
class LineIds:
    """Ids of the lines of a label file.

    Attributes:
        column: Column of the file that they come from.
        row_ids: `row_id` of each line; None without one. A value that no row has stays as it is.
        partitions: Partition of each line's row, if a column of the logs found it; otherwise those of the file.
    """

    column: str
    row_ids: list[str | None]
    partitions: list[str | None]


@dataclass
class _Candidate:
    """A column that may name the rows: its texts in the file, its name in the output, and the rows that were found.

    Attributes:
        rows: Partition (empty if the file names none) and text -> partition and `row_id` of the row.
        repeated: A text that several rows have.
    """

    name: str
    texts: list[str | None]
    output_name: str
    rows: dict[tuple[str, str], tuple[str, str]] = field(default_factory=dict)
    repeated: str | None = None

    @cached_property
    def values(self) -> pa.Array:
        """The texts in the file."""
        return pa.array({text for text in self.texts if text is not None}, pa.string())


def find_line_ids(
    uri: str, table: pa.Table, names: Mapping[str, str], scored: ScoredDataset | None, excluded: Collection[str]
) -> LineIds:
    """Find the ids of the lines of a label file.

    The job's name of the column of ids and `row_id` come first. Otherwise it is the column that the file and the output share,
    `id`, or the only column of the file whose name ends in id, in which the labeled rows differ.

    Args:
        uri: The file.
        table: Its lines.
        names: Name in lower case -> column of the file.
        scored: The output; None if it is not known.
        excluded: Lowercase names of columns that have another meaning.

    Raises:
        InputError: No column has ids, or two columns name different rows.
    """
    id_name = None if scored is None else _find_id_name(scored)
    partitions = read_texts(table, names.get("partition"))
    wanted = [name for name in (id_name, ROW_ID) if name is not None]
    column = next((names[name.lower()] for name in wanted if name.lower() in names), None)
    if column is not None:
        return LineIds(column, read_texts(table, column), partitions)
    usual = _find_usual_column(names)
    by_partition = "partition" in names
    candidates = [] if scored is None else _list_candidates(table, names, scored, usual, excluded)
    if scored is not None and candidates:
        _find_rows(candidates, scored, by_partition=by_partition)
        keys = [name or "" if by_partition else "" for name in partitions]
        if best := _choose(uri, candidates, keys):
            return best
    repeated = next((candidate for candidate in candidates if candidate.repeated), None)
    usual = candidates[0].name if usual is None and len(candidates) == 1 else usual
    if repeated is not None and usual in (None, repeated.name):
        value = quote_value(repeated.repeated, MAX_ID_CHARS)
        raise InputError(errors.REPEATED_ID, file=uri, column=repeated.name, value=value, known=", ".join(names.values()))
    if usual is None:
        raise InputError(errors.NO_ID_COLUMN, file=uri, wanted=wanted[0], known=", ".join(names.values()))
    return LineIds(usual, read_texts(table, usual), partitions)


def read_texts(table: pa.Table, name: str | None) -> list[str | None]:
    """Read a column as text; a whole number that a program stored as a float has no fraction. Empty texts become None."""
    values = [None] * len(table) if name is None else table[name].to_pylist()
    plain = (int(value) if isinstance(value, float) and value.is_integer() else value for value in values)
    return [None if value is None else str(value).strip() or None for value in plain]


def _find_id_name(scored: ScoredDataset) -> str | None:
    """Return the name of the column of ids in the logs of an output; None if the ids were made."""
    try:
        name: str | None = read_manifest(open_folder(scored.uri)).fingerprint.get("columns", {}).get(ROW_ID)
    except RagassayError:  # a folder with verdicts alone
        return None
    return name


def _find_usual_column(names: Mapping[str, str]) -> str | None:
    """Find the column `id`, or the only one whose name ends in id."""
    ids = [name for lower, name in names.items() if lower.endswith(("_id", " id", "-id"))]
    return names.get("id", ids[0] if len(ids) == 1 else None)


def _list_candidates(
    table: pa.Table, names: Mapping[str, str], scored: ScoredDataset, usual: str | None, excluded: Collection[str]
) -> list[_Candidate]:
    known = {
        field.name.lower(): field.name
        for file in scored.files
        for field in passthrough_schema(scored.schema_of(file))
        if _has_ids(plain_type(field.type))
    }
    pairs = [(name, known[lower]) for lower, name in names.items() if lower in known and lower not in excluded]
    pairs += [(usual, ROW_ID)] if usual else []
    return [_Candidate(name, read_texts(table, name), output_name) for name, output_name in pairs]


def _has_ids(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind)) or kind in (pa.string(), pa.large_string())


def _find_rows(candidates: Sequence[_Candidate], scored: ScoredDataset, *, by_partition: bool) -> None:
    """Find the rows that have the candidates' texts. A candidate with a text that several rows have is given up."""
    columns = dict.fromkeys([ROW_ID, *(candidate.output_name for candidate in candidates)])
    for rows in scored.read_batches(list(columns), reports_progress=False):
        partition = rows.file.partition_name
        for candidate in candidates:
            if candidate.repeated is not None:
                continue
            texts = pc.cast(rows.table[candidate.output_name], pa.string())
            chosen = pc.indices_nonzero(pc.is_in(texts, candidate.values))
            row_ids = rows.table[ROW_ID].take(chosen).to_pylist()
            for text, row_id in zip(texts.take(chosen).to_pylist(), row_ids, strict=True):
                key = (partition if by_partition else "", text)
                if key in candidate.rows:
                    candidate.repeated = text
                    break
                candidate.rows[key] = partition, row_id


def _choose(uri: str, candidates: Sequence[_Candidate], partitions: Sequence[str]) -> LineIds | None:
    """Choose the candidate that finds the most rows; None if none finds one.

    Args:
        uri: The file.
        candidates: The candidates, with the rows that they find.
        partitions: Partition that each line names; empty without one.

    Raises:
        InputError: Another candidate finds other rows.
    """
    found = [
        (
            candidate,
            [candidate.rows.get((partition, text or "")) for partition, text in zip(partitions, candidate.texts, strict=True)],
        )
        for candidate in candidates
        if candidate.rows and candidate.repeated is None
    ]
    if not found:
        return None
    best, rows = max(found, key=lambda item: sum(row is not None for row in item[1]))
    for other, other_rows in found:
        if any(a != b for a, b in zip(rows, other_rows, strict=True) if a and b):
            raise InputError(errors.TWO_ID_COLUMNS, file=uri, first=best.name, second=other.name)
    row_ids = [text if row is None else row[1] for text, row in zip(best.texts, rows, strict=True)]
    return LineIds(best.name, row_ids, [(row and row[0]) or None for row in rows])
