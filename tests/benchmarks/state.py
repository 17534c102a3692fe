"""Measure memory and time of the driver's state, before and now: `python -m tests.benchmarks.state [--millions 20 50]
[--files 1000000]`.

Each cell is measured in a new process. "Before" is the former code: all keys of committed rows, or all hashes of row ids, in
one sorted array, and every input file in manifest.json. Half of the keys are committed in blocks of 1,000 rows in random
order; "one in ten" has every tenth row of these blocks, as a sample does.
"""

import argparse
import gc
import multiprocessing
import resource
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from ragassay.jobs.input import find_logs
from ragassay.jobs.input.repeated_hashes import DuplicateFinder, Hashes
from ragassay.jobs.output.manifest import read_manifest, write_manifest
from ragassay.jobs.output.manifest_shards import seal_entries
from ragassay.jobs.scoring.row_set import RowSet, make_row_set
from ragassay.jobs.storage.folder import open_folder
from ragassay.pipeline.arrays import Ints
from ragassay.schemas.manifest import SCORED, InputFile, Manifest

FILE_ROWS = 100_000
BLOCK = 1_000


def list_committed_keys(rows: int, step: int = 1) -> Iterator[Ints]:
    """Yield the keys of half of the blocks, in random order."""
    blocks = np.random.default_rng(0).permutation(rows // BLOCK)[: rows // BLOCK // 2]
    for block in blocks.tolist():
        number, first_row = divmod(block * BLOCK, FILE_ROWS)
        yield (number << 32) + first_row + np.arange(0, BLOCK, step, dtype=np.int64)


def count_keys_before(rows: int, step: int = 1) -> int:
    keys = np.concatenate(list(list_committed_keys(rows, step)))
    keys.sort()
    keys = keys[np.diff(keys, prepend=-1) > 0]
    return len(keys)


def count_keys_now(rows: int, step: int = 1) -> int:
    row_set = RowSet()
    for keys in list_committed_keys(rows, step):
        row_set |= make_row_set(keys)
    return len(row_set)


def count_sampled_before(rows: int) -> int:
    return count_keys_before(rows, 10)


def count_sampled_now(rows: int) -> int:
    return count_keys_now(rows, 10)


def make_hashes(ids: int) -> Iterator[Hashes]:
    """Yield hashes of ids by file; two ids are duplicates."""
    rng = np.random.default_rng(1)
    for file in range(ids // FILE_ROWS):
        hashes = rng.integers(0, 2**64, FILE_ROWS, dtype=np.uint64)
        hashes[:2] = [7, 2**64 - 7] if file in (0, 1) else hashes[:2]
        yield hashes


def count_duplicates_before(ids: int) -> int:
    values, counts = np.unique(np.concatenate(list(make_hashes(ids))), return_counts=True)
    return len(values[counts > 1])


def count_duplicates_now(ids: int) -> int:
    with DuplicateFinder(ids) as finder:
        for hashes in make_hashes(ids):
            finder.add(hashes)
        return len(finder.find_duplicates(1 << 20))


def make_entry(number: int) -> InputFile:
    path = f"dt=2026-{number // 28 % 12 + 1:02}-{number % 28 + 1:02}/part-{number:06}.parquet"
    digest = np.random.default_rng(number).bytes(16).hex()
    mtime = 1_790_000_000_000_000_000 + number
    return InputFile(
        path, f"s3://your-logs/rag/{path}", 30_000_000 + number, 10_000, path[:13], SCORED, None, digest, True, mtime
    )


def _write_manifest(where: str, files: int, sealed: bool) -> None:
    folder = open_folder(where)
    manifest = Manifest({}, {number: make_entry(number) for number in range(files)})
    if sealed:
        manifest = seal_entries(folder, manifest, "r1")
    write_manifest(folder, manifest)


def rewrite_manifest(files: int, sealed: bool) -> int:
    """Read a manifest and write it three times, as a run does; return the bytes of manifest.json."""
    with tempfile.TemporaryDirectory() as path:
        process = multiprocessing.get_context("spawn").Process(target=_write_manifest, args=(path, files, sealed))
        process.start()
        process.join()
        folder = open_folder(path)
        started = time.perf_counter()
        current = read_manifest(folder)
        for _ in range(3):
            write_manifest(folder, current)
        _SECONDS.append(time.perf_counter() - started)
        return (Path(path) / "manifest.json").stat().st_size


_SECONDS: list[float] = []


def rewrite_manifest_before(files: int) -> int:
    return rewrite_manifest(files, sealed=False)


def rewrite_manifest_now(files: int) -> int:
    return rewrite_manifest(files, sealed=True)


def find_files(files: int) -> int:
    """Find small input files with seven columns, and return the bytes of memory per file."""
    with tempfile.TemporaryDirectory() as path:
        folder = Path(path) / "dt=2026-11-20"
        folder.mkdir()
        first = folder / "part-000000.parquet"
        names = ("question", "context", "response", "row_id", "tenant", "model", "at")
        pq.write_table(pa.table({name: ["x"] for name in names}), first)
        find_logs(path)
        for number in range(1, files):
            shutil.copy(first, folder / f"part-{number:06}.parquet")
        memory_before = psutil.Process().memory_info().rss
        logs = find_logs(path)
        gc.collect()
        return int((psutil.Process().memory_info().rss - memory_before) / len(logs.files))


def _run_in_child(call: Callable[[int], int], size: int, answer: Any) -> None:
    memory_before, started = psutil.Process().memory_info().rss, time.perf_counter()
    result = call(size)
    seconds = _SECONDS[0] if _SECONDS else time.perf_counter() - started
    memory_rise = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - memory_before
    answer.put((result, memory_rise, seconds))


def measure_in_process(call: Callable[[int], int], size: int) -> tuple[int, int, float]:
    """Call a function in a new process; return its result, its rise of memory in bytes, and seconds."""
    context = multiprocessing.get_context("spawn")
    answer = context.Queue()
    process = context.Process(target=_run_in_child, args=(call, size, answer))
    process.start()
    result: tuple[int, int, float] = answer.get()
    process.join()
    return result


def main() -> None:
    """Print the table, line by line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--millions", type=int, nargs="*", default=[20, 50])
    parser.add_argument("--files", type=int, default=1_000_000)
    options = parser.parse_args()
    print("| what | how many | before, MiB | now, MiB | times less | before, s | now, s |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    cases: list[tuple[str, Callable[[int], int], Callable[[int], int], int]] = [
        *(
            case
            for millions in options.millions
            for case in (
                ("rows, half of them committed", count_keys_before, count_keys_now, millions * 1_000_000),
                ("rows, one in ten of these committed", count_sampled_before, count_sampled_now, millions * 1_000_000),
                ("row ids", count_duplicates_before, count_duplicates_now, millions * 1_000_000),
            )
        ),
        ("input files, manifest read and written three times", rewrite_manifest_before, rewrite_manifest_now, options.files),
    ]
    for name, before, now, size in cases:
        old, new = measure_in_process(before, size), measure_in_process(now, size)
        if before is rewrite_manifest_before:
            print(f"manifest.json: {old[0]:,} bytes before, {new[0]:,} now")
        else:
            assert old[0] == new[0], "the results differ"
        mib = [result[1] / (1 << 20) for result in (old, new)]
        times = mib[0] / max(mib[1], 0.1)
        print(f"| {name} | {size:,} | {mib[0]:,.1f} | {mib[1]:,.1f} | {times:.1f} | {old[2]:.1f} | {new[2]:.1f} |", flush=True)
    print(f"An input file takes {measure_in_process(find_files, 4000)[0]:,} bytes of memory once it is found.")


if __name__ == "__main__":
    main()
