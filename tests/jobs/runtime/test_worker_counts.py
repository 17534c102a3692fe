"""The counts of a worker, and the sum of the counts of several."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest

from ragassay.jobs.progress.counts import Counts, CountsBoard, Phase, sum_counts
from ragassay.jobs.runtime import stage_actor
from ragassay.jobs.runtime.stage_actor import StageActor, run_stage
from ragassay.jobs.runtime.worker_counts import WorkCounter, count_prompts, count_sentences, get_task_counter
from ragassay.pipeline import listener
from ragassay.pipeline.engines.replicas import Replicas
from ragassay.pipeline.listener import report_answered, report_loaded
from ragassay.pipeline.stages.stage import Stage
from ragassay.schemas.columns import SPAN, USAGE


def rows(*sentences: int | None, prompts: int | None = None) -> pa.Table:
    """Rows with these numbers of sentences; an SLM was charged for `prompts` prompts of ten tokens per sentence."""
    span = {"text": "x", "start": 0, "end": 1}
    spans = pa.array([None if n is None else [span] * n for n in sentences], pa.list_(SPAN))

    def charged(n: int) -> list[dict[str, object]]:
        return [] if prompts is None else [{"name": "m", "prompts": n * prompts, "tokens_computed": 10 * n * prompts}]

    use = [None if n is None else charged(n) for n in sentences]
    return pa.table({"row_key": range(len(sentences)), "sentences": spans, "usage": pa.array(use, pa.list_(USAGE))})


class FakeBoard(CountsBoard):
    """Board that records the reports."""

    def __init__(self, fails: bool = False) -> None:
        super().__init__(0)
        self.fails, self.reports = fails, list[tuple[Any, ...]]()

    def report(self, *values: Any) -> None:
        if self.fails:
            raise ConnectionError("gone")
        self.reports.append(values)


@dataclass
class Model(Stage):
    """Stage that answers in two steps, after a trial prompt."""

    prompts: int
    snapshots: list[Counts] = field(default_factory=list, compare=False)

    name = "model"
    columns_in = ()
    columns_out = pa.schema([])
    replicas = Replicas(hang_minutes=None)

    def setup(self) -> None:
        report_loaded()
        report_answered(1, 256)

    def __call__(self, table: pa.Table) -> pa.Table:
        size = count_sentences(table)
        for _ in range(2):
            report_answered(size * self.prompts // 2, 5 * size * self.prompts)
            self.snapshots.append(get_counter().counts)
        return rows(*table["sentences"].combine_chunks().value_lengths().to_pylist(), prompts=self.prompts)


def get_counter() -> WorkCounter:
    """Counter of the last actor."""
    (actor,) = listener._listener
    assert isinstance(actor, StageActor)
    return actor._counter


@pytest.fixture(autouse=True)
def stop_listening() -> Iterator[None]:
    yield
    listener._listener.clear()


@pytest.fixture(autouse=True)
def no_metrics(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage_actor, "add_to_counter", lambda *_: None)


def test_a_batch_counts_while_it_runs_and_a_trial_prompt_does_not() -> None:
    actor = StageActor(model := Model(1), FakeBoard())
    assert get_counter().counts == Counts(Phase.WAITING)
    actor(rows(3, None, 5))
    half, whole = model.snapshots
    assert (half.answered, half.sentences, half.tokens) == (4, 0, 40) and (whole.answered, whole.tokens) == (8, 80)
    assert get_counter().counts == Counts(Phase.SCORING, rows=3, sentences=8, tokens=80)


def test_prompts_per_sentence_are_estimated_from_finished_batches() -> None:
    actor = StageActor(model := Model(4), FakeBoard())
    actor(rows(10))
    assert [c.answered for c in model.snapshots] == [10, 10], "without an estimate, limited to the open sentences"
    actor(rows(10))
    assert [c.answered for c in model.snapshots[2:]] == [5, 10]
    assert get_counter().counts.sentences == 20 and get_counter().counts.tokens == 800


def test_a_light_stage_is_counted_over_its_tasks_and_listens_to_no_model() -> None:
    @dataclass
    class Lengths(Stage):
        lengths: list[int]

        name = "split"
        columns_in = ()
        columns_out = pa.schema([])

        def __call__(self, table: pa.Table) -> pa.Table:
            return rows(*self.lengths)

    before, board = pa.table({"row_key": [0, 1, 2]}), FakeBoard()
    for _ in range(2):
        assert run_stage(before, Lengths([2, 0, 4]), board, 7).equals(rows(2, 0, 4))
    assert get_task_counter(board, 7).counts == Counts(Phase.SCORING, rows=6, sentences=12) and not listener._listener
    assert get_task_counter(board, 8).counts == Counts()


def test_missing_columns_count_as_zero() -> None:
    assert count_sentences(pa.table({"row_key": [1]})) == 0 and count_prompts(pa.table({"row_key": [1]})) == 0
    assert count_sentences(rows()) == 0 and count_prompts(rows()) == 0
    assert count_sentences(rows(None, 0)) == 0 and count_prompts(rows(2, 3, None, prompts=2)) == 10


def test_usage_of_a_judge_is_one_struct_per_row() -> None:
    usage = pa.array([{"prompts": 2, "tokens_computed": 30}, None])
    assert count_prompts(pa.table({"usage": usage})) == 2


def test_outside_a_run_no_column_is_counted() -> None:
    odd = pa.table({"sentences": pa.array(["no list"]), "usage": pa.array([1])})
    assert WorkCounter(None, 0).run_batch(lambda table: table, odd) is odd


def test_reports_are_limited_in_frequency() -> None:
    board = FakeBoard()
    actor_counter = WorkCounter(board, 3, "actor")
    actor_counter.enter_phase(Phase.LOADING)

    def ask(table: pa.Table) -> pa.Table:
        for _ in range(1000):
            actor_counter.answered(1, 10)
        return table

    actor_counter.run_batch(ask, rows(1000))
    assert len(board.reports) < 10, "not one report per prompt"
    assert len({report[:3] for report in board.reports}) == 1
    stage, _, actor, counts = board.reports[-1]
    assert (stage, actor) == (3, "actor") and counts == Counts(Phase.SCORING, 1, 1000, 0, 10_000)


def test_a_board_that_fails_does_not_stop_the_work() -> None:
    assert WorkCounter(FakeBoard(fails=True), 0).run_batch(lambda table: table, rows(2)).num_rows == 1


def test_a_board_sums_workers_and_keeps_reports_of_dead_ones() -> None:
    board = CountsBoard(3)
    board.report(0, "w1", None, Counts(Phase.SCORING, rows=2))
    board.report(1, "w2", "actor", Counts(Phase.SCORING, rows=5))
    board.report(1, "w3", "actor", Counts(Phase.LOADING))
    board.report(1, "w3", "actor", Counts(Phase.SCORING, rows=1))
    assert [counts.rows for counts in board.sum_stages()] == [2, 6, 0]


def test_counts_of_workers_are_summed_and_the_latest_phase_wins() -> None:
    total = sum_counts([Counts(Phase.WARMING_UP), Counts(Phase.SCORING, 2, 6, 1, 90), Counts(Phase.LOADING, 1, 3, 0, 10)])
    assert total == Counts(Phase.SCORING, 3, 9, 1, 100) and sum_counts([]) == Counts(Phase.LOADING)
