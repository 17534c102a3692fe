"""One answer, and a table in memory, have the numbers that a whole run gives."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import ragassay
from ragassay.jobs.api.job import detectors_alone
from ragassay.jobs.config.job import make_job
from ragassay.jobs.config.verdict import DEFAULT_EPSILON, DEFAULT_MEAN, DEFAULT_POSITIVE
from ragassay.jobs.output.fingerprint import make_fingerprint
from ragassay.jobs.verdicts.bundled_calibration import load_bundled_detectors_calibration
from tests.conftest import example_rows
from tests.job_settings import merged
from tests.jobs.api.conftest import ALONE, DETECTORS, as_table, odd_rows, ran, same
from tests.raises import raises, refuses

WEIGHTS = {"entities": 1.0, "attribution": 1.0, "novelty": 3.0}
pytestmark = pytest.mark.usefixtures("without_ray")


def calibration_of(job: dict[str, Any], path: Path) -> str:
    """A calibration file for a job of the three detectors."""
    known = make_fingerprint(make_job(job))
    path.write_text(
        replace(load_bundled_detectors_calibration(), calibration_id="own", fingerprint=known, threshold=0.6).to_json()
    )
    return str(path)


@pytest.mark.parametrize(
    "more",
    [
        {"verdict": {"threshold": {"quantile": 0.3}}},
        {
            "verdict": {
                "threshold": {"quantile": 0.3, "of": "history"},
                "normalize": {"source": "history"},
                "aggregate": {"mean": "min"},
            }
        },
        {
            "verdict": {"threshold": {"value": 0.2}, "aggregate": {"mean": "arithmetic", "positive": "clip"}},
            "members": {"weights": WEIGHTS},
        },
        {"input": {"columns": {"row_id": None}}},
        {"input": {"columns": {"question": "asked", "context": "found", "response": "said", "row_id": "row_id"}}},
    ],
)
def test_a_table_is_judged_as_a_run_judges_it(more: dict[str, Any], tmp_path: Path) -> None:
    job = merged(ALONE, more)
    table = as_table(odd_rows())
    table = table.rename_columns([more.get("input", {}).get("columns", {}).get(name) or name for name in table.column_names])
    table = table.append_column("score", pa.array(range(table.num_rows)))  # a name of ours
    _, theirs = ran(tmp_path / "run", table, job)
    ours = ragassay.judge(table, job).to_pylist()
    same(ours, theirs)
    assert [row["status"] for row in ours] == [row["row_id"].split()[0] for row in odd_rows()]
    assert [row["input_score"] for row in ours] == list(range(table.num_rows))
    assert len({row["verdict"] for row in ours}) == 3


def test_a_calibration_counts_in_both(tmp_path: Path) -> None:
    job = merged(ALONE, {"verdict": {"calibration": calibration_of(ALONE, tmp_path / "calibration.json")}})
    table = as_table(odd_rows())
    _, theirs = ran(tmp_path / "run", table, job)
    same(ragassay.judge(table, job).to_pylist(), theirs)
    assert any(row["probability"] is not None for row in theirs)


def test_an_answer_is_judged_like_an_output(tmp_path: Path) -> None:
    output, theirs = ran(tmp_path / "run", as_table(odd_rows()), merged(ALONE, {"verdict": {"threshold": {"quantile": 0.3}}}))
    for answer, row in zip(odd_rows(), theirs, strict=True):
        texts = {name: answer[name] for name in ("question", "context", "response")}
        found = ragassay.check(**texts, like=str(output))
        same([found.row], [row], ("run_id", "row_key", "row_id", "tenant"))
        assert found.judged_by.startswith(f"the last verdicts of {output}") and "quantile 0.3" in found.judged_by


def test_an_answer_is_judged_by_a_calibration_as_in_a_run_over_it_alone(tmp_path: Path) -> None:
    path = calibration_of(ALONE, tmp_path / "calibration.json")
    for number, answer in enumerate([*example_rows(3), {**odd_rows()[-1], "tenant": "t"}]):
        row = {**answer, "row_id": "a"}
        _, theirs = ran(tmp_path / str(number), as_table([row]), merged(ALONE, {"verdict": {"calibration": path}}))
        texts = {name: answer[name] for name in ("question", "context", "response")}
        found = ragassay.check(**texts, job=ALONE, calibration=path)
        same([found.row], theirs, ("run_id", "row_key", "row_id", "tenant"))
        assert found.probability is not None
        by_default = ragassay.check(**texts, fast=True)
        assert (by_default.score, by_default.probability) == (found.score, found.probability)
        assert by_default.threshold == load_bundled_detectors_calibration().threshold and "not on yours" in by_default.judged_by


def test_the_frequencies_of_an_output_count_beside_a_calibration(tmp_path: Path) -> None:
    path = calibration_of(ALONE, tmp_path / "calibration.json")
    output, theirs = ran(tmp_path / "run", as_table(odd_rows()), merged(ALONE, {"verdict": {"calibration": path}}))
    answer = {name: odd_rows()[0][name] for name in ("question", "context", "response")}
    assert ragassay.check(**answer, like=str(output), calibration=path).score == pytest.approx(theirs[0]["score"])
    assert ragassay.check(**answer, job=ALONE, calibration=path).score != pytest.approx(theirs[0]["score"])
    without = ragassay.check(**answer, like=str(output))
    assert without.score == pytest.approx(theirs[0]["score"]) and without.probability is None  # the map stands elsewhere
    (output / "calibration.json").write_text(Path(path).read_text())
    assert ragassay.check(**answer, like=str(output)).probability == pytest.approx(theirs[0]["probability"])


def test_the_bundled_statistics_are_of_the_three_detectors() -> None:
    job = detectors_alone()
    found = load_bundled_detectors_calibration()
    assert {name: member.value for name, member in found.members.items()} == job.members.values
    assert (found.mean, found.positive, found.epsilon) == (DEFAULT_MEAN, DEFAULT_POSITIVE, DEFAULT_EPSILON)
    assert sum(found.rows.values()) > 2000 and found.probability is not None


def test_who_cannot_be_judged_alone_is_told_the_way_out(tmp_path: Path) -> None:
    answer: dict[str, Any] = {"question": "When?", "context": ["The shop opens."], "response": "The shop closes."}
    with raises("fit.nothing-to-judge-by"):
        ragassay.check(**answer, job=merged(ALONE, {"verdict": {"threshold": {"quantile": 0.1}}}))
    with raises("fit.nothing-to-judge-by"):
        ragassay.check(**answer, job={"members": {"slms": [], "detectors": DETECTORS[:1]}})
    with raises("judge.fast-and-job"):
        ragassay.check(**answer, job=ALONE, fast=True)
    with raises("output.missing"):
        ragassay.check(**answer, like=str(tmp_path / "none"), fast=True)
    with raises("calibration.missing"):
        ragassay.check(**answer, calibration=str(tmp_path / "none.json"), fast=True)
    output, _ = ran(tmp_path / "run", as_table(odd_rows()), merged(ALONE, {"members": {"detectors": DETECTORS[1:]}}))
    with raises("judge.other-scores"):
        ragassay.check(**answer, like=str(output), fast=True)
    assert ragassay.check(**answer, like=str(output)).status == "ok"  # the output says what its members are
    empty, _ = ran(tmp_path / "empty", as_table([row for row in odd_rows() if row["response"] is None]), ALONE)
    with raises("judge.no-verdicts"):
        ragassay.check(**answer, like=str(empty), fast=True)


def test_frozen_statistics_are_enough(tmp_path: Path) -> None:
    output, theirs = ran(tmp_path / "run", as_table(odd_rows()), merged(ALONE, {"verdict": {"threshold": {"value": 0.5}}}))
    frozen = {
        "verdict": {"normalize": {"source": "frozen", "file": str(output / "manifest.json")}, "threshold": {"value": 0.5}}
    }
    answer = {name: odd_rows()[0][name] for name in ("question", "context", "response")}
    found = ragassay.check(**answer, job={**ALONE, **frozen}, like=str(output))
    assert found.score == pytest.approx(theirs[0]["score"]) and found.verdict == theirs[0]["verdict"]
    assert "frozen statistics" in ragassay.check(**answer, job={**ALONE, **frozen}).judged_by


def test_a_table_that_a_run_refuses_is_refused() -> None:
    rows = as_table(odd_rows())
    for table, code in (
        (rows.drop_columns(["response"]), "input.missing-column"),
        (rows.slice(0, 0), "input.no-rows"),
        (pa.concat_tables([rows, rows]), "input.repeated-ids"),
        (rows.set_column(0, "question", pa.array(range(rows.num_rows))), "input.column-shape"),
        (
            rows.set_column(rows.column_names.index("row_id"), "row_id", pa.nulls(rows.num_rows, pa.string())),
            "input.missing-ids",
        ),
    ):
        with refuses(code):
            ragassay.judge(table, ALONE)
