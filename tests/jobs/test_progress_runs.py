"""Progress of whole jobs as JSON."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.addresses import check_addresses, make_watched_env
from tests.conftest import example_rows, write_logs
from tests.jobs.conftest import invoke, manifest, ragassay, write_job
from tests.without_ray import without_ray

PHASES = ["checking", "loading", "reading", "waiting", "scoring", "counting", "deciding", "done"]


def progress(stderr: str) -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = [json.loads(line) for line in stderr.splitlines()]
    for line in lines:
        assert set(line) == {
            "time", "phase", "stage", "done", "total", "unit", "is_estimate", "tokens_per_second", "seconds_left",
        }  # fmt: skip
        assert line["total"] is None or 0 <= line["done"] <= line["total"]
    assert [line["time"] for line in lines] == sorted(line["time"] for line in lines)
    return lines


@pytest.mark.slow
def test_a_job_reports_its_progress_from_the_first_check_to_the_last_sentence_and_contacts_no_other_machine(
    tmp_path: Path,
) -> None:
    rows = [*example_rows(300), *({**row, "context": None} for row in example_rows(20))]
    logs = write_logs(tmp_path / "logs" / "a.parquet", rows, row_group_size=80)
    output = tmp_path / "out"
    detectors = [{"name": "entities", "kind": "entities"}, {"name": "novelty", "kind": "novelty"}]
    config = write_job(tmp_path / "job.yaml", members={"slms": [], "detectors": detectors}, runtime={"block_mib": 0.05})
    done = ragassay("--log-format", "json", "run", logs, output, "--config", config, env=make_watched_env(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "waiting" not in done.stdout and "320 in = 300 scored + 20 unscorable" in done.stdout
    lines = progress(done.stderr)
    phases = list(dict.fromkeys(line["phase"] for line in lines))
    assert phases == [phase for phase in PHASES if phase in phases] and {"loading", "scoring", "deciding"} < set(phases)
    detect = [line for line in lines if line["stage"] == "detect"]
    done_counts = [line["done"] for line in detect]
    sentences = manifest(output)["runs"][-1]["sentences"]
    assert done_counts == sorted(done_counts) and done_counts[0] == 0
    assert (detect[-1]["done"], detect[-1]["total"], detect[-1]["is_estimate"]) == (sentences, sentences, False)
    assert (lines[-1]["phase"], lines[-1]["done"], lines[-1]["total"]) == ("done", sentences, sentences)

    check_addresses(tmp_path)

    with without_ray():
        again = invoke("--log-format", "json", "run", logs, output, "--config", config)
        finalize = invoke("--log-format", "json", "finalize", output, "--config", config)
    assert {line["phase"] for line in progress(again.stderr)} == {"checking", "counting", "done"}, "no row is left to score"
    partitions = [(line["done"], line["total"]) for line in progress(finalize.stderr) if line["stage"] == "verdicts"]
    assert partitions[-1] == (1, 1)
