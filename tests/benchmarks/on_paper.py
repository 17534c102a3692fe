"""A billion responses on paper: `python -m tests.benchmarks.on_paper` writes tests/benchmarks/results/scale.md.

Sizes and requests are measured here and now, on a few files; the rest is arithmetic with the code's own constants. Tokens a
response are those in tests/benchmarks/results/speed.md.
"""

import re
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs as pafs

from ragassay.jobs.config.input import Columns
from ragassay.jobs.config.job import load_job
from ragassay.jobs.input import LogFile, find_logs, read_logs
from ragassay.jobs.input.duplicates import MAX_HASHES_IN_MEMORY
from ragassay.jobs.input.formats import inspect_files
from ragassay.jobs.output.sealed import SEAL_THRESHOLD, seal
from ragassay.jobs.scoring.row_set import RowSet, make_row_set
from ragassay.jobs.storage.folder import Folder, open_folder
from ragassay.schemas.manifest import Manifest
from tests.benchmarks.agreement import HANDBOOK
from tests.benchmarks.state import entry

REPO = Path(__file__).parents[2]
PAGE = REPO / "tests" / "benchmarks" / "results" / "scale.md"
MARK = "<!-- written by `python -m tests.benchmarks.on_paper` -->"
RESPONSES = 1_000_000_000
NIGHTS = 30
LISTED = 1_000
"""Names that an object store tells a request."""

TOKENS = {"RAGTruth QA": r"36 responses over 6 contexts of RAGTruth QA, 272 prompts, [\d,]+ tokens, floor ([\d,]+)",
          "long summaries": r"1,000 long summaries,\nfloor ([\d,]+) tokens",
          "the bundled logs": r"90 rows, 269 prompts, floor ([\d,]+),"}  # fmt: skip
RESPONSES_OF = {"RAGTruth QA": 36, "long summaries": 1000, "the bundled logs": 90}


@dataclass(frozen=True)
class Measured:
    """What was measured.

    Attributes:
        entry: Bytes of an input file's entry in manifest.json.
        sealed: Bytes of one in a shard.
        whole: Bytes in memory of a file that is committed whole.
        row: Bytes of a response's question, context and text in memory.
        footer: Requests that a footer takes.
        open: Requests until a file's first row group is read, but for its columns.
        columns: Requests for a row group's columns.
        key: Bytes of a checkpoint file a row.
    """

    entry: float
    sealed: float
    whole: float
    row: float
    footer: float
    open: float
    columns: float
    key: float


class _Counting:
    """A file whose reads are counted: an object store takes a request for each."""

    def __init__(self, file: Any, counts: Counter[str]) -> None:
        self._file, self._counts = file, counts

    def read(self, size: int = -1) -> bytes:
        self._counts["reads"] += 1
        found: bytes = self._file.read(size)
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def counting(counts: Counter[str]) -> pafs.FileSystem:
    """This machine's files, with what is opened (a request for its size) and read counted."""
    from fsspec.implementations.local import LocalFileSystem

    class Local(LocalFileSystem):  # type: ignore[misc]
        def _open(self, path: str, mode: str = "rb", **options: Any) -> Any:
            counts["opens"] += 1
            return _Counting(super()._open(path, mode, **options), counts)

    return pafs.PyFileSystem(pafs.FSSpecHandler(Local(skip_instance_cache=True)))


def requests(call: Callable[[pafs.FileSystem], object]) -> int:
    """Requests that a piece of code would send."""
    counts = Counter[str]()
    call(counting(counts))
    return counts.total()


def _read(fs: pafs.FileSystem, file: LogFile, passthrough: pa.Schema) -> int:
    return sum(len(table) for table in read_logs(fs, file, 0, range(file.row_groups), Columns(), passthrough, False))


AROUND_A_CHUNK = 114
"""Bytes of memory that a chunk of a set takes beside its content: by how far a process rises that holds 20,000 of them."""


def _whole() -> float:
    files = 500
    held = RowSet()
    for number in range(files):
        held |= make_row_set((number << 32) + np.arange(10_000))
    assert len(held) == files * 10_000
    return len(held.serialize()) / files + AROUND_A_CHUNK


def _sealed(folder: Folder, entries: int) -> float:
    manifest = Manifest(files={number: entry(number) for number in range(entries)})
    assert not seal(folder, manifest, "r1").files
    total: int = sum(info.size for info in folder.list("_files", ".parquet"))
    return total / entries


def measure() -> Measured:
    """Measure sizes and requests."""
    open_entries = {number: entry(number) for number in range(500)}
    with tempfile.TemporaryDirectory() as where:
        logs = find_logs(str(HANDBOOK))
        rows = pa.concat_tables(
            table.select(["question", "context", "response"])
            for file in logs.files
            for table in read_logs(logs.fs, file, 0, range(file.row_groups), Columns(), logs.passthrough, False)
        ).combine_chunks()
        path = Path(where) / "one" / "dt=1" / "a.parquet"
        path.parent.mkdir(parents=True)
        pq.write_table(pa.concat_tables([rows] * 4), path, row_group_size=rows.num_rows)
        one = find_logs(str(path.parents[1]))
        (file,) = one.files
        reading = requests(lambda fs: _read(fs, file, one.passthrough))
        first = requests(lambda fs: _read(fs, one_group(file), one.passthrough))
        columns = (reading - first) / (file.row_groups - 1)
        keys = Path(where) / "keys.parquet"
        pq.write_table(pa.table({"row_key": (7 << 32) + np.arange(8_000)}), keys)
        return Measured(
            entry=len(Manifest(files=open_entries).to_json()) / len(open_entries),
            sealed=_sealed(open_folder(f"{where}/out"), 2 * SEAL_THRESHOLD),
            whole=_whole(),
            row=rows.nbytes / rows.num_rows,
            footer=requests(lambda fs: inspect_files(fs, [file])),
            open=first - columns,
            columns=columns,
            key=keys.stat().st_size / 8_000,
        )


def one_group(file: LogFile) -> LogFile:
    """A file as if it had one row group."""
    return replace(file, row_groups=1)


def tokens() -> dict[str, float]:
    """Tokens computed a response, as tests/benchmarks/results/speed.md has them."""
    text = (PAGE.parent / "speed.md").read_text()
    found = {name: re.search(pattern, text) for name, pattern in TOKENS.items()}
    return {name: int(hit[1].replace(",", "")) / RESPONSES_OF[name] for name, hit in found.items() if hit}


def size(count: float) -> str:
    """Bytes in words."""
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:,.3g} {unit}"
        count /= 1000
    return f"{count:,.3g} GB"


def figures(of: Measured, a_file: int) -> dict[str, str]:
    """The column of the table for files of so many responses."""
    job = load_job(str(REPO / "infra" / "job_gpu.yaml"))
    files, night = RESPONSES // a_file, RESPONSES // NIGHTS
    tonight = ceil(night / a_file)
    blocks = ceil(a_file * of.row / (job.runtime.block_mib * (1 << 20)))
    groups = ceil(a_file / (1 << 20))
    return {
        "input files: in all, a night": f"{files:,}, {tonight:,}",
        "requests to list the input: all of it, a night's folder": f"{ceil(files / LISTED):,}, {ceil(tonight / LISTED):,}",
        "requests for footers: all of it, a night's folder": f"{files * of.footer:,.0f}, {tonight * of.footer:,.0f}",
        "requests to read a night's rows": f"{tonight * (of.open + groups * of.columns):,.0f}",
        "the same once more, for ids that are a column": f"{tonight * (of.open + groups):,.0f}",
        "blocks a night, each put in raw/ and as a checkpoint": f"{tonight * blocks:,}",
        "puts, copies and deletes for them, at least": f"{tonight * blocks * 4:,}",
        "checkpoint of a night": size(night * of.key),
        "manifest.json with every entry, as before": size(files * of.entry),
        "manifest.json now, at most": size((SEAL_THRESHOLD + tonight) * of.entry),
        "its shards beside it": size(files * of.sealed),
        "committed keys in the driver, a night: before": size(8 * night),
        "now: blocks as they are committed; in any pattern, at most": f"{size(tonight * of.whole)}; {size(night / 8)}",
        "committed keys, all responses in one run: before": size(8 * RESPONSES),
        "now, likewise": f"{size(files * of.whole)}; {size(RESPONSES / 8 + files * of.whole)}",
        "hashes of ids, a night: before; now": f"{size(8 * 5 * night)}; {size(9 * min(night, MAX_HASHES_IN_MEMORY))}",
        "hashes of ids, all in one run: before; now; on disk": "; ".join(
            map(size, (8 * 5 * RESPONSES, 9 * MAX_HASHES_IN_MEMORY, 8 * RESPONSES))
        ),
    }


def table(of: Measured) -> str:
    """The table, and what it was computed from."""
    small, large = figures(of, 10_000), figures(of, 100_000)
    lines = ["| a billion responses, 30 nights | 10,000 a file | 100,000 a file |", "| --- | ---: | ---: |"]
    lines += [f"| {name} | {small[name]} | {large[name]} |" for name in small]
    lines += ["", "| logs like | tokens a response | tokens | GPU hours at 1,000 tokens a second | at 100,000 |"]
    lines += ["| --- | ---: | ---: | ---: | ---: |"]
    for name, each in tokens().items():
        hours = each * RESPONSES / 1000 / 3600
        lines.append(f"| {name} | {each:,.0f} | {each * RESPONSES:,.3g} | {hours:,.0f} | {hours / 100:,.0f} |")
    lines += [
        "",
        f"Measured: an entry takes {of.entry:.0f} bytes in manifest.json and {of.sealed:.0f} in a shard; a file that is "
        f"committed whole {of.whole:.0f} bytes in memory; a response of the bundled logs {of.row:,.0f} bytes; a key "
        f"{of.key:.1f} bytes in a checkpoint. A footer takes {of.footer:.0f} requests, an open file {of.open:.0f} and "
        f"{of.columns:.0f} a row group, of the three columns.",
    ]
    return "\n".join(lines)


def main() -> None:
    """Write the table behind the mark in tests/benchmarks/results/scale.md."""
    head, mark, rest = PAGE.read_text(encoding="utf-8").partition(MARK)
    tail = rest[rest.index("\n## ") :] if "\n## " in rest else "\n"
    PAGE.write_text(f"{head}{mark or MARK}\n\n{table(measure())}\n{tail}", encoding="utf-8")


if __name__ == "__main__":
    main()
