"""The plan of a run, as a value: what is scored, finalised and escalated, and why; without Ray."""

from dataclasses import replace
from pathlib import Path

import pytest

from ragassay.jobs.config.escalation import EscalationConfig
from ragassay.jobs.config.job import Job, make_job
from ragassay.jobs.input import find_logs
from ragassay.jobs.output.manifest import read_manifest, write_manifest
from ragassay.jobs.output.partition_filter import parse_conditions
from ragassay.jobs.run import Command, RunOptions, RunPlan, make_plan
from ragassay.jobs.run.account import begin_run
from ragassay.jobs.run.plan import Why
from ragassay.jobs.scoring.backfill import Backfill, Order
from ragassay.jobs.scoring.register import check_input
from ragassay.jobs.storage.folder import open_folder
from ragassay.pipeline.errors import ConfigError, InputError, OutputError
from ragassay.pipeline.slm.config import Slm
from ragassay.schemas.manifest import LEFT, PENDING, SCORED, Manifest, Run, Verdicts
from tests.conftest import example_rows, write_logs
from tests.jobs.scoring.test_checkpoint import commit

JOB = make_job({"members": {"slms": [], "detectors": [{"name": "novelty", "kind": "novelty"}]}})
CASCADE = JOB.model_copy(update={"escalation": EscalationConfig(judge=Slm(name="larger"), share=0.1)})
ROWS = 10


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    for day in (1, 2, 3):
        write_logs(tmp_path / "logs" / f"dt={day}" / "a.parquet", example_rows(ROWS, start=day * ROWS))
    return tmp_path / "logs"


def planned(logs: Path, backfill: Backfill | None = None, command: Command = Command.RUN, job: Job = JOB) -> RunPlan:
    found = find_logs(str(logs))
    check_input(job, found)
    output = open_folder(str(logs.parent / "out"))
    return make_plan(job, found, output, RunOptions(backfill or Backfill(), command=command, began=1000.0))


def taken(plan: RunPlan) -> list[str]:
    assert plan.selection is not None
    return [file.path for file in plan.selection.files.values()]


def begin(plan: RunPlan, scored: int = 0) -> Manifest:
    """The manifest of a run that has begun, in which the first files are scored and their partitions have verdicts."""
    manifest = begin_run(plan, Run("r1", "now"))
    files = {n: replace(file, state=SCORED) if n < scored else file for n, file in manifest.files.items()}
    finalized = {files[n].partition: Verdicts("r1", ROWS, 0) for n in range(scored)}
    manifest = replace(manifest, files=files, finalized=finalized)
    write_manifest(plan.output, manifest)
    return manifest


def add_raw(logs: Path, *partitions: str) -> None:
    for partition in partitions:
        write_logs(logs.parent / "out" / "raw" / partition / "a.parquet", example_rows(1))


def test_a_new_output_is_scored_whole_and_nothing_is_written(logs: Path) -> None:
    plan = planned(logs)
    assert taken(plan) == [f"dt={day}/a.parquet" for day in (1, 2, 3)] and set(plan.why.values()) == {Why.NEW}
    assert plan.selection is not None and (plan.selection.rows, plan.selection.deadline) == (3 * ROWS, None)
    assert plan.finalize.runs and plan.finalize.partitions == ("dt=1", "dt=2", "dt=3") and not plan.escalate.runs
    assert plan.scores and plan.needs_ray and plan.cpus > 0 and plan.gpus == 0
    assert not (logs.parent / "out").exists() and plan.manifest == Manifest()
    assert dict(plan.describe())["score"].startswith("30 rows in 3 files (3 new)")


def test_a_command_plans_its_steps_alone(logs: Path) -> None:
    plan = planned(logs, command=Command.SCORE)
    assert plan.scores and not plan.finalize.runs and not plan.escalate.runs
    begin(plan, scored=3)
    add_raw(logs, "dt=1", "dt=2")
    output = open_folder(str(logs.parent / "out"))
    plan = make_plan(JOB, None, output, RunOptions(command=Command.FINALIZE))
    assert plan.selection is None and plan.finalize.partitions == ("dt=1", "dt=2") and plan.needs_ray
    write_logs(logs.parent / "out" / "scored" / "dt=1" / "a.parquet", example_rows(1))
    plan = make_plan(CASCADE, None, output, RunOptions(command=Command.ESCALATE))
    assert plan.escalate.runs and not plan.finalize.runs
    write_manifest(output, replace(read_manifest(output), finalized={}))
    with pytest.raises(OutputError):
        make_plan(CASCADE, None, output, RunOptions(command=Command.ESCALATE))


def test_nothing_to_do_needs_no_ray(logs: Path) -> None:
    begin(planned(logs), scored=3)
    add_raw(logs, "dt=1", "dt=2", "dt=3")
    plan = planned(logs)
    assert taken(plan) == [] and not plan.scores and not plan.finalize.runs and not plan.needs_ray
    assert dict(plan.describe())["skip"].startswith("30 rows in 3 files")


def test_scored_partitions_without_verdicts_are_finalised(logs: Path) -> None:
    manifest = begin(planned(logs), scored=3)
    write_manifest(planned(logs).output, replace(manifest, finalized={"dt=1": Verdicts("r1", ROWS, 0)}))
    add_raw(logs, "dt=1", "dt=2", "dt=3")
    plan = planned(logs)
    assert not plan.scores and plan.finalize.runs and plan.finalize.partitions == ("dt=2", "dt=3")


def test_a_run_that_broke_off_is_resumed(logs: Path) -> None:
    begin(planned(logs), scored=1)
    commit(logs.parent / "out", "0.parquet", [1 << 32])
    plan = planned(logs)
    assert taken(plan) == ["dt=2/a.parquet", "dt=3/a.parquet"]
    assert plan.why == {1: Why.RESUMED, 2: Why.NEW}
    write_logs(logs.parent / "other" / "logs" / "dt=9" / "a.parquet", example_rows(1))
    with pytest.raises(OutputError):  # it has to be ended first
        make_plan(JOB, find_logs(str(logs.parent / "other" / "logs")), plan.output, RunOptions())


def test_a_budget_defers_files_and_their_partitions_wait(logs: Path) -> None:
    write_logs(logs / "dt=1" / "b.parquet", example_rows(ROWS, start=90))
    plan = planned(logs, Backfill(order=Order.NEWEST, rows=3 * ROWS))
    assert taken(plan) == ["dt=3/a.parquet", "dt=2/a.parquet", "dt=1/a.parquet"]
    assert plan.selection is not None and [file.path for file in plan.selection.deferred] == ["dt=1/b.parquet"]
    assert plan.finalize.partitions == ("dt=2", "dt=3") and plan.selection.may_end_early is False
    plan = planned(logs, Backfill(rows=4))
    assert plan.selection is not None and list(plan.selection.stops.values()) == [4]
    assert plan.finalize.partitions == () and plan.selection.may_end_early


def test_hours_end_at_a_point_in_time(logs: Path) -> None:
    plan = planned(logs, Backfill(hours=0.5))
    assert plan.selection is not None and plan.selection.deadline == 1000.0 + 1800 and plan.selection.may_end_early


def test_a_sample_is_chosen_and_a_larger_one_extends_it(logs: Path) -> None:
    first = planned(logs, Backfill(share=0.5))
    assert first.selection is not None and 0 < first.selection.rows < 3 * ROWS
    assert set(first.selection.samples) == {0, 1, 2} and set(first.selection.shares.values()) == {0.5}
    begin(first, scored=3)
    assert taken(planned(logs, Backfill(share=0.5))) == taken(planned(logs, Backfill(share=0.1))) == []
    more = planned(logs)
    assert set(more.why.values()) == {Why.EXTENDED} and more.registration is not None
    assert more.registration.reopened == {"dt=1": [0], "dt=2": [1], "dt=3": [2]}
    assert {entry.state for entry in more.registration.entries.values()} == {PENDING}


def test_conditions_leave_other_partitions_outside(logs: Path) -> None:
    plan = planned(logs, Backfill(parse_conditions(["dt>=2"])))
    assert taken(plan) == ["dt=2/a.parquet", "dt=3/a.parquet"] and plan.finalize.partitions == ("dt=2", "dt=3")
    assert plan.selection is not None and [file.path for file in plan.selection.outside] == ["dt=1/a.parquet"]
    with pytest.raises(InputError):
        planned(logs, Backfill(parse_conditions(["dt>=9"])))


def test_verdicts_that_come_are_escalated_and_need_its_machine(logs: Path) -> None:
    plan = planned(logs, job=CASCADE)
    assert plan.escalate.runs and plan.escalate.partitions == plan.finalize.partitions
    assert plan.cpus >= planned(logs).cpus


def test_what_a_budget_left_is_open_and_what_it_asks_for_is_refused_before_anything_is_written(logs: Path) -> None:
    manifest = begin(planned(logs), scored=2)
    left = {n: replace(file, state=LEFT) if file.state == PENDING else file for n, file in manifest.files.items()}
    write_manifest(open_folder(str(logs.parent / "out")), replace(manifest, files=left))
    assert taken(planned(logs)) == ["dt=3/a.parquet"]
    job = JOB.with_calibration(str(logs.parent / "none.json"))
    before = (logs.parent / "out" / "manifest.json").read_text()
    with pytest.raises(ConfigError):
        planned(logs, job=job)
    assert (logs.parent / "out" / "manifest.json").read_text() == before
