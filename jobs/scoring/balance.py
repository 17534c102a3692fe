"""Rows in are rows out: what stands in `raw/`, counted against the footers of the input."""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ragassay.jobs.input import LogFile
from ragassay.jobs.output.scored_dataset import open_raw
from ragassay.jobs.scoring import errors
from ragassay.jobs.scoring.row_set import RowSet, add_keys, within
from ragassay.jobs.storage.folder import Folder
from ragassay.pipeline.errors import BalanceError
from ragassay.schemas.columns import USAGE, Status


@dataclass
class Counted:
    """What stands in `raw/` of some files.

    Attributes:
        statuses: Number of a file -> its rows by status.
        sentences: Number of a file -> sentences of its rows with status ok.
        usage: Prompts, tokens, engine and idle seconds a member.
    """

    statuses: dict[int, Counter[str]] = field(default_factory=dict)
    sentences: Counter[int] = field(default_factory=Counter)
    usage: dict[str, dict[str, float]] = field(default_factory=dict)

    def all_statuses(self, files: Collection[int] | None = None) -> Counter[str]:
        """Rows by status, of these files; None for all."""
        chosen = self.statuses if files is None else files
        return sum((self.statuses.get(number, Counter()) for number in chosen), Counter[str]())


def count_scored(output: Folder, files: Mapping[int, LogFile], chosen: Mapping[int, RowSet] | None = None) -> Counted:
    """Count the rows of these files in `raw/` against their footers, and add up statuses, usage and sentences.

    Args:
        output: The output folder.
        files: Number in the manifest -> input file.
        chosen: Number -> rows of the file that were to be scored, where these are a sample.

    Raises:
        BalanceError: A row is missing or doubled; the files are named.
    """
    rows: Counter[int] = Counter()
    once, unreadable = RowSet(), RowSet()
    counted = Counted()
    wanted = {file.partition_path for file in files.values()}
    numbers = pa.array(list(files), pa.int64())
    for part in open_raw(output).only(wanted).batches(["row_key", "status", "usage", "sentences.list.element.start"]):
        mine = part.batch.filter(pc.is_in(pc.shift_right(part.batch["row_key"], 32), numbers))
        keys = mine["row_key"].to_numpy()
        add_keys(once, keys)
        add_keys(unreadable, keys[pc.equal(mine["status"], Status.UNREADABLE.value).to_numpy(zero_copy_only=False)])
        rows.update(dict(zip(*(found.tolist() for found in np.unique(keys >> 32, return_counts=True)), strict=True)))
        _add_rows(counted, mine)
        _add_usage(counted.usage, mine["usage"].flatten())
    samples = {number: sample for number, sample in (chosen or {}).items() if number in files}
    _check_rows(rows, once, {number: file for number, file in files.items() if number not in samples})
    for number, sample in samples.items():
        _check_sample(number, rows[number], once, sample, unreadable, files[number])
    return counted


def _add_rows(counted: Counted, rows: pa.RecordBatch) -> None:
    lengths = pc.if_else(pc.equal(rows["status"], Status.OK.value), pc.fill_null(pc.list_value_length(rows["sentences"]), 0), 0)
    table = pa.table({"file": pc.shift_right(rows["row_key"], 32), "status": rows["status"], "sentences": lengths})
    groups = table.group_by(["file", "status"]).aggregate([([], "count_all"), ("sentences", "sum")])
    for group in groups.to_pylist():
        counted.statuses.setdefault(group["file"], Counter())[group["status"]] += group["count_all"]
        counted.sentences[group["file"]] += group["sentences_sum"]


def _check_sample(number: int, out: int, once: RowSet, chosen: RowSet, unreadable: RowSet, file: LogFile) -> None:
    """A sampled file's rows: all that were chosen, each once, and beside them only what could not be read."""
    first, rows = number << 32, file.rows or 0
    wanted, found = within(chosen, first, first + rows), within(once, first, first + rows)
    missing, more = wanted.difference_cardinality(found), len(found - wanted - unreadable)
    if missing or more or len(found) < out:
        raise BalanceError(errors.FILE_UNBALANCED, path=file.path, chosen=len(wanted), out=out, missing=missing, more=more)


def _check_rows(rows: Mapping[int, int], once: RowSet, files: Mapping[int, LogFile]) -> None:
    faults = []
    for number, file in files.items():
        out, different = rows.get(number, 0), once.range_cardinality(number << 32, (number << 32) + (file.rows or 0))
        if not file.rows == out == different:
            faults.append(f"{file.path}: {file.rows} rows in, {out} out, {different} of them different")
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
