"""Swapped or mistaken arguments are recognized, and the error states the way out."""

from pathlib import Path

import pytest
from pyarrow.fs import LocalFileSystem

from ragassay.jobs.storage.output_marker import is_output_folder
from ragassay.schemas.manifest import Manifest
from tests.conftest import example_rows, write_logs
from tests.jobs.cli.test_cli_errors import fails


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    write_logs(tmp_path / "logs" / "dt=1" / "a.parquet", example_rows(3))
    return tmp_path / "logs"


@pytest.fixture
def output(tmp_path: Path) -> Path:
    write_logs(tmp_path / "audit" / "scored" / "a.parquet", example_rows(3))
    (tmp_path / "audit" / "manifest.json").write_text(Manifest().to_json())
    return tmp_path / "audit"


@pytest.mark.parametrize("command", ["run", "score"])
def test_an_output_in_place_of_the_logs_is_recognized(command: str, logs: Path, output: Path, tmp_path: Path) -> None:
    for target in (logs, output, tmp_path / "new"):
        text = fails("input.is-output", command, output, target)
        assert f"ragassay run LOGS {output}" in text


def test_an_output_is_no_input_of_plan_and_init(output: Path, tmp_path: Path) -> None:
    fails("input.is-output", "plan", output)
    fails("input.is-output", "init", output, "--out", tmp_path / "job.yaml")


def test_the_rows_of_an_output_are_no_input(output: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for part in ("scored", "scored/a.parquet", "scored/*.parquet"):
        text = fails("input.is-output", "run", output / part, tmp_path / "new")
        assert f"ragassay finalize {output}" in text
    monkeypatch.chdir(output)
    assert f"ragassay report {output}" in fails("input.is-output", "plan", "scored")


def test_a_folder_with_logs_and_an_output_is_refused(logs: Path, output: Path, tmp_path: Path) -> None:
    text = fails("input.holds-output", "run", tmp_path, tmp_path.parent / "elsewhere")
    assert str(output) in text


@pytest.mark.parametrize("command", ["report", "evaluate --label x", "finalize", "fit", "explain", "review"])
def test_logs_in_place_of_an_output_are_recognized(command: str, logs: Path) -> None:
    for path in (logs, next(logs.rglob("*.parquet"))):
        assert f"ragassay run {path} OUTPUT" in fails("output.is-logs", *command.split(), path)


@pytest.mark.parametrize("command", ["evaluate", "report", "estimate", "calibrate --target flag-f1"])
def test_labels_and_output_that_are_swapped_are_recognized(command: str, logs: Path, output: Path) -> None:
    text = fails("options.labels-are-output", *command.split(), next(logs.rglob("*.parquet")), "--labels", output)
    assert f"evaluate {output} --labels FILE" in text


def test_a_part_of_an_output_is_recognized(output: Path) -> None:
    assert f"name {output} instead" in fails("output.is-part", "report", output / "scored")


def test_a_folder_of_json_lines_does_not_become_an_output(logs: Path, tmp_path: Path) -> None:
    other = tmp_path / "other" / "a.jsonl"
    other.parent.mkdir()
    other.write_text('{"question": "q"}\n')
    fails("output.foreign", "run", logs, other.parent)


def test_a_manifest_of_another_program_makes_no_output(logs: Path, output: Path) -> None:
    (logs / "manifest.json").write_text('{"name": "a web application"}')
    assert is_output_folder(LocalFileSystem(), str(output))
    assert not is_output_folder(LocalFileSystem(), str(logs))
    assert not is_output_folder(LocalFileSystem(), str(logs / "dt=1"))
