"""OUTPUT and INPUT must not overlap: the first run reports it before it writes anything."""

from pathlib import Path

import pytest
from pyarrow import fs as pafs

from ragassay.jobs.config.input import Columns
from ragassay.jobs.input import check_logs, check_no_overlap, find_logs
from ragassay.jobs.input.files import LogFile, Logs
from ragassay.jobs.storage.folder import Folder, open_folder
from tests.conftest import example_rows, write_logs
from tests.jobs.conftest import invoke, write_job
from tests.raises import fails, raises


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write_logs(tmp_path / "logs" / "dt=1" / "a.parquet", example_rows(1))
    write_logs(tmp_path / "in" / "logs" / "east" / "dt=1" / "a.parquet", example_rows(1))
    (tmp_path / "link").symlink_to("logs")
    (tmp_path / "far").mkdir()
    (tmp_path / "logs" / "far").symlink_to(tmp_path / "far")
    return tmp_path


def check_overlap(root: Path, source: str, output: str) -> None:
    logs = find_logs(f"{root}/{source}")
    check_logs(logs, Columns(), needs_question=True)
    check_no_overlap(logs, open_folder(output.replace("ROOT", str(root)) if "ROOT" in output else f"{root}/{output}"))


@pytest.mark.parametrize(
    ("source", "output"),
    [
        ("logs", "logs"),
        ("logs", "logs/audit"),
        ("logs", "logs/dt=1/audit"),
        ("logs", "link/audit"),
        ("link", "logs/audit"),
        ("logs", "logs/dt=1/../audit"),
        ("logs", "far/audit"),
        ("logs", "file://ROOT/logs/audit"),
        ("logs/**/*.parquet", "logs/audit"),
        ("**/*.parquet", "audit"),
        ("logs/dt=1", "logs"),
        ("logs/dt=1/a.parquet", "."),
        ("link", "logs/dt=1"),
        ("logs/**/[ab]*.parquet", "logs/audit"),
        ("logs/**/a.parquet", "logs/x/y"),
        ("logs/*", "logs/audit"),
        ("in/*/*/dt=1/[ab].parquet", "in/audit"),
        ("logs/dt=1/a.parquet", "link"),
    ],
)
def test_an_overlapping_output_is_refused(root: Path, source: str, output: str) -> None:
    with raises("input.holds-output", "output.inside-input"):
        check_overlap(root, source, output)


@pytest.mark.parametrize(
    ("source", "output"),
    [
        ("logs", "audit"),
        ("logs", "logs-audit"),
        ("logs", "logs/_audit"),
        ("logs", "logs/.work/audit"),
        ("logs/dt=1", "logs/audit"),
        ("logs/dt=*/a.parquet", "logs/audit"),
        ("logs/dt=1/a.parquet", "logs/dt=1/audit"),
        ("*/*/*.parquet", "audit"),
        ("logs/dt=1/**/a.parquet", "logs/audit"),
        ("logs/d*", "logs/audit"),
        ("logs/*/a.parquet", "logs/audit"),
    ],
)
def test_an_output_that_the_input_does_not_read_is_accepted(root: Path, source: str, output: str) -> None:
    check_overlap(root, source, output)


def test_overlap_is_checked_by_prefix_in_an_object_store() -> None:
    fs = pafs._MockFileSystem()
    file = LogFile("a.parquet", "mock://b/logs/a.parquet", "b/logs/a.parquet", 1, ())
    logs = Logs("mock://b/logs", fs, [file], folders={"b/logs": "b/logs"})
    for path in ("b/logs", "b/logs/out", "b"):
        with raises("input.holds-output", "output.inside-input"):
            check_no_overlap(logs, Folder(fs, path, f"mock://{path}"))
    for path in ("b/logs2", "b/out", "b/logs/_out"):
        check_no_overlap(logs, Folder(fs, path, f"mock://{path}"))


def test_the_first_run_refuses_an_overlap_and_writes_nothing(root: Path) -> None:
    job = write_job(root / "job.yaml", members={"slms": [], "detectors": [{"name": "novelty", "kind": "novelty"}]})
    done = invoke("run", root / "logs", root / "logs" / "audit", "--config", job)
    fails(done, "output.inside-input")
    assert not (root / "logs" / "audit").exists()
