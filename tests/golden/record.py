"""Record the bundled verifier's values for the demo rows of the corpus, by a real run with vLLM."""

import json
import tempfile
from pathlib import Path
from typing import Any

from tests.golden.command import start, write_job
from tests.golden.logs import write_demo
from tests.golden.servers import RECORDED, key_of, prompt_of
from tests.golden.tables import read_dataset
from tests.golden.values import rounded

DEMO_ROWS = 4
"""Rows of each day of the bundled logs that the corpus has."""


def record(folder: Path) -> int:
    """Run the default job over the demo rows, and write the recorded table.

    Args:
        folder: An empty folder.

    Returns:
        How many sentences were recorded.

    Raises:
        AssertionError: The run failed.
    """
    rows = run_default_job(folder)
    table: dict[str, Any] = {}
    for row in rows:
        (member,) = [member for member in row["members"] if member["name"] == "facts"]
        for sentence, yes, no in zip(row["sentences"], member["log_p_yes"], member["log_p_no"], strict=True):
            if yes is not None:
                table[key_of(prompt_of(row["question"], row["context"], sentence["text"]))] = [rounded(yes), rounded(no)]
    RECORDED.parent.mkdir(exist_ok=True)
    RECORDED.write_text("{\n" + ",\n".join(f'"{key}": {json.dumps(table[key])}' for key in sorted(table)) + "\n}\n")
    return len(table)


def run_default_job(folder: Path) -> list[dict[str, Any]]:
    """Run the default job over the demo rows in a process of its own, and return the rows of `raw/`.

    Raises:
        AssertionError: The run failed.
    """
    write_demo(folder / "logs", DEMO_ROWS)
    job = write_job(folder / "job.yaml", {"block_mib": 16})
    log = folder / "run.log"
    process = start(["run", str(folder / "logs"), str(folder / "out"), "--config", str(job)], log)
    assert process.wait() == 0, log.read_text()[-3000:]
    return read_dataset(folder / "out" / "raw").rows


def main() -> None:
    """Record in a temporary folder."""
    with tempfile.TemporaryDirectory() as folder:
        print(f"{record(Path(folder))} sentences recorded in {RECORDED.name}")
