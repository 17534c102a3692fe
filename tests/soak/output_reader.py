"""Read an output's verdicts repeatedly until a file appears; `test_attack_readers` starts 20 of these processes.

python -m tests.soak.output_reader OUTPUT LOG STOP_FILE
"""

import json
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from ragassay.jobs.output.manifest import open_output
from ragassay.jobs.output.partitions import list_partition_files
from ragassay.jobs.output.snapshot import read_snapshot
from ragassay.jobs.storage.folder import Folder
from ragassay.pipeline.errors import OutputRewritten
from ragassay.schemas.manifest import Manifest


def read(output: Folder, manifest: Manifest) -> tuple[list[list[Any]], list[str]]:
    """Read the first file of each partition, slowly, and list the runs that have verdicts."""
    partitions: list[list[Any]] = []
    for partition, paths in list_partition_files(output, "scored").items():
        time.sleep(0.05)
        table = pq.read_table(paths[0], columns=["run_id", "threshold", "row_id"], filesystem=output.fs, partitioning=None)
        runs, thresholds = (table[name].drop_null().unique().to_pylist() for name in ("run_id", "threshold"))
        partitions.append([partition, runs, thresholds, len(table), len(set(table["row_id"].to_pylist()))])
    return partitions, [run.run_id for run in manifest.runs if run.fit]


def main(output: str, log: Path, stop: Path) -> None:
    with log.open("a") as lines:
        while not stop.exists():
            try:
                partitions, runs = read_snapshot(open_output(output), read)
                lines.write(json.dumps({"partitions": partitions, "runs": runs}) + "\n")
            except OutputRewritten as error:
                lines.write(json.dumps({"rewritten": error.fields["partition"]}) + "\n")
            lines.flush()
            time.sleep(2.0)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
