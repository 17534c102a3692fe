"""What a run says of its rows, and how it ends where this program failed on too many; without Ray and engines."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ragassay.jobs.config.job import make_job
from ragassay.jobs.scoring.selection import Selection
from ragassay.jobs.storage.folder import Folder
from ragassay.jobs.verdicts.error_share import refuse_too_many_errors
from ragassay.pipeline.stages import finalize as finalize_stage
from ragassay.schemas.columns import raw_schema
from ragassay.schemas.manifest import Run
from tests.jobs.conftest import here, manifest, read_rows, write_job
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
    """In the place of plan 1: rows as their responses say."""
    for number, file in selection.with_rows.items():
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


class Nights:
    """A folder of logs, an output, and commands on the two."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.output = folder, folder / "out"
        self.job(0.05)

    def job(self, max_error_share: float) -> None:
        self.config = write_job(
            self.folder / "job.yaml",
            members={"detectors": DETECTORS},
            verdict={"threshold": {"quantile": 0.2}},
            runtime={"max_error_share": max_error_share},
        )

    def add(self, name: str, *responses: str) -> None:
        path = self.folder / "logs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        rows = [{"question": "q", "context": "c", "response": response} for response in responses]
        pq.write_table(pa.Table.from_pylist(rows), path)

    def says(self, verb: str) -> str:
        """The error of a command; empty where there is none."""
        logs = () if verb == "finalize" else (self.folder / "logs",)
        done = here(verb, *logs, self.output, "--config", self.config)
        assert done.returncode == bool(done.stderr), done.stderr
        return done.stderr


@pytest.fixture
def nights(tmp_path: Path) -> Nights:
    return Nights(tmp_path)


@pytest.mark.parametrize("bug", [SCORING, FINALIZE])
def test_too_many_errors_end_the_run_and_every_one_after_it(nights: Nights, bug: str) -> None:
    nights.add("dt=1/a.parquet", *[GOOD] * 18, bug, bug)
    for _ in range(3):  # a scheduler tries again
        assert "2 of the 20 rows" in nights.says("run")
    assert [row["status"] for row in read_rows(nights.output)].count("error") == 2
    nights.job(0.1)  # as many as that are allowed
    assert nights.says("run") == ""
    nights.job(0.09)
    assert "2 of the 20 rows" in nights.says("run")
    nights.add("dt=2/b.parquet", *[GOOD] * 20)
    assert nights.says("run") == nights.says("run") == ""  # what it wrote last is well


@pytest.mark.parametrize("folder", ["dt=2/", ""])
@pytest.mark.parametrize("bug", [SCORING, FINALIZE])
def test_rows_scored_before_count_when_they_get_their_verdicts(nights: Nights, bug: str, folder: str) -> None:
    """Also where they share a partition with many rows that were well long ago."""
    nights.add(f"{folder.replace('2', '1')}a.parquet", *[GOOD] * 300)
    assert nights.says("run") == ""
    nights.add(f"{folder}b.parquet", *[GOOD] * 18, bug, bug)
    assert ("2 of the 20 rows" in nights.says("score")) == (bug == SCORING)
    for _ in range(2):
        assert "2 of the 20 rows" in nights.says("run")


@pytest.mark.parametrize("bug", [SCORING, FINALIZE])
def test_a_run_killed_between_scoring_and_verdicts(nights: Nights, bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    nights.add("a.parquet", GOOD, GOOD, bug)
    with monkeypatch.context() as patched:
        patched.setattr("ragassay.jobs.run.decide.write_verdicts", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        assert here("run", nights.folder / "logs", nights.output, "--config", nights.config).returncode == 130
    for _ in range(2):
        assert "1 of the 3 rows" in nights.says("run")


def test_a_version_that_has_it_mended_finalises_and_all_is_well(nights: Nights, monkeypatch: pytest.MonkeyPatch) -> None:
    nights.add("a.parquet", GOOD, FINALIZE)
    assert nights.says("score") == "" and "1 of the 2 rows" in nights.says("run")
    assert "1 of the 2 rows" in nights.says("finalize")
    monkeypatch.setattr(finalize_stage, "finalize_batch", FINALIZE_BATCH)
    assert nights.says("finalize") == nights.says("run") == ""


@pytest.mark.parametrize(
    ("share", "errors", "passes"),
    [(0.29, 29, True), (0.29, 30, False), (0.07, 7, True), (0, 0, True), (0, 1, False), (1, 100, True)],
)
def test_the_bound_is_as_it_is_written(share: float, errors: int, passes: bool) -> None:
    """In floats 0.29 * 100 is 28.999999999999996."""
    job = make_job({"members": {"detectors": DETECTORS}, "runtime": {"max_error_share": share}})
    run = Run("r", "", errors={"errors": errors, "rows": 100})
    if passes:
        refuse_too_many_errors(job.runtime, run, "out")
    else:
        with raises("rows.too-many-errors", rows=100):
            refuse_too_many_errors(job.runtime, run, "out")


def test_verdicts_of_rows_scored_before_are_not_called_none(nights: Nights) -> None:
    nights.add("a.parquet", *[GOOD] * 20)
    assert nights.says("score") == ""
    said = here("run", nights.folder / "logs", nights.output, "--config", nights.config).stdout
    assert "verdicts are of rows that an earlier run scored" in said and "flagged    0" not in said


def test_flagged_and_scored_are_of_the_same_rows(nights: Nights) -> None:
    """Though the second night's partition holds the first one's rows too, and gives them new verdicts."""
    nights.add("a.parquet", *[GOOD] * 100)
    assert nights.says("run") == ""
    nights.add("b.parquet", *[GOOD] * 10)
    assert nights.says("run") == ""
    first, second = manifest(nights.output)["runs"]
    flagged = [row["verdict"] == "hallucinated" for row in read_rows(nights.output)]
    assert (first["rows"]["scored"], second["rows"]["scored"]) == (100, 10)
    assert (first["flagged"], second["flagged"]) == (30, sum(flagged[100:])) and second["flagged"] <= 10
    assert manifest(nights.output)["finalized"][""] == {"run_id": second["run_id"], "scored": 110, "flagged": sum(flagged)}
