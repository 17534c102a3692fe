"""The counts that a run reports, and its end if this program failed on too many rows; without Ray and engines."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ragassay.jobs.config.job import make_job
from ragassay.jobs.scoring.selection import Selection
from ragassay.jobs.storage.folder import Folder
from ragassay.jobs.verdicts.error_share import refuse_too_many_errors
from ragassay.pipeline import finalize as finalize_stage
from ragassay.schemas.columns import raw_schema
from ragassay.schemas.manifest import Run
from tests.jobs.conftest import invoke, manifest, read_rows, write_job
from tests.raises import raises

GOOD, SCORING, FINALIZE = "It is so.", "a bug in scoring", "a bug in finalize"
FINALIZE_BATCH = finalize_stage.finalize_batch
DETECTORS = [{"name": "words", "kind": "novelty"}]


def raw_row(key: int, response: str, value: float) -> dict[str, Any]:
    row = {"row_key": key, "row_id": str(key), "question": "q", "context": ["c"], "response": response, "usage": []}
    if response == SCORING:
        return {**row, "status": "error", "error": "split: ValueError"}
    member = {"name": "words", "sentence_scores": [value], "response_score": value}
    sentences = [{"text": response, "start": 0, "end": len(response)}]
    return {**row, "sentences": sentences, "members": [member], "context_windows": 1, "status": "ok"}


def score_files(job: Any, selection: Selection, output: Folder, *_: Any) -> None:
    """Replace the scoring of files: each response determines its row."""
    for number, file in selection.non_empty_files.items():
        responses = pq.read_table(file.uri)["response"].to_pylist()
        rows = [raw_row(number << 32 | i, response, (i % 7) / 7) for i, response in enumerate(responses)]
        path = Path(output.path("raw")) / file.partition_path / f"part-{number}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.Table.from_pylist(rows, schema=raw_schema(pa.schema([]))), path)


@pytest.fixture(autouse=True)
def stages(without_ray: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ragassay.jobs.run.score.score_files", score_files)

    def finalize_batch(batch: pa.RecordBatch, *args: Any) -> pa.RecordBatch:
        if FINALIZE in batch["response"].to_pylist():
            raise ValueError("of a row")
        return FINALIZE_BATCH(batch, *args)

    monkeypatch.setattr(finalize_stage, "finalize_batch", finalize_batch)


class RunFolder:
    """A folder with logs and an output, and commands on them."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.output = folder, folder / "out"
        self.set_job(0.05)

    def set_job(self, max_error_share: float) -> None:
        self.config = write_job(
            self.folder / "job.yaml",
            members={"detectors": DETECTORS},
            verdict={"threshold": {"quantile": 0.2}},
            runtime={"max_error_share": max_error_share},
        )

    def add_logs(self, name: str, *responses: str) -> None:
        path = self.folder / "logs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        rows = [{"question": "q", "context": "c", "response": response} for response in responses]
        pq.write_table(pa.Table.from_pylist(rows), path)

    def run_command(self, name: str) -> str:
        """Run a command and return its stderr, which is empty if it succeeds."""
        logs = () if name == "finalize" else (self.folder / "logs",)
        done = invoke(name, *logs, self.output, "--config", self.config)
        assert done.returncode == bool(done.stderr), done.stderr
        return done.stderr


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder(tmp_path)


@pytest.mark.parametrize("bug", [SCORING, FINALIZE])
def test_too_many_errors_fail_the_run_and_every_repeated_run(folder: RunFolder, bug: str) -> None:
    folder.add_logs("dt=1/a.parquet", *[GOOD] * 18, bug, bug)
    for _ in range(3):  # as a scheduler repeats it
        assert "2 of the 20 rows" in folder.run_command("run")
    assert [row["status"] for row in read_rows(folder.output)].count("error") == 2
    folder.set_job(0.1)  # exactly this share is allowed
    assert folder.run_command("run") == ""
    folder.set_job(0.09)
    assert "2 of the 20 rows" in folder.run_command("run")
    folder.add_logs("dt=2/b.parquet", *[GOOD] * 20)
    assert folder.run_command("run") == folder.run_command("run") == ""  # the last written rows have no errors


@pytest.mark.parametrize("prefix", ["dt=2/", ""])
@pytest.mark.parametrize("bug", [SCORING, FINALIZE])
def test_rows_of_an_earlier_score_command_count_when_they_get_verdicts(folder: RunFolder, bug: str, prefix: str) -> None:
    """Also in a partition with many earlier rows without errors."""
    folder.add_logs(f"{prefix.replace('2', '1')}a.parquet", *[GOOD] * 300)
    assert folder.run_command("run") == ""
    folder.add_logs(f"{prefix}b.parquet", *[GOOD] * 18, bug, bug)
    assert ("2 of the 20 rows" in folder.run_command("score")) == (bug == SCORING)
    for _ in range(2):
        assert "2 of the 20 rows" in folder.run_command("run")


@pytest.mark.parametrize("bug", [SCORING, FINALIZE])
def test_errors_count_after_a_run_was_killed_between_score_and_decide(
    folder: RunFolder, bug: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.add_logs("a.parquet", GOOD, GOOD, bug)
    with monkeypatch.context() as patched:
        patched.setattr("ragassay.jobs.run.decide.write_verdicts", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        assert invoke("run", folder.folder / "logs", folder.output, "--config", folder.config).returncode == 130
    for _ in range(2):
        assert "1 of the 3 rows" in folder.run_command("run")


def test_finalize_with_a_fixed_version_removes_the_errors(folder: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.add_logs("a.parquet", GOOD, FINALIZE)
    assert folder.run_command("score") == "" and "1 of the 2 rows" in folder.run_command("run")
    assert "1 of the 2 rows" in folder.run_command("finalize")
    monkeypatch.setattr(finalize_stage, "finalize_batch", FINALIZE_BATCH)
    assert folder.run_command("finalize") == folder.run_command("run") == ""


@pytest.mark.parametrize(
    ("share", "errors", "passes"),
    [(0.29, 29, True), (0.29, 30, False), (0.07, 7, True), (0, 0, True), (0, 1, False), (1, 100, True)],
)
def test_the_limit_is_compared_as_a_decimal_number(share: float, errors: int, passes: bool) -> None:
    """As floats, 0.29 * 100 is 28.999999999999996."""
    job = make_job({"members": {"detectors": DETECTORS}, "runtime": {"max_error_share": share}})
    run = Run("r", "", errors={"errors": errors, "rows": 100})
    if passes:
        refuse_too_many_errors(job.runtime, run, "out")
    else:
        with raises("rows.too-many-errors", rows=100):
            refuse_too_many_errors(job.runtime, run, "out")


def test_the_summary_mentions_verdicts_of_rows_that_an_earlier_run_scored(folder: RunFolder) -> None:
    folder.add_logs("a.parquet", *[GOOD] * 20)
    assert folder.run_command("score") == ""
    summary = invoke("run", folder.folder / "logs", folder.output, "--config", folder.config).stdout
    assert "verdicts belong to rows that an earlier run scored" in summary and "flagged    0" not in summary


def test_flagged_and_scored_counts_cover_the_same_rows(folder: RunFolder) -> None:
    """Although the second run gives new verdicts to the rows of the first run in the same partition."""
    folder.add_logs("a.parquet", *[GOOD] * 100)
    assert folder.run_command("run") == ""
    folder.add_logs("b.parquet", *[GOOD] * 10)
    assert folder.run_command("run") == ""
    first, second = manifest(folder.output)["runs"]
    flagged = [row["verdict"] == "hallucinated" for row in read_rows(folder.output)]
    assert (first["rows"]["scored"], second["rows"]["scored"]) == (100, 10)
    assert (first["flagged"], second["flagged"]) == (30, sum(flagged[100:])) and second["flagged"] <= 10
    assert manifest(folder.output)["finalized"][""] == {"run_id": second["run_id"], "scored": 110, "flagged": sum(flagged)}
