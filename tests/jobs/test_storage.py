import multiprocessing
import os
import signal
import time
from pathlib import Path

import pytest

from jobs.storage import locked, open_file, open_folder
from pipeline.errors import InputError, OutputError


def hold(path: str) -> None:
    with locked(open_folder(path)):
        (Path(path) / "held").touch()
        time.sleep(60)


def test_a_second_run_is_refused_and_a_killed_one_leaves_no_lock(tmp_path: Path) -> None:
    process = multiprocessing.get_context("spawn").Process(target=hold, args=(str(tmp_path),))
    process.start()
    while not (tmp_path / "held").exists():
        time.sleep(0.05)
    with pytest.raises(OutputError, match="in use by another run"), locked(open_folder(str(tmp_path))):
        pass
    assert process.pid
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    with locked(open_folder(str(tmp_path))):
        pass


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(OutputError, match="can't be written"), locked(open_folder(str(tmp_path / "file" / "out"))):
        pass


def test_writes_are_whole_and_read_back(tmp_path: Path) -> None:
    folder = open_folder(str(tmp_path))
    assert folder.read("a/b.json") is None
    folder.write("a/b.json", "ü")
    assert folder.read("a/b.json") == "ü"
    assert [p.name for p in (tmp_path / "a").iterdir()] == ["b.json"]


def test_unknown_scheme_is_named() -> None:
    with pytest.raises(InputError, match="ftp://x"):
        open_folder("ftp://x/y")


def test_the_query_of_a_uri_stays_with_the_store() -> None:
    folder, name = open_file("s3://bkt/d/cal.json?endpoint_override=http://h:9000&region=us-east-1")
    assert (folder.root, name) == ("bkt/d", "cal.json")
    assert folder.uri_of(name) == "s3://bkt/d/cal.json?endpoint_override=http://h:9000&region=us-east-1"
    with pytest.raises(InputError, match="names no file"):
        open_file("out/")


def test_a_file_by_its_path(tmp_path: Path) -> None:
    folder, name = open_file(str(tmp_path / "a.json"))
    folder.write(name, "x")
    assert (tmp_path / "a.json").read_text() == "x" and folder.uri_of(name) == str(tmp_path / "a.json")
