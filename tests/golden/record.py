"""Record what the bundled verifier answers about the bundled logs, for the member `recorded`."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from ragassay.pipeline.text.claim import extract_claim  # a member is asked about the sentence as it is judged
from tests.golden.command import run_here, write_job
from tests.golden.servers import RECORDED, key_of, prompt_of

SETTINGS: dict[str, Any] = {"members": {"slms": [{"name": "facts", "adapter": "facts"}], "detectors": []}}


def record(folder: Path) -> int:
    """Score the bundled logs with the bundled verifier, and write the recorded table.

    Args:
        folder: An empty folder.

    Returns:
        How many prompts are recorded.
    """
    job = write_job(folder / "job.yaml", SETTINGS)
    logs = run_here(["demo-logs"]).stdout.strip()
    done = run_here(["score", logs, str(folder / "out"), "--config", str(job)])
    assert done.exit_code == 0, done.stdout + done.error
    files = sorted((folder / "out" / "raw").rglob("*.parquet"))
    return write_table(row for file in files for row in pq.read_table(file, partitioning=None).to_pylist())


def write_table(rows: Iterable[dict[str, Any]]) -> int:
    """Write the recorded table from rows of `raw/` with the verifier as their first member."""
    found = dict(pair for row in rows for pair in _pairs(row))
    RECORDED.parent.mkdir(exist_ok=True)
    lines = ",\n".join(f'"{key}": [{yes:.6g}, {no:.6g}]' for key, (yes, no) in sorted(found.items()))
    RECORDED.write_text(f"{{\n{lines}\n}}\n")
    return len(json.loads(RECORDED.read_text()))


def _pairs(row: dict[str, Any]) -> Iterator[tuple[str, tuple[float, float]]]:
    for member in (row["members"] or [])[:1]:
        for sentence, yes, no in zip(row["sentences"], member["log_p_yes"], member["log_p_no"], strict=True):
            if yes is not None and no is not None:
                yield key_of(prompt_of(row["question"], row["context"], extract_claim(sentence["text"]))), (yes, no)
