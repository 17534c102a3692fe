"""Bad input ends a command with a clear message and exit code 1, without traceback or output."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from ragassay.jobs.cli.main import app
from tests.conftest import example_rows, write_logs

GOOD = example_rows(2)


def fails(code: str, *args: str | Path) -> str:
    result = CliRunner().invoke(app, [str(a) for a in args])
    print(result.output)  # whole, unlike in the message of an assertion
    assert result.exit_code == 1
    assert "Traceback" not in result.output
    assert f"\nerror[{code}]: " in f"\n{result.output}", "on a slow machine, a line of progress may precede it"
    return result.output


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    return write_logs(tmp_path / "logs" / "a.parquet", GOOD)


def job(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "job.yaml"
    path.write_text(text)
    return path


def test_missing_columns(tmp_path: Path) -> None:
    path = write_logs(tmp_path / "a.parquet", [{"query": "q", "answer": "a"}])
    message = fails("input.faults", "run", path, tmp_path / "out")
    assert all(name in message for name in ("'question'", "'context'", "'response'", "query, answer"))
    assert not (tmp_path / "out").exists()


def test_unreadable_file(tmp_path: Path, logs: Path) -> None:
    (logs.parent / "b.parquet").write_text("no parquet")
    assert "b.parquet" in fails("input.unreadable-files", "run", logs.parent, tmp_path / "out")


def test_only_unreadable_files(tmp_path: Path) -> None:
    (tmp_path / "b.parquet").write_text("no parquet")
    fails("input.no-readable-file", "run", tmp_path, tmp_path / "out", "--config", job(tmp_path, "input: {on_bad_file: skip}"))


def test_empty_input(tmp_path: Path, logs: Path) -> None:
    fails("input.missing", "run", tmp_path / "nowhere", tmp_path / "out")
    (tmp_path / "empty").mkdir()
    fails("input.no-logs", "run", tmp_path / "empty", tmp_path / "out")
    import pyarrow.parquet as pq

    pq.write_table(pq.read_table(logs).slice(0, 0), tmp_path / "empty" / "a.parquet")
    fails("input.no-rows", "run", tmp_path / "empty", tmp_path / "out")


def test_doubled_ids(tmp_path: Path) -> None:
    path = write_logs(tmp_path / "a.parquet", [{**r, "row_id": "same"} for r in GOOD])
    assert "'same'" in fails("input.repeated-ids", "run", path, tmp_path / "out")


@pytest.mark.parametrize(
    ("slm", "code", "named"),
    [
        ("{name: m, model: no/such-model}", "model.hub-unreachable", "'no/such-model'"),
        ("{name: m, model: ./nowhere}", "model.unknown", "nowhere"),
        ("{name: m, model: README.md}", "model.no-gguf", "README.md"),
        ("{name: m, model: tests}", "model.no-config", "tests"),
        ("{name: m, supported: [Jawohlja]}", "model.no-label-token", "Jawohlja"),
    ],
)
def test_unknown_model_and_labels(tmp_path: Path, logs: Path, slm: str, code: str, named: str) -> None:
    assert named in fails(code, "run", logs, tmp_path / "out", "--config", job(tmp_path, f"members: {{slms: [{slm}]}}"))


def test_broken_gguf(tmp_path: Path, logs: Path) -> None:
    (tmp_path / "m.gguf").write_bytes(b"GGUF but no more")
    config = job(tmp_path, f"members: {{slms: [{{name: m, model: {tmp_path}/m.gguf}}]}}")
    assert "m.gguf" in fails("model.unreadable-gguf", "run", logs, tmp_path / "out", "--config", config)


def test_unknown_splitter(tmp_path: Path, logs: Path) -> None:
    assert "'xx_no'" in fails(
        "config.splitter-not-installed",
        "run",
        logs,
        tmp_path / "out",
        "--config",
        job(tmp_path, "splitting: {pipeline: xx_no}"),
    )


def test_foreign_and_missing_output(tmp_path: Path, logs: Path) -> None:
    foreign = write_logs(tmp_path / "foreign" / "a.parquet", example_rows(1)).parent
    fails("output.foreign", "run", logs, foreign)
    fails("input.holds-output", "run", logs, logs.parent)
    fails("output.missing", "finalize", tmp_path / "nowhere")
    fails("output.missing", "fit", tmp_path / "nowhere")


def test_bad_job_file(tmp_path: Path, logs: Path) -> None:
    assert "thresold" in fails("config.invalid", "run", logs, tmp_path / "out", "--config", job(tmp_path, "thresold: 1"))


def test_too_many_gpus(tmp_path: Path, logs: Path) -> None:
    config = job(tmp_path, "members: {slms: [{name: m, replicas: {num_gpus: 3}}]}")
    fails("ray.too-few-resources", "run", logs, tmp_path / "out", "--config", config)


def test_version_and_completion() -> None:
    shown = CliRunner().invoke(app, ["--version"])
    assert shown.exit_code == 0 and shown.output.startswith("ragassay 0.")
    assert "--show-completion" in CliRunner().invoke(app, ["--help"], env={"COLUMNS": "200"}).output
