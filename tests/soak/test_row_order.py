"""Scores do not depend on the order of rows, on blocks, or on a second pool of vLLM engines."""

import random
from pathlib import Path

import numpy as np
import pytest
import yaml

from tests.conftest import write_logs
from tests.job_settings import merged
from tests.jobs.conftest import invoke, manifest, read_rows, tiny, write_job
from tests.jobs.test_real_runs import DAYS, ROWS, day_rows, handbook_day, has_score

__all__ = ["handbook_day"]
pytestmark = pytest.mark.soak


def test_neither_row_order_nor_a_second_pool_changes_scores(
    handbook_day: tuple[Path, Path], tiny_model: str, tmp_path: Path
) -> None:
    """In float32, scores of the same rows in another order, in other blocks and with a second SLM agree within 1e-4.

    Each of the two SLMs scores every row, and their z-scores are averaged.
    """
    output, config = handbook_day
    rows = [row for day in DAYS for row in day_rows(day)]
    write_logs(tmp_path / "logs.parquet", random.Random(3).sample(rows, len(rows)))
    job = yaml.safe_load(config.read_text())
    second_slm = {**tiny(tiny_model), "prompt": "{{ context | join }} {{ sentence }} Yes or No?"}
    both = write_job(
        tmp_path / "both.yaml",
        **merged(job, {"members": {"slms": [*job["members"]["slms"], second_slm]}, "runtime": {"block_mib": 0.5}}),
    )
    done = invoke("run", tmp_path / "logs.parquet", tmp_path / "out", "--config", both)
    assert done.returncode == 0, done.stdout + done.stderr
    fits = manifest(tmp_path / "out")["runs"][-1]["fit"]["members"]
    averaged = read_rows(tmp_path / "out")
    assert len(averaged) == ROWS and all([m["name"] for m in row["members"]] == ["smollm2", "tiny"] for row in averaged)
    for row in averaged:
        z = [(np.array(m["sentence_scores"]) - fits[m["name"]]["mu"]) / fits[m["name"]]["sigma"] for m in row["members"]]
        expected = np.mean(z, axis=0)[has_score(row)]
        assert [s["score"] for s in row["sentences"] if not s["repeats"]] == pytest.approx(expected, abs=1e-4)

    alone = invoke("finalize", tmp_path / "out", "--config", config)
    assert alone.returncode == 0, alone.stdout + alone.stderr
    a, b = ({r["row_id"]: r for r in read_rows(folder)} for folder in (output, tmp_path / "out"))
    assert set(a) == set(b)
    for row_id, row in a.items():
        first, second = row["members"][0], b[row_id]["members"][0]
        assert first["log_p_yes"] == pytest.approx(second["log_p_yes"], abs=1e-4)
        assert first["log_p_no"] == pytest.approx(second["log_p_no"], abs=1e-4)
        assert row["score"] == pytest.approx(b[row_id]["score"], abs=1e-3)
        if abs(row["score"] - row["threshold"]) > 2e-3:
            assert row["verdict"] == b[row_id]["verdict"]
