"""Answers of a served judge, kept beside the output, so that no row is paid for twice."""

import hashlib
import json
from dataclasses import asdict
from typing import Any

import numpy as np

from ragassay.jobs.decide import errors
from ragassay.jobs.decide.labelled import Labelled
from ragassay.jobs.endings import is_full
from ragassay.jobs.progress.task import advance, expect
from ragassay.jobs.storage import Folder
from ragassay.pipeline.arrays import Floats
from ragassay.pipeline.errors import OutputError
from ragassay.pipeline.judge import Judge, judge_rows

ASKED = ("base_url", "model", "prompt", "supported", "unsupported", "top_logprobs")
"""What an answer depends on, in the order that the hashes of earlier answers were made in."""

CHUNK = 256
"""Answers are written after so many, so that what breaks off loses little."""


def ask_judge(judge: Judge, rows: Labelled, output: Folder) -> Floats:
    """P(supported) of every response by a served judge; NaN where it gave none.

    Answers stand in OUTPUT/judge/NAME.json under a hash of judge and texts, errors too. What has a value is not asked again.
    They are of the texts alone, so they are written at once, together with those that another command has added.

    Raises:
        OutputError: They can't be written. Nothing is asked then.
    """
    path = f"judge/{judge.name}.json"
    known = _answers(output, path)
    keys = [_key(judge, texts) for texts in rows.texts]
    missing = [i for i, key in enumerate(keys) if known.get(key, {}).get("value") is None]
    expect(len(missing), "steps")
    if missing:
        _write(output, path, known)
    for start in range(0, len(missing), CHUNK):
        part = missing[start : start + CHUNK]
        for i, answer in zip(part, judge_rows(judge, [rows.texts[i] for i in part]), strict=True):
            known[keys[i]] = asdict(answer)
        known = {**_answers(output, path), **known}
        _write(output, path, known)
        advance(len(part), "steps")
    return np.array([np.nan if known[key]["value"] is None else known[key]["value"] for key in keys], dtype=np.float64)


def _answers(output: Folder, path: str) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = json.loads(output.read(path) or "{}")
    return found


def _write(output: Folder, path: str, known: dict[str, dict[str, Any]]) -> None:
    try:
        output.itself.write(path, json.dumps(known))
    except OSError as error:
        if is_full(error):
            raise
        raise OutputError(errors.ANSWERS_NOT_WRITABLE, path=output.address_of(path), reason=error) from error


def _key(judge: Judge, texts: tuple[str | None, list[str], str]) -> str:
    dumped = judge.model_dump(mode="json")
    asked = {name: dumped[name] for name in ASKED}
    return hashlib.sha256(json.dumps([asked, *texts]).encode()).hexdigest()
