"""Count the rows in `raw/` and check them against the footers of the input: no row is lost or doubled."""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ragassay.jobs.input import LogFile
from ragassay.jobs.output.scored_dataset import open_raw
from ragassay.jobs.scoring import errors
from ragassay.jobs.scoring.row_set import RowSet, add_keys, slice_rows
from ragassay.jobs.storage.folder import Folder
from ragassay.pipeline.errors import BalanceError
from ragassay.schemas.columns import USAGE, Status


@dataclass
class RawCounts:
    """Counts of the rows of some files in `raw/`.

    Attributes:
        statuses: Number of a file -> its rows by status.
        sentences: Number of a file -> sentences of its rows with status ok.
        usage: Member -> prompts, tokens, engine seconds and idle seconds.
    """

    statuses: dict[int, Counter[str]] = field(default_factory=dict)
    sentences: Counter[int] = field(default_factory=Counter)
    usage: dict[str, dict[str, float]] = field(default_factory=dict)

    def sum_statuses(self, files: Collection[int] | None = None) -> Counter[str]:
        """Sum the rows by status.

        Args:
            files: Numbers of the files that count; None for all.
        """
        numbers = self.statuses if files is None else files
        return sum((self.statuses.get(number, Counter()) for number in numbers), Counter[str]())


def count_raw_rows(output: Folder, files: Mapping[int, LogFile], chosen: Mapping[int, RowSet] | None = None) -> RawCounts:
    """Count the rows of these files in `raw/` and check them against the footers of the files.

    Args:
        output: The output folder.
        files: Number in the manifest -> input file.
        chosen: Number -> keys of the chosen rows of the file, if it is sampled.

    Raises:
        BalanceError: A row is missing or doubled; the message names the files.
    """
    rows: Counter[int] = Counter()
    distinct_keys, unreadable_keys = RowSet(), RowSet()
    counts = RawCounts()
    partitions = {file.partition_path for file in files.values()}
    numbers = pa.array(list(files), pa.int64())
    for part in (
        open_raw(output)
        .select_partitions(partitions)
        .read_batches(["row_key", "status", "usage", "sentences.list.element.start"])
    ):
        batch = part.batch.filter(pc.is_in(pc.shift_right(part.batch["row_key"], 32), numbers))
        keys = batch["row_key"].to_numpy()
        add_keys(distinct_keys, keys)
        is_unreadable = pc.equal(batch["status"], Status.UNREADABLE.value).to_numpy(zero_copy_only=False)
        add_keys(unreadable_keys, keys[is_unreadable])
        file_numbers, row_counts = np.unique(keys >> 32, return_counts=True)
        rows.update(dict(zip(file_numbers.tolist(), row_counts.tolist(), strict=True)))
        _add_rows(counts, batch)
        _add_usage(counts.usage, batch["usage"].flatten())
    samples = {number: sample for number, sample in (chosen or {}).items() if number in files}
    _check_rows(rows, distinct_keys, {number: file for number, file in files.items() if number not in samples})
    for number, sample in samples.items():
        _check_sample(number, rows[number], distinct_keys, sample, unreadable_keys, files[number])
    return counts


def _add_rows(counts: RawCounts, rows: pa.RecordBatch) -> None:
    lengths = pc.if_else(pc.equal(rows["status"], Status.OK.value), pc.fill_null(pc.list_value_length(rows["sentences"]), 0), 0)
    table = pa.table({"file": pc.shift_right(rows["row_key"], 32), "status": rows["status"], "sentences": lengths})
    groups = table.group_by(["file", "status"]).aggregate([([], "count_all"), ("sentences", "sum")])
    for group in groups.to_pylist():
        counts.statuses.setdefault(group["file"], Counter())[group["status"]] += group["count_all"]
        counts.sentences[group["file"]] += group["sentences_sum"]


def _check_sample(
    number: int, rows_out: int, distinct_keys: RowSet, chosen: RowSet, unreadable_keys: RowSet, file: LogFile
) -> None:
    """Check that `raw/` contains every chosen row of a file once, and besides these only unreadable rows."""
    first, rows = number << 32, file.rows or 0
    expected, actual = slice_rows(chosen, first, first + rows), slice_rows(distinct_keys, first, first + rows)
    missing, more = expected.difference_cardinality(actual), len(actual - expected - unreadable_keys)
    if missing or more or len(actual) < rows_out:
        raise BalanceError(
            errors.FILE_UNBALANCED, path=file.path, chosen=len(expected), out=rows_out, missing=missing, more=more
        )


def _check_rows(rows: Mapping[int, int], distinct_keys: RowSet, files: Mapping[int, LogFile]) -> None:
    faults = []
    for number, file in files.items():
        rows_out = rows.get(number, 0)
        distinct = distinct_keys.range_cardinality(number << 32, (number << 32) + (file.rows or 0))
        if not file.rows == rows_out == distinct:
            faults.append(f"{file.path}: {file.rows} rows in, {rows_out} out, {distinct} of them different")
    if faults:
        raise BalanceError(errors.INPUT_UNBALANCED, lines="\n  ".join(faults))


def _add_usage(total: dict[str, dict[str, float]], structs: pa.StructArray) -> None:
    if not len(structs):
        return
    sums = (
        pa.Table.from_struct_array(structs)
        .group_by("name")
        .aggregate([(field.name, "sum") for field in USAGE if field.name != "name"])
    )
    for row in sums.to_pylist():
        entry = total.setdefault(row.pop("name"), {})
        for key, value in row.items():
            name = key.removesuffix("_sum")
            entry[name] = entry.get(name, 0) + value
