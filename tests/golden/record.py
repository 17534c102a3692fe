"""Record the bundled verifier's answers about the bundled logs, for the member `recorded`."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from ragassay.pipeline.text.claim import extract_claim  # the prompt has the claim, not the raw sentence
from tests.golden.command import run_here, write_job
from tests.golden.servers import RECORDED, build_prompt, digest_prompt

SETTINGS: dict[str, Any] = {"members": {"slms": [{"name": "facts", "adapter": "facts"}], "detectors": []}}


def record_answers(folder: Path) -> int:
    """Score the bundled logs with the bundled verifier and write the recorded table.

    Args:
        folder: An empty folder.

    Returns:
        Number of recorded prompts.
    """
    job = write_job(folder / "job.yaml", SETTINGS)
    logs = run_here(["demo-logs"]).stdout.strip()
    result = run_here(["score", logs, str(folder / "out"), "--config", str(job)])
    assert result.exit_code == 0, result.stdout + result.error
    files = sorted((folder / "out" / "raw").rglob("*.parquet"))
    return write_answers(row for file in files for row in pq.read_table(file, partitioning=None).to_pylist())


def write_answers(rows: Iterable[dict[str, Any]]) -> int:
    """Write the recorded table from rows of `raw/` that have the verifier as their first member."""
    logprobs = dict(pair for row in rows for pair in _list_logprobs(row))
    RECORDED.parent.mkdir(exist_ok=True)
    lines = ",\n".join(f'"{key}": [{yes:.6g}, {no:.6g}]' for key, (yes, no) in sorted(logprobs.items()))
    RECORDED.write_text(f"{{\n{lines}\n}}\n")
    return len(json.loads(RECORDED.read_text()))


def _list_logprobs(row: dict[str, Any]) -> Iterator[tuple[str, tuple[float, float]]]:
    for member in (row["members"] or [])[:1]:
        for sentence, yes, no in zip(row["sentences"], member["log_p_yes"], member["log_p_no"], strict=True):
            if yes is not None and no is not None:
                yield digest_prompt(build_prompt(row["question"], row["context"], extract_claim(sentence["text"]))), (yes, no)
