"""Project the cost of a billion responses: `python -m tests.benchmarks.scale_projection` writes
tests/benchmarks/results/scale.md.

Sizes and requests are measured on a few files; the rest is arithmetic with the code's constants. Tokens per response are those
in tests/benchmarks/results/speed.md.
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
from ragassay.jobs.input.formats import inspect_files
from ragassay.jobs.input.repeated_hashes import MAX_HASHES_IN_MEMORY
from ragassay.jobs.output.manifest_shards import SEAL_THRESHOLD, seal_entries
from ragassay.jobs.scoring.row_set import RowSet, make_row_set
from ragassay.jobs.storage.folder import Folder, open_folder
from ragassay.schemas.manifest import Manifest
from tests.benchmarks.agreement import HANDBOOK
from tests.benchmarks.state import make_entry

REPO = Path(__file__).parents[2]
PAGE = REPO / "tests" / "benchmarks" / "results" / "scale.md"
MARK = "<!-- written by `python -m tests.benchmarks.scale_projection` -->"
RESPONSES = 1_000_000_000
DAYS = 30
NAMES_PER_REQUEST = 1_000
"""Names that an object store lists per request."""

TOKENS = {"RAGTruth QA": r"36 responses over 6 contexts of RAGTruth QA, 272 prompts, [\d,]+ tokens, floor ([\d,]+)",
          "long summaries": r"1,000 long summaries,\nfloor ([\d,]+) tokens",
          "the bundled logs": r"90 rows, 269 prompts, floor ([\d,]+),"}  # fmt: skip
RESPONSES_OF = {"RAGTruth QA": 36, "long summaries": 1000, "the bundled logs": 90}


@dataclass(frozen=True)
class Sizes:
    """Measured sizes and requests.

    Attributes:
        entry: Bytes of an input file's entry in manifest.json.
        sealed: Bytes of an entry in a shard.
        whole: Bytes in memory of a wholly committed file.
        row: Bytes in memory of a response's question, context and text.
        footer: Requests per footer.
        open: Requests per file, except those for the columns of row groups.
        columns: Requests for the columns of a row group.
        key: Bytes of a checkpoint file per row.
    """

    entry: float
    sealed: float
    whole: float
    row: float
    footer: float
    open: float
    columns: float
    key: float


class _CountedFile:
    """File that counts its reads; an object store needs a request for each."""

    def __init__(self, file: Any, counts: Counter[str]) -> None:
        self._file, self._counts = file, counts

    def read(self, size: int = -1) -> bytes:
        self._counts["reads"] += 1
        data: bytes = self._file.read(size)
        return data

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def make_counting_filesystem(counts: Counter[str]) -> pafs.FileSystem:
    """Make a local file system that counts opens (a request for the size) and reads."""
    from fsspec.implementations.local import LocalFileSystem

    class Local(LocalFileSystem):  # type: ignore[misc]
        def _open(self, path: str, mode: str = "rb", **options: Any) -> Any:
            counts["opens"] += 1
            return _CountedFile(super()._open(path, mode, **options), counts)

    return pafs.PyFileSystem(pafs.FSSpecHandler(Local(skip_instance_cache=True)))


def count_requests(call: Callable[[pafs.FileSystem], object]) -> int:
    """Count the requests that a function would send."""
    counts = Counter[str]()
    call(make_counting_filesystem(counts))
    return counts.total()


def _count_rows(fs: pafs.FileSystem, file: LogFile, passthrough: pa.Schema) -> int:
    return sum(len(table) for table in read_logs(fs, file, 0, range(file.row_groups), Columns(), passthrough, False))


CHUNK_OVERHEAD = 114
"""Bytes of memory of a chunk of a set without its content, measured on a process with 20,000 of them."""


def _measure_whole_file() -> float:
    files = 500
    row_set = RowSet()
    for number in range(files):
        row_set |= make_row_set((number << 32) + np.arange(10_000))
    assert len(row_set) == files * 10_000
    return len(row_set.serialize()) / files + CHUNK_OVERHEAD


def _measure_sealed_entry(folder: Folder, entries: int) -> float:
    manifest = Manifest(files={number: make_entry(number) for number in range(entries)})
    assert not seal_entries(folder, manifest, "r1").files
    total: int = sum(info.size for info in folder.list("_files", ".parquet"))
    return total / entries


def measure() -> Sizes:
    """Measure sizes and requests."""
    open_entries = {number: make_entry(number) for number in range(500)}
    with tempfile.TemporaryDirectory() as scratch:
        logs = find_logs(str(HANDBOOK))
        rows = pa.concat_tables(
            table.select(["question", "context", "response"])
            for file in logs.files
            for table in read_logs(logs.fs, file, 0, range(file.row_groups), Columns(), logs.passthrough, False)
        ).combine_chunks()
        path = Path(scratch) / "one" / "dt=1" / "a.parquet"
        path.parent.mkdir(parents=True)
        pq.write_table(pa.concat_tables([rows] * 4), path, row_group_size=rows.num_rows)
        single = find_logs(str(path.parents[1]))
        (file,) = single.files
        reading = count_requests(lambda fs: _count_rows(fs, file, single.passthrough))
        first = count_requests(lambda fs: _count_rows(fs, keep_one_group(file), single.passthrough))
        columns = (reading - first) / (file.row_groups - 1)
        keys = Path(scratch) / "keys.parquet"
        pq.write_table(pa.table({"row_key": (7 << 32) + np.arange(8_000)}), keys)
        return Sizes(
            entry=len(Manifest(files=open_entries).to_json()) / len(open_entries),
            sealed=_measure_sealed_entry(open_folder(f"{scratch}/out"), 2 * SEAL_THRESHOLD),
            whole=_measure_whole_file(),
            row=rows.nbytes / rows.num_rows,
            footer=count_requests(lambda fs: inspect_files(fs, [file])),
            open=first - columns,
            columns=columns,
            key=keys.stat().st_size / 8_000,
        )


def keep_one_group(file: LogFile) -> LogFile:
    """Return a file with only its first row group."""
    return replace(file, row_groups=1)


def read_tokens_per_response() -> dict[str, float]:
    """Read the tokens computed per response from tests/benchmarks/results/speed.md."""
    text = (PAGE.parent / "speed.md").read_text()
    matches = {name: re.search(pattern, text) for name, pattern in TOKENS.items()}
    return {name: int(match[1].replace(",", "")) / RESPONSES_OF[name] for name, match in matches.items() if match}


def render_size(count: float) -> str:
    """Render a number of bytes."""
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:,.3g} {unit}"
        count /= 1000
    return f"{count:,.3g} GB"


def compute_figures(sizes: Sizes, rows_per_file: int) -> dict[str, str]:
    """Compute a column of the table."""
    job = load_job(str(REPO / "infra" / "job_gpu.yaml"))
    files, rows_per_day = RESPONSES // rows_per_file, RESPONSES // DAYS
    files_per_day = ceil(rows_per_day / rows_per_file)
    blocks = ceil(rows_per_file * sizes.row / (job.runtime.block_mib * (1 << 20)))
    groups = ceil(rows_per_file / (1 << 20))
    lists, lists_per_day = ceil(files / NAMES_PER_REQUEST), ceil(files_per_day / NAMES_PER_REQUEST)
    footers, footers_per_day = files * sizes.footer, files_per_day * sizes.footer
    hashes, hashes_per_day = MAX_HASHES_IN_MEMORY, min(rows_per_day, MAX_HASHES_IN_MEMORY)
    return {
        "input files: in all, per day": f"{files:,}, {files_per_day:,}",
        "requests to list the input: all of it, a day's folder": f"{lists:,}, {lists_per_day:,}",
        "requests for footers: all of it, a day's folder": f"{footers:,.0f}, {footers_per_day:,.0f}",
        "requests to read a day's rows": f"{files_per_day * (sizes.open + groups * sizes.columns):,.0f}",
        "the same again, for ids that are a column": f"{files_per_day * (sizes.open + groups):,.0f}",
        "blocks per day, each put in raw/ and as a checkpoint": f"{files_per_day * blocks:,}",
        "puts, copies and deletes for them, at least": f"{files_per_day * blocks * 4:,}",
        "checkpoint of a day": render_size(rows_per_day * sizes.key),
        "manifest.json with every entry, as before": render_size(files * sizes.entry),
        "manifest.json now, at most": render_size((SEAL_THRESHOLD + files_per_day) * sizes.entry),
        "its shards": render_size(files * sizes.sealed),
        "committed keys in the driver, per day: before": render_size(8 * rows_per_day),
        "now: blocks as they are committed; in any pattern, at most": "; ".join(
            map(render_size, (files_per_day * sizes.whole, rows_per_day / 8))
        ),
        "committed keys, all responses in one run: before": render_size(8 * RESPONSES),
        "now, likewise": f"{render_size(files * sizes.whole)}; {render_size(RESPONSES / 8 + files * sizes.whole)}",
        "hashes of ids, per day: before; now": "; ".join(map(render_size, (8 * 5 * rows_per_day, 9 * hashes_per_day))),
        "hashes of ids, all in one run: before; now; on disk": "; ".join(
            map(render_size, (8 * 5 * RESPONSES, 9 * hashes, 8 * RESPONSES))
        ),
    }


def render_table(sizes: Sizes) -> str:
    """Render the table and the measured sizes."""
    small, large = compute_figures(sizes, 10_000), compute_figures(sizes, 100_000)
    lines = ["| a billion responses, 30 days | 10,000 per file | 100,000 per file |", "| --- | ---: | ---: |"]
    lines += [f"| {name} | {small[name]} | {large[name]} |" for name in small]
    lines += ["", "| logs like | tokens per response | tokens | GPU hours at 1,000 tokens per second | at 100,000 |"]
    lines += ["| --- | ---: | ---: | ---: | ---: |"]
    for name, tokens in read_tokens_per_response().items():
        hours = tokens * RESPONSES / 1000 / 3600
        lines.append(f"| {name} | {tokens:,.0f} | {tokens * RESPONSES:,.3g} | {hours:,.0f} | {hours / 100:,.0f} |")
    lines += [
        "",
        f"Measured: an entry takes {sizes.entry:.0f} bytes in manifest.json and {sizes.sealed:.0f} in a shard; a wholly "
        f"committed file {sizes.whole:.0f} bytes in memory; a response of the bundled logs {sizes.row:,.0f} bytes; a key "
        f"{sizes.key:.1f} bytes in a checkpoint. A footer takes {sizes.footer:.0f} requests, an open file {sizes.open:.0f} and "
        f"{sizes.columns:.0f} per row group, for the three columns.",
    ]
    return "\n".join(lines)


def main() -> None:
    """Write the table behind the mark in tests/benchmarks/results/scale.md."""
    head, mark, rest = PAGE.read_text(encoding="utf-8").partition(MARK)
    tail = rest[rest.index("\n## ") :] if "\n## " in rest else "\n"
    PAGE.write_text(f"{head}{mark or MARK}\n\n{render_table(measure())}\n{tail}", encoding="utf-8")


if __name__ == "__main__":
    main()
