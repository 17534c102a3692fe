"""Input files that are done with leave the manifest, and nothing that depends on them changes."""

import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from ragassay.jobs.input import find_logs
from ragassay.jobs.output import sealed
from ragassay.jobs.output.manifest import read_manifest, write_manifest
from ragassay.jobs.output.sealed import FILES, seal, sealed_among
from ragassay.jobs.report.record import describe_files
from ragassay.jobs.run import finalize_job
from ragassay.jobs.storage.folder import Folder, open_folder
from ragassay.schemas.manifest import PENDING, SCORED, UNREADABLE, InputFile, Manifest
from tests.conftest import example_rows, write_logs
from tests.jobs.evaluation.conftest import job as decide_job
from tests.jobs.evaluation.conftest import labeled_days, write_output
from tests.jobs.scoring.test_register import register
from tests.raises import raises
from tests.without_ray import without_ray


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seal two files and more, two to a shard."""
    monkeypatch.setattr(sealed, "SEAL_AT", 2)
    monkeypatch.setattr(sealed, "SHARD_FILES", 2)


def done(output: Path, run_id: str) -> Manifest:
    """End a night as a run does."""
    folder = open_folder(str(output))
    manifest = read_manifest(folder)
    judged = {number: replace(file, finalized=file.state == SCORED) for number, file in manifest.files.items()}
    manifest = seal(folder, replace(manifest, files=judged), run_id)
    write_manifest(folder, manifest)
    return manifest


def shards(output: Path) -> list[str]:
    return sorted(path.name for path in (output / FILES).glob("*.parquet"))


@pytest.mark.usefixtures("few")
def test_sealed_files_are_known_by_path_and_by_place_and_numbers_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    logs, output = tmp_path / "logs", tmp_path / "out"
    for name in "abcde":
        write_logs(logs / "dt=1" / f"{name}.parquet", example_rows(2))
    (tmp_path / "link").symlink_to("logs")
    assert len(register(logs, output)) == 5
    manifest = done(output, "r1")
    assert (manifest.files, manifest.sealed.files, manifest.sealed.rows) == ({}, 5, {"dt=1": 10})
    assert shards(output) == ["r1-0.parquet", "r1-1.parquet", "r1-2.parquet"] == manifest.sealed.shards
    named: list[Path | str] = [logs, tmp_path / "link", f"file://{logs}", logs / "dt=1", logs / "dt=1" / "c.parquet"]
    for place in named:
        assert register(place, output) == [], place
    write_logs(logs / "dt=2" / "a.parquet", example_rows(3))
    assert register(tmp_path / "link", output) == ["dt=2/a.parquet"]
    assert list(read_manifest(open_folder(str(output))).files) == [5]
    assert done(output, "r2").sealed.files == 5  # one is not enough for another shard
    monkeypatch.setattr(sealed, "same_place", pytest.fail)
    assert register(logs, output) == []  # where every path is known, no link is resolved


@pytest.mark.usefixtures("few")
def test_a_sealed_file_that_changed_is_refused_and_one_that_was_touched_is_told_once(tmp_path: Path) -> None:
    logs, output = tmp_path / "logs", tmp_path / "out"
    row = {"question": "q", "context": "c", "response": "It opens at 8."}
    for name in "abc":
        write_logs(logs / f"{name}.parquet", [row])
    register(logs, output)
    before = done(output, "r1")
    os.utime(logs / "b.parquet", ns=(10**9, 10**9))
    assert register(logs, output) == []
    manifest = read_manifest(open_folder(str(output)))
    assert manifest.runs[-1].files_touched == [str(logs / "b.parquet")]
    assert (list(manifest.files), manifest.sealed.files, manifest.count_scored_rows()) == ([1], 2, before.count_scored_rows())
    assert register(logs, output) == []
    assert read_manifest(open_folder(str(output))).runs[-1].files_touched == []
    os.utime(logs / "a.parquet", ns=(10**9, 10**9))
    register(logs, output)
    assert done(output, "r2").sealed.files == 3 and register(logs, output) == []  # sealed anew: the newer entries count
    manifest = read_manifest(open_folder(str(output)))
    assert manifest.runs[-1].files_touched == [] and not manifest.files and manifest.registered_files == 3
    write_logs(logs / "a.parquet", [{**row, "response": "It opens at 9."}])
    with raises("input.changed-file", though=", though as large"):
        register(logs, output)


@pytest.mark.usefixtures("few")
def test_a_crash_between_shard_and_manifest_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    logs, output = tmp_path / "logs", tmp_path / "out"
    for name in "abc":
        write_logs(logs / f"{name}.parquet", example_rows(2))
    register(logs, output)

    def die(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("tests.jobs.output.test_sealed.write_manifest", die)
    with pytest.raises(KeyboardInterrupt):
        done(output, "r1")
    monkeypatch.undo()
    monkeypatch.setattr(sealed, "SEAL_AT", 2)
    assert shards(output) == ["r1-0.parquet", "r1-1.parquet"]
    manifest = read_manifest(open_folder(str(output)))
    assert list(manifest.files) == [0, 1, 2] and manifest.sealed.files == 0
    assert register(logs, output) == []
    assert done(output, "r2").sealed.shards == shards(output) == ["r2-0.parquet"]
    assert register(logs, output) == []


@pytest.mark.usefixtures("few")
def test_a_missing_shard_is_named(tmp_path: Path) -> None:
    for name in "ab":
        write_logs(tmp_path / "logs" / f"{name}.parquet", example_rows(2))
    register(tmp_path / "logs", tmp_path / "out")
    done(tmp_path / "out", "r1")
    shutil.rmtree(tmp_path / "out" / FILES)
    with raises("output.unreadable-shard", path=f"{tmp_path}/out/_files/r1-0.parquet"):
        register(tmp_path / "logs", tmp_path / "out")


files = st.builds(
    InputFile,
    path=st.text("abc/=é ", min_size=1, max_size=6),
    uri=st.text("abc/é ", min_size=1, max_size=6).map("s3://".__add__),
    size=st.integers(0, 2**62),
    rows=st.integers(0, 9),
    partition=st.sampled_from(["", "dt=1", "dt=2"]),
    state=st.sampled_from([SCORED, SCORED, PENDING, UNREADABLE]),
    digest=st.none() | st.text("0123456789abcdef", min_size=4, max_size=4),
    finalized=st.booleans(),
    mtime=st.none() | st.integers(0, 2**62),
)


@settings(deadline=None)
@given(nights=st.lists(st.lists(files, max_size=6), min_size=1, max_size=4), seal_at=st.integers(1, 4))
def test_sums_and_entries_are_those_of_a_manifest_that_keeps_all(
    tmp_path_factory: pytest.TempPathFactory, nights: list[list[InputFile]], seal_at: int
) -> None:
    folder = open_folder(str(tmp_path_factory.mktemp("sealed")))
    plain, manifest = Manifest(), Manifest()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sealed, "SEAL_AT", seal_at)
        patch.setattr(sealed, "SHARD_FILES", 2)
        for number, new in enumerate(nights):
            for file in new:
                assert manifest.registered_files == plain.registered_files
                manifest.files[manifest.registered_files] = plain.files[plain.registered_files] = file
            manifest = Manifest.from_json(seal(folder, manifest, f"r{number}").to_json())
    assert manifest.count_scored_rows() == plain.count_scored_rows()
    assert describe_files(manifest) == describe_files(plain)
    back = entries(folder, manifest)
    assert back | manifest.files == plain.files and not back.keys() & manifest.files.keys()


def entries(folder: Folder, manifest: Manifest) -> dict[int, InputFile]:
    """All that is sealed."""
    found: dict[int, InputFile] = {}
    for shard in sealed._shards(folder, manifest):
        found |= sealed._entries(shard)
    return found


@pytest.mark.usefixtures("few")
def test_verdicts_are_the_same_before_and_behind_the_seal(tmp_path: Path) -> None:
    output = write_output(tmp_path / "out", labeled_days(), decide_job())
    folder = open_folder(str(output))
    before = read_manifest(folder)
    assert before.sealed.files == 6 and before.files == {}  # sealed by the run that judged them
    with without_ray():
        run = finalize_job(decide_job(), str(output), Console(quiet=True))
    assert run.rows["in"] == before.count_scored_rows().total() == sum(len(rows) for rows in labeled_days().values())
    assert (run.flagged, run.errors) == (before.runs[-1].flagged, before.runs[-1].errors)
    assert read_manifest(folder).finalized.keys() == before.finalized.keys()


def test_only_what_an_input_names_is_read_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sealed, "SEAL_AT", 2)
    for name in "abcd":
        write_logs(tmp_path / "logs" / f"{name}.parquet", example_rows(1))
    register(tmp_path / "logs", tmp_path / "out")
    manifest = done(tmp_path / "out", "r1")
    asked = find_logs(str(tmp_path / "logs" / "c.parquet")).files
    found = sealed_among(open_folder(str(tmp_path / "out")), manifest, asked)
    assert {number: file.path for number, file in found.items()} == {2: "c.parquet"}
