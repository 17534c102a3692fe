"""Folds: what a step returned, into a new manifest. They lose no file and no row, and change nothing that they are given."""

from collections import Counter
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import fs as pafs

from ragassay.jobs.config.job import make_job
from ragassay.jobs.input import LogFile, Logs
from ragassay.jobs.run.account import begin_run, end_run, fold_escalation, fold_fit, fold_score, fold_verdicts, open_files
from ragassay.jobs.run.decide import Written
from ragassay.jobs.run.fit import Fitted
from ragassay.jobs.run.plan import PlannedStep, RunOptions, RunPlan, Why
from ragassay.jobs.run.score import Scored
from ragassay.jobs.scoring.balance import Counted
from ragassay.jobs.scoring.register import Registration
from ragassay.jobs.scoring.selection import Selection
from ragassay.jobs.second_pass.escalate.run import Escalated
from ragassay.jobs.storage.folder import Folder
from ragassay.jobs.verdicts.finalize import Finalized
from ragassay.jobs.verdicts.verdicts import Scores, decide
from ragassay.schemas.manifest import LEFT, PENDING, SCORED, DriftCheck, Escalation, InputFile, Manifest, Run, Verdicts
from ragassay.schemas.stats import PartitionStats

JOB = make_job({"members": {"slms": [], "detectors": [{"name": "novelty", "kind": "novelty"}]}})
OUTPUT = Folder(pafs.LocalFileSystem(), "/nowhere", "/nowhere")
DAYS = ("dt=1", "dt=2", "dt=3")
FATES = ("known", "whole", "cut", "deferred", "outside")


def log_file(number: int, day: str, rows: int) -> LogFile:
    path = f"{day}/{number}.parquet"
    key, _, value = day.partition("=")
    return LogFile(path, path, path, 1, ((key, value),), rows=rows)


def entry(file: LogFile, **more: Any) -> InputFile:
    return InputFile(file.path, file.uri, file.size, file.rows, file.partition_path, **more)


@st.composite
def scored_runs(draw: st.DrawFn) -> tuple[RunPlan, Scored]:
    """A plan over files, some of which are known, and what its step `score` made of them: some are cut by a budget."""
    drawn = st.tuples(st.sampled_from(DAYS), st.integers(0, 6), st.sampled_from(FATES))
    files = {n: (log_file(n, day, rows), fate) for n, (day, rows, fate) in enumerate(draw(st.lists(drawn, max_size=8)))}
    of = {fate: {n: file for n, (file, f) in files.items() if f == fate} for fate in FATES}
    known = {n: entry(file, state=SCORED, judged=True) for n, file in of["known"].items()}
    finalized = {file.partition: Verdicts("r0", 1, 0) for file in known.values()}
    manifest = Manifest({}, known, finalized, [Run("r0", "before", errors={"errors": 1, "rows": 2})])
    logs = Logs("logs", pafs.LocalFileSystem(), [file for file, _ in files.values()])
    chosen = {**of["whole"], **{n: file for n, file in of["cut"].items() if file.rows}}
    empty = {n: file for n, file in of["cut"].items() if not file.rows}  # nothing of them can be left
    chosen |= empty
    selection = Selection(logs, chosen, deferred=list(of["deferred"].values()), outside=list(of["outside"].values()))
    registration = Registration({"schema": 1}, {n: entry(f) for n, f in chosen.items()}, {}, {}, selection, [], {})
    nothing = PlannedStep(False, (), "")
    plan = RunPlan(
        JOB, JOB, OUTPUT, RunOptions(), manifest, registration, dict.fromkeys(chosen, Why.NEW), nothing, nothing, 1.0, 0.0
    )
    whole = {**of["whole"], **empty}
    statuses = {}
    for number, file in whole.items():
        ok = draw(st.integers(0, file.rows or 0))
        failed = draw(st.integers(0, (file.rows or 0) - ok))  # the others are sampled out
        statuses[number] = Counter({"ok": ok, "no_context": failed})
    cut = {n: file for n, file in of["cut"].items() if file.rows}
    committed = {file.path: draw(st.integers(0, (file.rows or 1) - 1)) for file in cut.values()}
    begun = frozenset(n for n, file in cut.items() if committed[file.path])
    counted = Counted(statuses, Counter({n: 2 * found["ok"] for n, found in statuses.items()}))
    return plan, Scored(whole, counted, 0, (*cut.values(), *of["deferred"].values()), committed, begun, 1.5)


@given(scored_runs())
def test_folding_scores_loses_no_file_and_no_row(case: tuple[RunPlan, Scored]) -> None:
    plan, scored = case
    begun = begin_run(plan, Run("r1", "now"))
    before = deepcopy(begun)
    manifest = fold_score(begun, plan, scored)
    assert begun == before and plan.manifest.runs == before.runs[:1]
    assert plan.selection is not None and plan.registration is not None
    assert manifest.files.keys() == plan.manifest.files.keys() | plan.selection.files.keys()
    run = manifest.runs[-1]
    assert run.rows["in"] == run.rows["scored"] + run.rows["failed"] + run.rows["skipped"]
    assert run.rows["in"] == sum(file.rows or 0 for file in plan.selection.logs.files)
    states = {n: file.state for n, file in manifest.files.items()}
    assert all(states[n] == (SCORED if n in scored.whole else LEFT) for n in plan.selection.files)
    assert open_files(manifest.files) == [n for n, state in states.items() if state == LEFT] and PENDING not in states.values()
    ended = {manifest.files[n].partition for n in scored.whole}
    assert manifest.finalized.keys() == plan.manifest.finalized.keys() - ended
    out = sum(manifest.scored_rows().values())
    assert out == sum(f.rows or 0 for f in plan.manifest.files.values()) + scored.counted.all_statuses().total()
    assert (run.left is None) == (not scored.deferred)
    assert Manifest.from_json(manifest.to_json()) == manifest


@given(scored_runs())
def test_folding_verdicts_keeps_the_balance_of_rows(case: tuple[RunPlan, Scored]) -> None:
    plan, scored = case
    manifest = fold_score(begin_run(plan, Run("r1", "now")), plan, scored)
    waiting = frozenset(file.partition_path for file in scored.deferred)
    by_day: dict[str, Finalized] = {}
    for number, file in scored.whole.items():
        if file.partition_path not in waiting:
            done = by_day.setdefault(file.partition_path, Finalized())
            done.statuses[number] = scored.counted.statuses[number]
            done.sentences[number] = scored.counted.sentences[number]
            done.flagged[number] = scored.counted.statuses[number]["ok"] // 2
    stats = {day: PartitionStats(day, {}, {}, {}, {}, 0, []) for day in by_day}
    decided = decide(JOB, None, "r1", stats, list(by_day))
    assert decided.threshold is not None
    fitted = Fitted(Scores({}, stats, list(by_day)), waiting, decided, decided.threshold, 0.5)
    before = deepcopy(manifest)
    none_yet = fold_fit(manifest, fitted)
    after = fold_verdicts(none_yet, scored, fitted, Written(by_day, 0.25))
    assert manifest == before and not by_day.keys() & none_yet.finalized.keys()
    assert after.files.keys() == manifest.files.keys() and by_day.keys() <= after.finalized.keys()
    run = after.runs[-1]
    assert run.rows == manifest.runs[-1].rows and run.sentences == manifest.runs[-1].sentences
    assert run.seconds == {"score": 1.5, "fit": 0.5, "finalize": 0.25}
    for number in scored.whole:
        assert after.files[number].judged == (after.files[number].partition in by_day)


@pytest.mark.parametrize("alone", [True, False])
def test_a_judges_decisions_change_the_counts_of_what_it_decided(alone: bool) -> None:
    file = log_file(0, "dt=1", 4)
    files = {0: entry(file, state=SCORED, judged=True)}
    run = Run("r1", "now", flagged=None if alone else 2, rows={"in": 4, "scored": 4, "failed": 0, "skipped": 0})
    manifest = Manifest({}, files, {"dt=1": Verdicts("r1", 4, 2)}, [run], verdict_files={"dt=1": "r1"})
    record = Escalation("judge", "uncertainty", 0.5, {}, ["dt=1"], seconds=2.0)
    done = Escalated(record, ["dt=1"], {"dt=1": 3}, "r1+judge", Counter({0: 1}))
    scored = None if alone else Scored({0: file}, Counted(), 0, (), {}, frozenset(), 1.0)
    after = fold_escalation(manifest, scored, done)
    assert after.finalized["dt=1"] == Verdicts("r1", 4, 3) and manifest.finalized["dt=1"].flagged == 2
    assert after.verdict_files == {"dt=1": "r1+judge"} and after.escalated == {"dt=1": "r1"}
    assert after.runs[-1].flagged == (None if alone else 3) and after.runs[-1].escalation == record
    assert after.runs[-1].rows["scored"] == (0 if alone else 4)


def test_a_run_that_wrote_nothing_carries_the_errors_of_the_one_before() -> None:
    runs = [Run("r0", "x", errors={"errors": 3, "rows": 9}), Run("r1", "x")]
    drift = DriftCheck([], [], (0, 0), [], "why")
    ended = end_run(Manifest(runs=runs), drift, "later").runs[-1]
    assert (ended.errors, ended.drift, ended.finished) == ({"errors": 3, "rows": 9}, drift, "later")
    runs[-1] = replace(runs[-1], errors={"errors": 0, "rows": 5})
    assert end_run(Manifest(runs=runs), None, "later").runs[-1].errors == {"errors": 0, "rows": 5}
