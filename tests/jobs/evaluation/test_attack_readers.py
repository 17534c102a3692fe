"""Readers beside a run that writes: nobody waits for a reader, and nobody reads half of a run's verdicts."""

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

from ragassay.jobs.evaluation.evaluate import ask_judge
from ragassay.jobs.evaluation.labelled import fits_of_all, member_values_of, stats_of
from ragassay.jobs.output import snapshot as snapshots
from ragassay.jobs.output.lock import locked
from ragassay.jobs.output.manifest import existing_output, read_manifest, write_manifest
from ragassay.jobs.output.partitions import partitions
from ragassay.jobs.output.snapshot import VERDICTS_ID, Snapshot, read_snapshot, read_verdicts
from ragassay.jobs.run import finalize_job
from ragassay.jobs.storage.folder import Folder, open_folder
from ragassay.pipeline.errors import OutputRewritten
from ragassay.pipeline.slm.judge import Judge
from ragassay.schemas.manifest import Manifest
from tests.jobs.conftest import here, write_job
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
    """A whole run of `finalize`, while a reader reads."""
    with without_ray():
        finalize_job(job(verdict={"threshold": {"quantile": quantile}}), str(output), Console(quiet=True))


def thresholds(folder: Folder, between: Callable[[], None] = lambda: None) -> list[float]:
    """The threshold of each partition, file by file; something happens after the first."""
    found = []
    for number, (path,) in enumerate(partitions(folder, "scored").values()):
        if number == 1:
            between()
        found += pq.read_table(path, columns=["threshold"], filesystem=folder.fs)["threshold"].drop_null().unique().to_pylist()
    return found


def read(name: str, output: Path, to: Path) -> Any:
    to.mkdir(exist_ok=True)
    write_job(Path(f"{to}-job.yaml"), evaluation={"resamples": 0})
    return here(name, output, *(option.format(to=to) for option in READERS[name]))


@pytest.mark.parametrize("name", READERS)
def test_attack_a_reader_reads_while_a_run_holds_the_lock(scored: Path, tmp_path: Path, name: str) -> None:
    with locked(open_folder(str(scored)), "run"):
        done = read(name, scored, tmp_path / "to")
    assert done.returncode == 0, done.stderr


def test_attack_a_run_starts_and_ends_while_a_reader_reads(scored: Path) -> None:
    """The second attempt reads the new verdicts; the first, half old and half new, is not shown."""
    calls: list[list[float]] = []

    def work(folder: Snapshot, _: Manifest) -> list[float]:
        again = bool(calls)
        calls.append(thresholds(folder, lambda: None if again else finalize(scored, 0.6)))
        return calls[-1]

    found = read_snapshot(open_folder(str(scored)), work)
    assert len(calls) == 2 and len(set(calls[0])) == 2
    assert found == calls[1] and len(set(found)) == 1 and len(found) == DAYS


def test_attack_a_reader_that_is_overtaken_twice_says_so(scored: Path) -> None:
    left = list(THRESHOLDS)
    with pytest.raises(OutputRewritten) as error:
        read_snapshot(open_folder(str(scored)), lambda folder, _: thresholds(folder, lambda: finalize(scored, left.pop())))
    assert error.value.fields["output"] == str(scored) and error.value.fields["partition"] == "dt=2026-11-02"
    assert len(left) == len(THRESHOLDS) - 2


def test_attack_an_error_that_a_replaced_file_made_is_not_the_readers(scored: Path) -> None:
    calls = []

    def work(folder: Snapshot, _: Manifest) -> int:
        calls.append(1)
        if len(calls) == 1:
            finalize(scored, 0.6)
            raise IndexError("no such row group")
        return len(calls)

    assert read_snapshot(open_folder(str(scored)), work) == 2


def test_an_error_of_the_reader_itself_is_raised_at_once(scored: Path) -> None:
    calls = []

    def work(*_: object) -> None:
        calls.append(1)
        raise IndexError("its own")

    with pytest.raises(IndexError, match="its own"):
        read_snapshot(open_folder(str(scored)), work)
    assert len(calls) == 1


@pytest.fixture
def broken_off(scored: Path, tmp_path: Path) -> Path:
    """A `finalize` under another threshold that was killed when half of the partitions were replaced."""
    other = Path(shutil.copytree(scored, tmp_path / "other"))
    finalize(other, 0.6)
    for number, path in enumerate(sorted((scored / "scored").rglob("*.parquet"))):
        if number % 2:
            shutil.copy(other / path.relative_to(scored), path)
    return scored


@pytest.mark.parametrize("name", READERS)
def test_attack_no_reader_shows_half_of_a_run_that_broke_off(broken_off: Path, tmp_path: Path, name: str) -> None:
    before = {path: path.read_bytes() for path in broken_off.rglob("*") if path.is_file()}
    done = read(name, broken_off, tmp_path / "to")
    fails(done, "output.rewritten", "dt=2026-11-03")
    assert not done.stdout.strip()
    assert {path: path.read_bytes() for path in broken_off.rglob("*") if path.is_file()} == before
    assert not list((tmp_path / "to").iterdir())
    finalize(broken_off, 0.6)
    assert read(name, broken_off, tmp_path / "to").returncode == 0


def test_a_partition_that_the_manifest_does_not_name_yet_is_left_out(scored: Path) -> None:
    """As a run leaves it that is killed between the verdicts of its new partition and the manifest."""
    new = scored / "scored" / "dt=2026-12-01" / "part-0.parquet"
    new.parent.mkdir()
    table = pq.read_table(scored / "scored" / "dt=2026-11-02" / "part-0.parquet", partitioning=None)
    pq.write_table(table.replace_schema_metadata({VERDICTS_ID: b"a run under way"}), new)
    places = read_snapshot(open_folder(str(scored)), lambda folder, _: list(partitions(folder, "scored")))
    assert len(places) == DAYS and "dt=2026-12-01" not in places


def test_the_fit_of_a_run_under_way_is_not_that_of_the_verdicts(scored: Path) -> None:
    output = open_folder(str(scored))
    manifest = read_manifest(output)
    last = manifest.runs[-1]
    assert last.fit and last.threshold
    begun = replace(last, run_id="a run under way", finished=None, fit=replace(last.fit, source="new"))
    manifest.runs.append(begun)
    write_manifest(output, manifest)
    found = read_verdicts(output)
    assert found.last_fit == last.fit and [run.run_id for run in found.runs] == [run.run_id for run in manifest.runs]
    files = dict.fromkeys(manifest.verdict_files, begun.run_id)  # its verdicts are there: its judge is at work
    write_manifest(output, replace(manifest, verdict_files=files))
    assert read_verdicts(output).last_fit == begun.fit


def test_moments_of_more_rows_than_there_are_verdicts_are_not_used(scored: Path) -> None:
    stats = scored / "stats" / "dt=2026-11-05" / "stats.json"
    text = stats.read_text()
    assert '"ok": 60' in text
    stats.write_text(text.replace('"ok": 60', '"ok": 61'))
    with pytest.raises(OutputRewritten) as error:
        read_snapshot(open_folder(str(scored)), lambda folder, manifest: stats_of(folder, member_values_of(manifest)))
    assert error.value.fields["partition"] == "dt=2026-11-05"
    stats.write_text(text)
    assert read_snapshot(open_folder(str(scored)), lambda folder, manifest: fits_of_all(folder, member_values_of(manifest)))


def test_explanations_that_are_being_written_are_left_out(scored: Path) -> None:
    folder = scored / "explanations" / "strategy=vanilla"
    folder.mkdir(parents=True)
    (folder / "whole-0.parquet").write_bytes(b"")
    (folder / "half-0.parquet").write_bytes(b"PAR1 cut o")
    (scored / "_explaining").mkdir()
    (scored / "_explaining" / "half.pending.parquet").write_bytes(b"")
    (scored / "_explaining" / "whole.parquet").write_bytes(b"")
    names = read_snapshot(
        open_folder(str(scored)), lambda seen, _: [info.base_name for info in seen.list("explanations", ".parquet")]
    )
    assert names == ["whole-0.parquet"]


def test_what_a_reader_writes_into_the_output_is_of_one_snapshot(scored: Path) -> None:
    """An evaluation that was overtaken leaves no evaluation.json."""
    left = list(THRESHOLDS)

    def work(folder: Snapshot, _: Manifest) -> None:
        folder.write("evaluation.json", "half and half")
        finalize(scored, left.pop())

    with pytest.raises(OutputRewritten):
        read_snapshot(open_folder(str(scored)), work)
    assert not (scored / "evaluation.json").exists()


class ReadOnly(LocalFileSystem):  # type: ignore[misc]
    """A disk of which an analyst may read everything, and write nothing."""

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
    for module in ("audit", "measure", "act", "output_files"):
        monkeypatch.setattr(f"ragassay.jobs.cli.{module}.existing_output", lambda _: folder)
    return scored


@pytest.mark.parametrize("name", READERS)
def test_attack_an_output_that_may_only_be_read_is_read(read_only: Path, tmp_path: Path, name: str) -> None:
    done = read(name, read_only, tmp_path / "to")
    assert done.returncode == 0, done.stderr
    kept = {"evaluate": "evaluation.json", "estimate": "estimate.json"}
    assert ("was not written" in done.stdout) == (name in kept) and kept.get(name, "") in done.stdout
    assert not {path.name for path in read_only.iterdir()} & {*kept.values(), "_lock", "report.html", "review.html"}


@pytest.mark.parametrize("name", ["report", "review", "calibrate"])
def test_what_is_to_be_written_into_such_an_output_asks_for_another_place(read_only: Path, name: str) -> None:
    options = [option for option in READERS[name] if option != "--out" and "{to}" not in option]
    done = here(name, read_only, *options)
    fails(done, "options.out-not-writable", "Permission denied")


def test_a_judge_is_not_asked_where_its_answers_cannot_be_kept(scored: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ragassay.jobs.evaluation import evaluate as judged
    from ragassay.jobs.evaluation.labelled import load_labelled
    from ragassay.jobs.evaluation.labels import LabelSource

    plain = open_folder(str(scored))
    rows = load_labelled(plain, member_values_of(read_manifest(plain)), LabelSource("label"), texts=True)
    monkeypatch.setattr(judged, "judge_rows", lambda *_: pytest.fail("it was asked"))
    fs = pafs.PyFileSystem(pafs.FSSpecHandler(ReadOnly(skip_instance_cache=True)))
    judge = Judge(name="judge", model="m", base_url="http://127.0.0.1:1/v1")
    with raises("evaluate.answers-not-writable"):
        ask_judge(judge, rows, Folder(fs, str(scored), str(scored)))
    assert existing_output(str(scored)).read("judge/judge.json") is None
