"""Odd rows with a local SLM that has the bundled verifier's settings: each gets finite scores or a reason."""

from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from ragassay.jobs.config.job import make_job
from ragassay.jobs.scoring.stages import make_slm_stages, make_split_stage
from ragassay.pipeline.engines.adapter import read_adapter_settings
from ragassay.pipeline.slm.config import ADAPTER_SETTINGS
from tests.conftest import run_stages
from tests.corpus import rows as odd


@pytest.mark.slow
def test_every_odd_row_is_scored_or_has_a_reason(tiny_model: str) -> None:
    adapter_settings = {key: value for key, value in read_adapter_settings("facts").items() if key in ADAPTER_SETTINGS}
    slm: dict[str, Any] = {
        "name": "facts",
        "model": tiny_model,
        "engine": "transformers",
        "dtype": "float32",
        **adapter_settings,
    }
    job = make_job({"members": {"slms": [{**slm, "max_model_len": 1024}]}, "splitting": {"languages": "any"}})
    kinds = [
        (kind, row) for kind, rows in odd.ROWS.items() if kind != "not UTF-8" for row in rows
    ]  # the reader's tests cover it
    assert len(kinds) > 400
    rows = odd.table([row for _, row in kinds])
    for name, values in {
        "row_key": pa.array(range(len(kinds)), pa.int64()),
        "status": pa.array(["ok"] * len(kinds)),
        "error": pa.nulls(len(kinds), pa.string()),
        "passage_ids": pa.nulls(len(kinds), pa.list_(pa.string())),
    }.items():
        rows = rows.append_column(name, values)
    scored = run_stages([make_split_stage(job), *make_slm_stages(job)], rows).to_pylist()
    assert [row["row_key"] for row in scored] == list(range(len(kinds)))
    for row in scored:
        if row["status"] == "ok":
            (member,) = row["members"]
            assert len(member["sentence_scores"]) == len(row["sentences"]) and np.isfinite(member["sentence_scores"]).all(), row
        else:
            assert row["status"] != "error" and row["error"], row
    ok = Counter(kind for (kind, _), row in zip(kinds, scored, strict=True) if row["status"] == "ok")
    for kind in ("scripts", "quotes", "prompt injection", "control tokens", "template syntax", "dates and times"):
        assert ok[kind] >= 0.9 * len(odd.ROWS[kind]), kind
    assert "too_long" in {row["status"] for row in scored}
