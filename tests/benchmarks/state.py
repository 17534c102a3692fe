"""What the driver holds: `python -m tests.benchmarks.state [--millions 20 50] [--files 1000000]`, before and now, a table.

Each cell is a process of its own: how far its memory rose, and seconds. Before is what stood in the code: all keys of committed
rows, or all hashes of row ids, in one array that is sorted; every input file in manifest.json. Half of the keys are committed
in blocks of 1,000 rows in any order; with "one row in ten" every tenth row of every block is, as a sample would leave it.
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
from ragassay.jobs.input.duplicates import DuplicateFinder, Hashes
from ragassay.jobs.output.manifest import read_manifest, write_manifest
from ragassay.jobs.output.sealed import seal
from ragassay.jobs.scoring.row_set import RowSet, make_row_set
from ragassay.jobs.storage.folder import open_folder
from ragassay.pipeline.arrays import Ints
from ragassay.schemas.manifest import SCORED, InputFile, Manifest

FILE_ROWS = 100_000
BLOCK = 1_000


def committed(rows: int, step: int = 1) -> Iterator[Ints]:
    """Keys of half of the blocks, in any order."""
    blocks = np.random.default_rng(0).permutation(rows // BLOCK)[: rows // BLOCK // 2]
    for block in blocks.tolist():
        number, place = divmod(block * BLOCK, FILE_ROWS)
        yield (number << 32) + place + np.arange(0, BLOCK, step, dtype=np.int64)


def keys_before(rows: int, step: int = 1) -> int:
    keys = np.concatenate(list(committed(rows, step)))
    keys.sort()
    keys = keys[np.diff(keys, prepend=-1) > 0]
    return len(keys)


def keys_now(rows: int, step: int = 1) -> int:
    held = RowSet()
    for keys in committed(rows, step):
        held |= make_row_set(keys)
    return len(held)


def sampled_before(rows: int) -> int:
    return keys_before(rows, 10)


def sampled_now(rows: int) -> int:
    return keys_now(rows, 10)


def hashes(ids: int) -> Iterator[Hashes]:
    """Hashes of ids, a file's at a time; two come twice."""
    rng = np.random.default_rng(1)
    for file in range(ids // FILE_ROWS):
        found = rng.integers(0, 2**64, FILE_ROWS, dtype=np.uint64)
        found[:2] = [7, 2**64 - 7] if file in (0, 1) else found[:2]
        yield found


def ids_before(ids: int) -> int:
    values, counts = np.unique(np.concatenate(list(hashes(ids))), return_counts=True)
    return len(values[counts > 1])


def ids_now(ids: int) -> int:
    with DuplicateFinder(ids) as twice:
        for found in hashes(ids):
            twice.add(found)
        return len(twice.find_duplicates(1 << 20))


def entry(number: int) -> InputFile:
    path = f"dt=2026-{number // 28 % 12 + 1:02}-{number % 28 + 1:02}/part-{number:06}.parquet"
    digest = np.random.default_rng(number).bytes(16).hex()
    mtime = 1_790_000_000_000_000_000 + number
    return InputFile(
        path, f"s3://your-logs/rag/{path}", 30_000_000 + number, 10_000, path[:13], SCORED, None, digest, True, mtime
    )


def _make(where: str, files: int, sealed: bool) -> None:
    folder = open_folder(where)
    made = Manifest({}, {number: entry(number) for number in range(files)})
    if sealed:
        made = seal(folder, made, "r1")
    write_manifest(folder, made)


def manifest(files: int, sealed: bool) -> int:
    """Read a manifest and write it three times, as a run does; bytes of manifest.json."""
    with tempfile.TemporaryDirectory() as where:
        maker = multiprocessing.get_context("spawn").Process(target=_make, args=(where, files, sealed))
        maker.start()
        maker.join()
        folder = open_folder(where)
        started = time.perf_counter()
        held = read_manifest(folder)
        for _ in range(3):
            write_manifest(folder, held)
        _SECONDS.append(time.perf_counter() - started)
        return (Path(where) / "manifest.json").stat().st_size


_SECONDS: list[float] = []


def manifest_before(files: int) -> int:
    return manifest(files, sealed=False)


def manifest_now(files: int) -> int:
    return manifest(files, sealed=True)


def found(files: int) -> int:
    """Find so many small input files of seven columns: bytes of memory that each takes."""
    with tempfile.TemporaryDirectory() as where:
        folder = Path(where) / "dt=2026-11-20"
        folder.mkdir()
        first = folder / "part-000000.parquet"
        names = ("question", "context", "response", "row_id", "tenant", "model", "at")
        pq.write_table(pa.table({name: ["x"] for name in names}), first)
        find_logs(where)
        for number in range(1, files):
            shutil.copy(first, folder / f"part-{number:06}.parquet")
        base = psutil.Process().memory_info().rss
        logs = find_logs(where)
        gc.collect()
        return int((psutil.Process().memory_info().rss - base) / len(logs.files))


def _in_process(call: Callable[[int], int], size: int, answer: Any) -> None:
    base, started = psutil.Process().memory_info().rss, time.perf_counter()
    found = call(size)
    seconds = _SECONDS[0] if _SECONDS else time.perf_counter() - started
    rose = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - base
    answer.put((found, rose, seconds))


def measured(call: Callable[[int], int], size: int) -> tuple[int, int, float]:
    """What a function gives, how far memory rose, and seconds; in a process of its own."""
    context = multiprocessing.get_context("spawn")
    answer = context.Queue()
    process = context.Process(target=_in_process, args=(call, size, answer))
    process.start()
    found: tuple[int, int, float] = answer.get()
    process.join()
    return found


def main() -> None:
    """Print the table, a line when it is known."""
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
                ("rows, half of them committed", keys_before, keys_now, millions * 1_000_000),
                ("rows, one in ten of these committed", sampled_before, sampled_now, millions * 1_000_000),
                ("row ids", ids_before, ids_now, millions * 1_000_000),
            )
        ),
        ("input files, manifest read and written three times", manifest_before, manifest_now, options.files),
    ]
    for name, before, now, size in cases:
        old, new = measured(before, size), measured(now, size)
        if before is manifest_before:
            print(f"manifest.json: {old[0]:,} bytes before, {new[0]:,} now")
        else:
            assert old[0] == new[0], "both find the same"
        mib = [found[1] / (1 << 20) for found in (old, new)]
        times = mib[0] / max(mib[1], 0.1)
        print(f"| {name} | {size:,} | {mib[0]:,.1f} | {mib[1]:,.1f} | {times:.1f} | {old[2]:.1f} | {new[2]:.1f} |", flush=True)
    print(f"An input file takes {measured(found, 4000)[0]:,} bytes of memory from when it is found.")


if __name__ == "__main__":
    main()
