"""Ask a served reference model about whole responses, and keep its answers in `judge/`."""

import hashlib
import json
from dataclasses import asdict
from typing import Any

import numpy as np

from ragassay.jobs.evaluation import errors
from ragassay.jobs.evaluation.labeled_responses import LabeledResponses
from ragassay.jobs.progress.task import advance, expect
from ragassay.jobs.runtime.endings import is_disk_full
from ragassay.jobs.storage.folder import Folder
from ragassay.pipeline.arrays import Floats
from ragassay.pipeline.errors import OutputError
from ragassay.pipeline.slm.reference_judge import ReferenceJudge, judge_rows

JUDGE_IDENTITY = ("base_url", "model", "prompt", "supported", "unsupported", "top_logprobs")
"""Judge settings that an answer depends on, in the order in which they are hashed."""

JUDGE_CHUNK = 256
"""Judge answers per write; an interruption loses at most these."""


def ask_reference_model(judge: ReferenceJudge, rows: LabeledResponses, output: Folder) -> Floats:
    """Return P(supported) of every response by a served judge; NaN if it has no answer.

    OUTPUT/judge/NAME.json keeps answers and errors under a hash of judge and texts. Only missing answers and errors are asked
    for. Answers depend on the texts alone, so they are written at once and merged with those that another command has added.

    Raises:
        OutputError: The answers can't be written. Then nothing is asked.
    """
    path = f"judge/{judge.name}.json"
    answers = _read_answers(output, path)
    keys = [_answer_key(judge, texts) for texts in rows.texts]
    missing = [i for i, key in enumerate(keys) if answers.get(key, {}).get("value") is None]
    expect(len(missing), "steps")
    if missing:
        _write_answers(output, path, answers)
    for start in range(0, len(missing), JUDGE_CHUNK):
        chunk = missing[start : start + JUDGE_CHUNK]
        for i, answer in zip(chunk, judge_rows(judge, [rows.texts[i] for i in chunk]), strict=True):
            answers[keys[i]] = asdict(answer)
        answers = {**_read_answers(output, path), **answers}
        _write_answers(output, path, answers)
        advance(len(chunk), "steps")
    return np.array([np.nan if answers[key]["value"] is None else answers[key]["value"] for key in keys], dtype=np.float64)


def _read_answers(output: Folder, path: str) -> dict[str, dict[str, Any]]:
    answers: dict[str, dict[str, Any]] = json.loads(output.read(path) or "{}")
    return answers


def _write_answers(output: Folder, path: str, answers: dict[str, dict[str, Any]]) -> None:
    try:
        output.live_folder.write(path, json.dumps(answers))
    except OSError as error:
        if is_disk_full(error):
            raise
        raise OutputError(errors.ANSWERS_NOT_WRITABLE, path=output.format_address(path), reason=error) from error


def _answer_key(judge: ReferenceJudge, texts: tuple[str | None, list[str], str]) -> str:
    dumped = judge.model_dump(mode="json")
    identity = {name: dumped[name] for name in JUDGE_IDENTITY}
    return hashlib.sha256(json.dumps([identity, *texts]).encode()).hexdigest()
