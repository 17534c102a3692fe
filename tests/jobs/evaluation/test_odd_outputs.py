"""Outputs of unusual logs and settings: every command ends with its output or with one error."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console
from typer.testing import CliRunner

from ragassay.jobs.cli.main import app
from ragassay.jobs.config.job import Job, make_job
from ragassay.jobs.run import finalize_job
from tests.job_settings import merged
from tests.jobs.conftest import manifest, read_rows, resamples, write_job
from tests.jobs.evaluation.conftest import MIXED, job, raw_row, write_output

DETECTOR_JOB = {
    "members": {"slms": [{"name": "a"}], "detectors": [{"name": "words", "kind": "novelty"}]},
    "verdict": {"threshold": {"quantile": 0.3}},
}
ONLY_WORDS = merged(DETECTOR_JOB, {"members": {"slms": []}})

Rows = list[dict[str, Any]]


pytestmark = pytest.mark.usefixtures("without_ray")


def run_command(*args: str | Path) -> tuple[int, str]:
    result = CliRunner().invoke(app, [str(a) for a in args])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exc_info
    assert result.exit_code in (0, 1) and (result.exit_code == 0 or "error[" in result.output), result.output
    return result.exit_code, result.output


def all_commands(output: Path, *, label: str = "label") -> dict[str, tuple[int, str]]:
    """Run every command on an output."""
    few = write_job(output.parent / "few.yaml", evaluation={"resamples": 2})
    commands: dict[str, tuple[str, ...]] = {
        "no labels": ("--out", str(output.parent / "r.html")),
        "calibrate": (
            "--label",
            label,
            "--target",
            "supported-f1",
            "--threshold-only",
            "--force",
            "--out",
            str(output.parent / "c.json"),
        ),
        "flagged": ("--target", "flagged=0.1", "--out", str(output.parent / "d.json")),
        "mean": ("--target", "mean", "--out", str(output.parent / "e.json")),
        "members": ("--members", "--label", label),
        "compare": (str(output),),
        "drift": (),
        "report": ("--label", label, "--config", str(few), "--slice", "tenant", "--out", str(output.parent / "l.html")),
        "messages": (str(output.parent / "m.jsonl"), "--format", "messages"),
        "dpo": (str(output.parent / "p.jsonl"), "--format", "dpo"),
        "review": (str(output.parent / "f.parquet"), "--format", "flagged"),
    }
    verbs = {"flagged": "calibrate", "mean": "calibrate", "no labels": "report", "members": "evaluate"}
    verbs |= dict.fromkeys(("messages", "dpo", "review"), "export")
    return {name: run_command(verbs.get(name, name), output, *args) for name, args in commands.items()}


def rows(count: int = 12, **more: Any) -> Rows:
    rng = np.random.default_rng(5)
    return [{**raw_row(i, i // 3, list(MIXED)[i % 3], rng), **more} for i in range(count)]


def add_detector(row: dict[str, Any], values: list[float | None]) -> dict[str, Any]:
    """Add a detector `words` with these values to the row's SLM `a`."""
    words = {"name": "words", "sentence_scores": values, "response_score": next((v for v in values if v is not None), None)}
    return {**row, "members": [row["members"][0], words]}


def failed(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "status": "no_context", "error": "no context", "members": None, "sentences": None, "context": None}


def write_finalized(folder: Path, days: dict[str, Rows], settings: Job) -> Path:
    return write_output(folder / "out", days, settings)


def test_every_command_works_with_fewer_members(tmp_path: Path) -> None:
    """The detector has no value for two of five rows; finalized by the detector alone, they have no score."""
    members_and_detector = [
        add_detector(row, [None, None] if i % 5 < 2 else [0.2 + i / 50, 0.9 - i / 40]) for i, row in enumerate(rows(30))
    ]
    output = write_finalized(
        tmp_path, {"dt=2026-11-02": [*members_and_detector, failed(members_and_detector[0])]}, make_job(DETECTOR_JOB)
    )
    assert manifest(output)["runs"][-1]["rows"] == {"in": 31, "scored": 30, "failed": 1, "skipped": 0}
    finalize_job(make_job(ONLY_WORDS), str(output), Console(quiet=True))
    run = manifest(output)["runs"][-1]
    assert run["rows"] == {"in": 31, "scored": 18, "failed": 13, "skipped": 0} and run["sentences"] == 36
    assert run["statuses"] == {"ok": 18, "not_judged": 12, "no_context": 1}
    assert manifest(output)["finalized"]["dt=2026-11-02"]["scored"] == 18
    scored = read_rows(output)
    assert [row["status"] == "ok" for row in scored] == [row["score"] is not None for row in scored]
    results = all_commands(output)
    assert {name: code for name, (code, _) in results.items() if code} == {}
    assert "13 labeled but unscorable" in " ".join(results["report"][1].split())


def test_members_without_any_value(tmp_path: Path) -> None:
    output = write_finalized(tmp_path, {"": [add_detector(row, [None, None]) for row in rows()]}, make_job(DETECTOR_JOB))
    finalize_job(make_job(ONLY_WORDS), str(output), Console(quiet=True))
    run = manifest(output)["runs"][-1]
    assert run["rows"] == {"in": 12, "scored": 0, "failed": 12, "skipped": 0} and run["threshold"]["value"] is None
    assert all(code == 1 for name, (code, _) in all_commands(output).items() if name in ("calibrate", "flagged"))


def test_rows_with_status_ok_but_no_score(tmp_path: Path) -> None:
    """An earlier version left such rows."""
    output = write_finalized(tmp_path, {"": rows(30)}, job())
    path = output / "scored" / "part-0.parquet"
    table = pq.read_table(path)
    old_rows = [{**row, "score": None, "verdict": None} if i % 4 == 0 else row for i, row in enumerate(table.to_pylist())]
    pq.write_table(pa.Table.from_pylist(old_rows, schema=table.schema), path)
    results = all_commands(output)
    assert {name: code for name, (code, _) in results.items() if code} == {}
    assert "8 labeled but unscorable" in " ".join(results["report"][1].split())


UNUSUAL: dict[str, dict[str, Rows]] = {
    "no scored row": {"": [failed(row) for row in rows()]},
    "a partition without a scored row": {"dt=1": rows(24), "dt=2": [failed(row) for row in rows(24)]},
    "one row": {"": rows(1)},
    "one row and one failed": {"dt=1": rows(1), "dt=2": [failed(rows(1)[0])]},
    "many partitions": {f"dt={day:03d}": rows(3) for day in range(15)},
    "partitions with odd names": {"dt=%1B%5B31m": rows(6), "dt=[bold]x": rows(6), "dt=__HIVE_DEFAULT_PARTITION__": rows(6)},
    "all correct": {"": rows(12, label="correct")},
    "no label": {"": rows(12, label=None)},
    "an odd label": {"": rows(12, label="\x1b[31m[bold]maybe")},
    "same words": {"": rows(12, question=None, response="S.", context=["S."])},
    "no passage text": {"": rows(12, context=[None])},
}


SETTINGS = (job(), job(verdict={"threshold": {"quantile": 0}}), job(verdict={"aggregate": {"positive": "cdf"}}))


@pytest.mark.parametrize(("name", "settings"), list(zip(UNUSUAL, itertools.cycle(SETTINGS), strict=False)))
def test_unusual_outputs(name: str, settings: Job, tmp_path: Path) -> None:
    results = all_commands(write_finalized(tmp_path, UNUSUAL[name], settings))
    assert not any("\x1b" in text for _, text in results.values())


def test_equal_scores(tmp_path: Path) -> None:
    same = [add_detector(row, [0.5, 0.5]) for row in rows()]
    output = write_finalized(tmp_path, {"": same}, make_job(ONLY_WORDS))
    assert len({row["score"] for row in read_rows(output)}) == 1
    all_commands(output)


def test_the_outputs_own_files_are_not_overwritten(tmp_path: Path) -> None:
    output = write_finalized(tmp_path, {"": rows(12)}, job())
    run_command("evaluate", output, "--label", "label", *resamples(tmp_path, 0))
    (tmp_path / "notes.html").write_text("<p>precious</p>")
    (tmp_path / "link").symlink_to(output)
    (output / "frequencies.parquet").write_text("ours")
    (output / "judge").mkdir()
    files_before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    inside = (
        "manifest.json",
        "evaluation.json",
        "frequencies.parquet",
        "_lock",
        "_new",
        "stats/stats.json",
        "raw/x",
        "judge/j.json",
    )
    for name in [*inside, "../link/manifest.json", "scored/../manifest.json", "../notes.html", "judge/../../out/manifest.json"]:
        to = output / name
        for command in (("report", output, "--out", to), ("calibrate", output, "--target", "mean", "--out", to),
                        ("export", output, to, "--format", "messages")):  # fmt: skip
            code, text = run_command(*command)
            assert code == 1 and (str(to) in text or str(to.resolve()) in text), (command, text)
    assert "is a folder" in run_command("report", output, "--out", tmp_path)[1]
    files_after = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert files_after == files_before
    (tmp_path / "empty").touch()  # as mktemp leaves it
    assert run_command("report", output, "--out", tmp_path / "empty")[0] == 0
    for _ in range(2):  # a report may replace a report
        assert run_command("report", output, "--out", output / "page.html")[0] == 0
