"""Entries of finished input files leave the manifest, and nothing that depends on them changes."""

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
from ragassay.jobs.output import manifest_shards
from ragassay.jobs.output.manifest import read_manifest, write_manifest
from ragassay.jobs.output.manifest_shards import SHARD_FOLDER, find_sealed_entries, seal_entries
from ragassay.jobs.report.details.record import describe_files
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
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seal from two files on, two entries per shard."""
    monkeypatch.setattr(manifest_shards, "SEAL_THRESHOLD", 2)
    monkeypatch.setattr(manifest_shards, "SHARD_ENTRIES", 2)


def finish_run(output: Path, run_id: str) -> Manifest:
    """Seal the finished files, as a run does at its end."""
    folder = open_folder(str(output))
    manifest = read_manifest(folder)
    files = {number: replace(file, finalized=file.state == SCORED) for number, file in manifest.files.items()}
    manifest = seal_entries(folder, replace(manifest, files=files), run_id)
    write_manifest(folder, manifest)
    return manifest


def list_shards(output: Path) -> list[str]:
    return sorted(path.name for path in (output / SHARD_FOLDER).glob("*.parquet"))


@pytest.mark.usefixtures("small_shards")
def test_sealed_files_are_known_by_path_and_by_uri_and_numbers_continue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs, output = tmp_path / "logs", tmp_path / "out"
    for name in "abcde":
        write_logs(logs / "dt=1" / f"{name}.parquet", example_rows(2))
    (tmp_path / "link").symlink_to("logs")
    assert len(register(logs, output)) == 5
    manifest = finish_run(output, "r1")
    assert (manifest.files, manifest.sealed.files, manifest.sealed.rows) == ({}, 5, {"dt=1": 10})
    assert list_shards(output) == ["r1-0.parquet", "r1-1.parquet", "r1-2.parquet"] == manifest.sealed.shards
    named: list[Path | str] = [logs, tmp_path / "link", f"file://{logs}", logs / "dt=1", logs / "dt=1" / "c.parquet"]
    for uri in named:
        assert register(uri, output) == [], uri
    write_logs(logs / "dt=2" / "a.parquet", example_rows(3))
    assert register(tmp_path / "link", output) == ["dt=2/a.parquet"]
    assert list(read_manifest(open_folder(str(output))).files) == [5]
    assert finish_run(output, "r2").sealed.files == 5  # one file is not enough for another shard
    monkeypatch.setattr(manifest_shards, "canonical_uri", pytest.fail)
    assert register(logs, output) == []  # if every path is known, no link is resolved


@pytest.mark.usefixtures("small_shards")
def test_a_changed_sealed_file_is_refused_and_a_touched_one_is_reported_once(tmp_path: Path) -> None:
    logs, output = tmp_path / "logs", tmp_path / "out"
    row = {"question": "q", "context": "c", "response": "It opens at 8."}
    for name in "abc":
        write_logs(logs / f"{name}.parquet", [row])
    register(logs, output)
    before = finish_run(output, "r1")
    os.utime(logs / "b.parquet", ns=(10**9, 10**9))
    assert register(logs, output) == []
    manifest = read_manifest(open_folder(str(output)))
    assert manifest.runs[-1].files_touched == [str(logs / "b.parquet")]
    assert (list(manifest.files), manifest.sealed.files, manifest.count_scored_rows()) == ([1], 2, before.count_scored_rows())
    assert register(logs, output) == []
    assert read_manifest(open_folder(str(output))).runs[-1].files_touched == []
    os.utime(logs / "a.parquet", ns=(10**9, 10**9))
    register(logs, output)
    assert finish_run(output, "r2").sealed.files == 3 and register(logs, output) == []  # sealed again: the newer entries count
    manifest = read_manifest(open_folder(str(output)))
    assert manifest.runs[-1].files_touched == [] and not manifest.files and manifest.registered_files == 3
    write_logs(logs / "a.parquet", [{**row, "response": "It opens at 9."}])
    with raises("input.changed-file", note=", although its size is the same"):
        register(logs, output)


@pytest.mark.usefixtures("small_shards")
def test_a_crash_between_shard_and_manifest_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    logs, output = tmp_path / "logs", tmp_path / "out"
    for name in "abc":
        write_logs(logs / f"{name}.parquet", example_rows(2))
    register(logs, output)

    def die(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("tests.jobs.output.test_manifest_shards.write_manifest", die)
    with pytest.raises(KeyboardInterrupt):
        finish_run(output, "r1")
    monkeypatch.undo()
    monkeypatch.setattr(manifest_shards, "SEAL_THRESHOLD", 2)
    assert list_shards(output) == ["r1-0.parquet", "r1-1.parquet"]
    manifest = read_manifest(open_folder(str(output)))
    assert list(manifest.files) == [0, 1, 2] and manifest.sealed.files == 0
    assert register(logs, output) == []
    assert finish_run(output, "r2").sealed.shards == list_shards(output) == ["r2-0.parquet"]
    assert register(logs, output) == []


@pytest.mark.usefixtures("small_shards")
def test_a_missing_shard_is_named(tmp_path: Path) -> None:
    for name in "ab":
        write_logs(tmp_path / "logs" / f"{name}.parquet", example_rows(2))
    register(tmp_path / "logs", tmp_path / "out")
    finish_run(tmp_path / "out", "r1")
    shutil.rmtree(tmp_path / "out" / SHARD_FOLDER)
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
@given(runs=st.lists(st.lists(files, max_size=6), min_size=1, max_size=4), seal_at=st.integers(1, 4))
def test_sums_and_entries_equal_those_of_an_unsealed_manifest(
    tmp_path_factory: pytest.TempPathFactory, runs: list[list[InputFile]], seal_at: int
) -> None:
    folder = open_folder(str(tmp_path_factory.mktemp("sealed")))
    plain, manifest = Manifest(), Manifest()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manifest_shards, "SEAL_THRESHOLD", seal_at)
        patch.setattr(manifest_shards, "SHARD_ENTRIES", 2)
        for number, new in enumerate(runs):
            for file in new:
                assert manifest.registered_files == plain.registered_files
                manifest.files[manifest.registered_files] = plain.files[plain.registered_files] = file
            manifest = Manifest.from_json(seal_entries(folder, manifest, f"r{number}").to_json())
    assert manifest.count_scored_rows() == plain.count_scored_rows()
    assert describe_files(manifest) == describe_files(plain)
    back = read_all_entries(folder, manifest)
    assert back | manifest.files == plain.files and not back.keys() & manifest.files.keys()


def read_all_entries(folder: Folder, manifest: Manifest) -> dict[int, InputFile]:
    """Read all sealed entries."""
    all_entries: dict[int, InputFile] = {}
    for shard in manifest_shards._read_shards(folder, manifest):
        all_entries |= manifest_shards._to_entries(shard)
    return all_entries


@pytest.mark.usefixtures("small_shards")
def test_verdicts_are_the_same_before_and_after_sealing(tmp_path: Path) -> None:
    output = write_output(tmp_path / "out", labeled_days(), decide_job())
    folder = open_folder(str(output))
    before = read_manifest(folder)
    assert before.sealed.files == 6 and before.files == {}  # sealed by the run that finalized them
    with without_ray():
        run = finalize_job(decide_job(), str(output), Console(quiet=True))
    assert run.rows["in"] == before.count_scored_rows().total() == sum(len(rows) for rows in labeled_days().values())
    assert (run.flagged, run.errors) == (before.runs[-1].flagged, before.runs[-1].errors)
    assert read_manifest(folder).finalized.keys() == before.finalized.keys()


def test_only_entries_of_the_input_are_read_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(manifest_shards, "SEAL_THRESHOLD", 2)
    for name in "abcd":
        write_logs(tmp_path / "logs" / f"{name}.parquet", example_rows(1))
    register(tmp_path / "logs", tmp_path / "out")
    manifest = finish_run(tmp_path / "out", "r1")
    files_in_input = find_logs(str(tmp_path / "logs" / "c.parquet")).files
    sealed_entries = find_sealed_entries(open_folder(str(tmp_path / "out")), manifest, files_in_input)
    assert {number: file.path for number, file in sealed_entries.items()} == {2: "c.parquet"}
