"""Readers next to a run that writes: no reader waits, and none reads a mixture of two runs' verdicts."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import fsspec
import pyarrow.parquet as pq
import pytest
from fsspec.implementations.local import LocalFileSystem
from pyarrow import fs as pafs
from rich.console import Console

from ragassay.jobs.evaluation.labeled_responses import fit_all_partitions
from ragassay.jobs.evaluation.reference_answers import ask_reference_model
from ragassay.jobs.output import snapshot as snapshots
from ragassay.jobs.output.lock import lock_output
from ragassay.jobs.output.manifest import open_output, read_manifest, write_manifest
from ragassay.jobs.output.partitions import list_partition_files
from ragassay.jobs.output.snapshot import VERDICTS_ID_KEY, Snapshot, read_readable_manifest, read_snapshot
from ragassay.jobs.run import finalize_job
from ragassay.jobs.storage.folder import Folder, open_folder
from ragassay.jobs.verdicts.partition_stats import read_member_values, read_partition_stats
from ragassay.pipeline.errors import OutputRewritten
from ragassay.pipeline.slm.reference_judge import ReferenceJudge
from ragassay.schemas.manifest import Manifest
from tests.jobs.conftest import invoke, write_job
from tests.jobs.evaluation.conftest import DAYS, job
from tests.raises import fails, raises
from tests.without_ray import without_ray

THRESHOLDS = (0.2, 0.4, 0.6)

READERS: dict[str, list[str]] = {
    "evaluate": ["--label", "label", "--config", "{to}-job.yaml"],
    "compare": [],
    "drift": [],
    "estimate": ["--label", "label"],
    "calibrate": ["--label", "label", "--target", "supported-f1", "--out", "{to}/calibration.json"],
    "report": ["--out", "{to}/report.html"],
    "review": ["--sample", "5", "--out", "{to}/review.html"],
    "export": ["{to}/flagged.parquet", "--format", "flagged"],
}


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots, "PAUSE_SECONDS", 0.0)


def finalize(output: Path, quantile: float) -> None:
    """Run `finalize` while a reader reads."""
    with without_ray():
        finalize_job(job(verdict={"threshold": {"quantile": quantile}}), str(output), Console(quiet=True))


def thresholds(folder: Folder, between: Callable[[], None] = lambda: None) -> list[float]:
    """Read the threshold of each partition, file by file; call `between` after the first."""
    values = []
    for number, (path,) in enumerate(list_partition_files(folder, "scored").values()):
        if number == 1:
            between()
        values += pq.read_table(path, columns=["threshold"], filesystem=folder.fs)["threshold"].drop_null().unique().to_pylist()
    return values


def read(name: str, output: Path, to: Path) -> Any:
    to.mkdir(exist_ok=True)
    write_job(Path(f"{to}-job.yaml"), evaluation={"resamples": 0})
    return invoke(name, output, *(option.format(to=to) for option in READERS[name]))


@pytest.mark.parametrize("name", READERS)
def test_attack_a_reader_reads_while_a_run_holds_the_lock(scored: Path, tmp_path: Path, name: str) -> None:
    with lock_output(open_folder(str(scored)), "run"):
        done = read(name, scored, tmp_path / "to")
    assert done.returncode == 0, done.stderr


def test_attack_a_run_starts_and_ends_while_a_reader_reads(scored: Path) -> None:
    """The first attempt reads a mixture and is discarded; the second reads the new verdicts."""
    calls: list[list[float]] = []

    def work(folder: Snapshot, _: Manifest) -> list[float]:
        is_second = bool(calls)
        calls.append(thresholds(folder, lambda: None if is_second else finalize(scored, 0.6)))
        return calls[-1]

    values = read_snapshot(open_folder(str(scored)), work)
    assert len(calls) == 2 and len(set(calls[0])) == 2
    assert values == calls[1] and len(set(values)) == 1 and len(values) == DAYS


def test_attack_a_reader_overtaken_twice_fails(scored: Path) -> None:
    remaining = list(THRESHOLDS)
    with pytest.raises(OutputRewritten) as error:
        read_snapshot(open_folder(str(scored)), lambda folder, _: thresholds(folder, lambda: finalize(scored, remaining.pop())))
    assert error.value.fields["output"] == str(scored) and error.value.fields["partition"] == "dt=2026-11-02"
    assert len(remaining) == len(THRESHOLDS) - 2


def test_attack_an_error_from_a_replaced_file_is_retried(scored: Path) -> None:
    calls = []

    def work(folder: Snapshot, _: Manifest) -> int:
        calls.append(1)
        if len(calls) == 1:
            finalize(scored, 0.6)
            raise IndexError("no such row group")
        return len(calls)

    assert read_snapshot(open_folder(str(scored)), work) == 2


def test_an_error_of_the_reader_is_raised_at_once(scored: Path) -> None:
    calls = []

    def work(*_: object) -> None:
        calls.append(1)
        raise IndexError("its own")

    with pytest.raises(IndexError, match="its own"):
        read_snapshot(open_folder(str(scored)), work)
    assert len(calls) == 1


@pytest.fixture
def interrupted(scored: Path, tmp_path: Path) -> Path:
    """An output whose `finalize` under another threshold was killed after half of the partitions."""
    other = Path(shutil.copytree(scored, tmp_path / "other"))
    finalize(other, 0.6)
    for number, path in enumerate(sorted((scored / "scored").rglob("*.parquet"))):
        if number % 2:
            shutil.copy(other / path.relative_to(scored), path)
    return scored


@pytest.mark.parametrize("name", READERS)
def test_attack_no_reader_shows_half_of_an_interrupted_run(interrupted: Path, tmp_path: Path, name: str) -> None:
    files_before = {path: path.read_bytes() for path in interrupted.rglob("*") if path.is_file()}
    done = read(name, interrupted, tmp_path / "to")
    fails(done, "output.rewritten", "dt=2026-11-03")
    assert not done.stdout.strip()
    assert {path: path.read_bytes() for path in interrupted.rglob("*") if path.is_file()} == files_before
    assert not list((tmp_path / "to").iterdir())
    finalize(interrupted, 0.6)
    assert read(name, interrupted, tmp_path / "to").returncode == 0


def test_a_partition_missing_from_the_manifest_is_not_read(scored: Path) -> None:
    """A run killed between the verdicts of its new partition and the manifest leaves this state."""
    new = scored / "scored" / "dt=2026-12-01" / "part-0.parquet"
    new.parent.mkdir()
    table = pq.read_table(scored / "scored" / "dt=2026-11-02" / "part-0.parquet", partitioning=None)
    pq.write_table(table.replace_schema_metadata({VERDICTS_ID_KEY: b"a run under way"}), new)
    names = read_snapshot(open_folder(str(scored)), lambda folder, _: list(list_partition_files(folder, "scored")))
    assert len(names) == DAYS and "dt=2026-12-01" not in names


def test_the_fit_of_a_running_run_is_not_used_before_its_verdicts(scored: Path) -> None:
    output = open_folder(str(scored))
    manifest = read_manifest(output)
    latest = manifest.runs[-1]
    assert latest.fit and latest.threshold
    running = replace(latest, run_id="a run under way", finished=None, fit=replace(latest.fit, source="new"))
    manifest.runs.append(running)
    write_manifest(output, manifest)
    verdicts = read_readable_manifest(output)
    assert verdicts.last_fit == latest.fit and [run.run_id for run in verdicts.runs] == [run.run_id for run in manifest.runs]
    files = dict.fromkeys(manifest.verdict_files, running.run_id)  # its verdicts exist, but its judge is still running
    write_manifest(output, replace(manifest, verdict_files=files))
    assert read_readable_manifest(output).last_fit == running.fit


def test_moments_that_cover_more_rows_than_verdicts_are_refused(scored: Path) -> None:
    stats = scored / "stats" / "dt=2026-11-05" / "stats.json"
    text = stats.read_text()
    assert '"ok": 60' in text
    stats.write_text(text.replace('"ok": 60', '"ok": 61'))
    with pytest.raises(OutputRewritten) as error:
        read_snapshot(
            open_folder(str(scored)), lambda folder, manifest: read_partition_stats(folder, read_member_values(manifest))
        )
    assert error.value.fields["partition"] == "dt=2026-11-05"
    stats.write_text(text)
    assert read_snapshot(
        open_folder(str(scored)), lambda folder, manifest: fit_all_partitions(folder, read_member_values(manifest))
    )


def test_explanations_being_written_are_not_read(scored: Path) -> None:
    folder = scored / "explanations" / "strategy=vanilla"
    folder.mkdir(parents=True)
    (folder / "whole-0.parquet").write_bytes(b"")
    (folder / "half-0.parquet").write_bytes(b"PAR1 cut o")
    (scored / "_explaining").mkdir()
    (scored / "_explaining" / "half.pending.parquet").write_bytes(b"")
    (scored / "_explaining" / "whole.parquet").write_bytes(b"")
    names = read_snapshot(
        open_folder(str(scored)), lambda snapshot, _: [info.base_name for info in snapshot.list("explanations", ".parquet")]
    )
    assert names == ["whole-0.parquet"]


def test_a_reader_writes_only_results_of_one_snapshot(scored: Path) -> None:
    """An evaluation that two runs overtake writes no evaluation.json."""
    remaining = list(THRESHOLDS)

    def work(folder: Snapshot, _: Manifest) -> None:
        folder.write("evaluation.json", "half and half")
        finalize(scored, remaining.pop())

    with pytest.raises(OutputRewritten):
        read_snapshot(open_folder(str(scored)), work)
    assert not (scored / "evaluation.json").exists()


class ReadOnly(LocalFileSystem):  # type: ignore[misc]
    """A file system that can be read but not written."""

    def _open(self, path: str, mode: str = "rb", *more: Any, **options: Any) -> Any:
        if mode != "rb":
            raise PermissionError(13, "Permission denied", path)
        return super()._open(path, mode, *more, **options)

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        if not self.exists(path):
            raise PermissionError(13, "Permission denied", path)

    def mkdir(self, path: str, create_parents: bool = True, **_: Any) -> None:
        self.makedirs(path)

    def _denied(self, path: str, *_: Any, **__: Any) -> None:
        raise PermissionError(13, "Permission denied", path)

    rm = rm_file = rmdir = mv = touch = _denied


@pytest.fixture
def read_only(scored: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    fsspec.register_implementation("readonly", ReadOnly, clobber=True)
    fs = pafs.PyFileSystem(pafs.FSSpecHandler(ReadOnly(skip_instance_cache=True)))
    folder = Folder(fs, str(scored), str(scored))
    with pytest.raises(PermissionError):
        folder.write("probe", "")
    for module in ("cli.read_output", "output.manifest"):
        monkeypatch.setattr(f"ragassay.jobs.{module}.open_output", lambda _: folder)
    return scored


@pytest.mark.parametrize("name", READERS)
def test_attack_a_read_only_output_can_be_read(read_only: Path, tmp_path: Path, name: str) -> None:
    done = read(name, read_only, tmp_path / "to")
    assert done.returncode == 0, done.stderr
    kept = {"evaluate": "evaluation.json", "estimate": "estimate.json"}
    assert ("was not written" in done.stdout) == (name in kept) and kept.get(name, "") in done.stdout
    assert not {path.name for path in read_only.iterdir()} & {*kept.values(), "_lock", "report.html", "review.html"}


@pytest.mark.parametrize("name", ["report", "review", "calibrate"])
def test_writing_into_a_read_only_output_fails(read_only: Path, name: str) -> None:
    options = [option for option in READERS[name] if option != "--out" and "{to}" not in option]
    done = invoke(name, read_only, *options)
    fails(done, "options.out-not-writable", "Permission denied")


def test_a_judge_is_not_asked_if_its_answers_cannot_be_written(scored: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ragassay.jobs.evaluation import reference_answers
    from ragassay.jobs.evaluation.labeled_responses import load_labeled
    from ragassay.jobs.evaluation.labels import LabelSource

    folder = open_folder(str(scored))
    rows = load_labeled(folder, read_member_values(read_manifest(folder)), LabelSource("label"), texts=True)
    monkeypatch.setattr(reference_answers, "judge_rows", lambda *_: pytest.fail("the judge was asked"))
    fs = pafs.PyFileSystem(pafs.FSSpecHandler(ReadOnly(skip_instance_cache=True)))
    judge = ReferenceJudge(name="judge", model="m", base_url="http://127.0.0.1:1/v1")
    with raises("evaluate.answers-not-writable"):
        ask_reference_model(judge, rows, Folder(fs, str(scored), str(scored)))
    assert open_output(str(scored)).read("judge/judge.json") is None
