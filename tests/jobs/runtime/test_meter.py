"""What a worker counts, and how the counts of several add up."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest

from ragassay.jobs.runtime import stage_actor
from ragassay.jobs.runtime.counts import Board, Counts, Phase, add_up
from ragassay.jobs.runtime.meter import Meter, count_prompts, count_sentences, task_meter
from ragassay.jobs.runtime.stage_actor import StageActor, run_stage
from ragassay.pipeline import listener
from ragassay.pipeline.listener import answered, loaded
from ragassay.pipeline.slm.config import Replicas
from ragassay.pipeline.stages.stage import Stage
from ragassay.schemas.columns import SPAN, USAGE


def rows(*sentences: int | None, prompts: int | None = None) -> pa.Table:
    """Rows with so many sentences, and so many prompts of ten tokens a sentence that an SLM was charged for."""
    span = {"text": "x", "start": 0, "end": 1}
    spans = pa.array([None if n is None else [span] * n for n in sentences], pa.list_(SPAN))

    def charged(n: int) -> list[dict[str, object]]:
        return [] if prompts is None else [{"name": "m", "prompts": n * prompts, "tokens_computed": 10 * n * prompts}]

    use = [None if n is None else charged(n) for n in sentences]
    return pa.table({"row_key": range(len(sentences)), "sentences": spans, "usage": pa.array(use, pa.list_(USAGE))})


class Heard:
    """A handle of a board in another process."""

    def __init__(self, fails: bool = False) -> None:
        self.fails, self.reports = fails, list[tuple[Any, ...]]()

    @property
    def report(self) -> Any:
        return self

    def remote(self, *values: Any) -> None:
        if self.fails:
            raise ConnectionError("gone")
        self.reports.append(values)


@dataclass
class Model(Stage):
    """Answers in two steps, told after its first trial."""

    prompts: int
    seen: list[Counts] = field(default_factory=list, compare=False)

    name = "model"
    columns_in = ()
    columns_out = pa.schema([])
    replicas = Replicas(hang_minutes=None)

    def setup(self) -> None:
        loaded()
        answered(1, 256)

    def __call__(self, table: pa.Table) -> pa.Table:
        size = count_sentences(table)
        for _ in range(2):
            answered(size * self.prompts // 2, 5 * size * self.prompts)
            self.seen.append(meter().counts)
        return rows(*table["sentences"].combine_chunks().value_lengths().to_pylist(), prompts=self.prompts)


def meter() -> Meter:
    """That of the last actor."""
    (actor,) = listener._listener
    assert isinstance(actor, StageActor)
    return actor._meter


@pytest.fixture(autouse=True)
def nobody() -> Iterator[None]:
    yield
    listener._listener.clear()


@pytest.fixture(autouse=True)
def no_metrics(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage_actor, "count", lambda *_: None)


def test_a_batch_counts_while_it_is_done_and_a_trial_does_not() -> None:
    actor = StageActor(model := Model(1), Heard())
    assert meter().counts == Counts(Phase.WAITING)
    actor(rows(3, None, 5))
    half, whole = model.seen
    assert (half.begun, half.sentences, half.tokens) == (4, 0, 40) and (whole.begun, whole.tokens) == (8, 80)
    assert meter().counts == Counts(Phase.SCORING, rows=3, sentences=8, tokens=80)


def test_what_was_done_tells_how_many_prompts_a_sentence_takes() -> None:
    actor = StageActor(model := Model(4), Heard())
    actor(rows(10))
    assert [c.begun for c in model.seen] == [10, 10], "without knowing better, no more than there are"
    actor(rows(10))
    assert [c.begun for c in model.seen[2:]] == [5, 10]
    assert meter().counts.sentences == 20 and meter().counts.tokens == 800


def test_a_light_stage_is_counted_over_its_tasks_and_listens_to_nobody() -> None:
    @dataclass
    class Lengths(Stage):
        lengths: list[int]

        name = "split"
        columns_in = ()
        columns_out = pa.schema([])

        def __call__(self, table: pa.Table) -> pa.Table:
            return rows(*self.lengths)

    before, board = pa.table({"row_key": [0, 1, 2]}), Heard()
    for _ in range(2):
        assert run_stage(before, Lengths([2, 0, 4]), board, 7).equals(rows(2, 0, 4))
    assert task_meter(board, 7).counts == Counts(Phase.SCORING, rows=6, sentences=12) and not listener._listener
    assert task_meter(board, 8).counts == Counts()


def test_columns_that_are_not_there_yet() -> None:
    assert count_sentences(pa.table({"row_key": [1]})) == 0 and count_prompts(pa.table({"row_key": [1]})) == 0
    assert count_sentences(rows()) == 0 and count_prompts(rows()) == 0
    assert count_sentences(rows(None, 0)) == 0 and count_prompts(rows(2, 3, None, prompts=2)) == 10


def test_a_judges_usage_is_one_a_row() -> None:
    usage = pa.array([{"prompts": 2, "tokens_computed": 30}, None])
    assert count_prompts(pa.table({"usage": usage})) == 2


def test_outside_a_run_whatever_a_table_holds_is_not_counted() -> None:
    odd = pa.table({"sentences": pa.array(["no list"]), "usage": pa.array([1])})
    assert Meter(None, 0).batch(lambda table: table, odd) is odd


def test_reports_are_sparing() -> None:
    board = Heard()
    counting = Meter(board, 3, "actor")
    counting.enter(Phase.LOADING)

    def ask(table: pa.Table) -> pa.Table:
        for _ in range(1000):
            counting.answered(1, 10)
        return table

    counting.batch(ask, rows(1000))
    assert len(board.reports) < 10, "not once a prompt"
    assert len({report[:3] for report in board.reports}) == 1
    stage, _, actor, counts = board.reports[-1]
    assert (stage, actor) == (3, "actor") and counts == Counts(Phase.SCORING, 1, 1000, 0, 10_000)


def test_a_board_that_fails_stops_nobody() -> None:
    assert Meter(Heard(fails=True), 0).batch(lambda table: table, rows(2)).num_rows == 1


def test_a_board_sums_workers_and_keeps_those_that_died() -> None:
    board = Board(3)
    board.report(0, "w1", None, Counts(Phase.SCORING, rows=2))
    board.report(1, "w2", "actor", Counts(Phase.SCORING, rows=5))
    board.report(1, "w3", "actor", Counts(Phase.LOADING))
    board.report(1, "w3", "actor", Counts(Phase.SCORING, rows=1))
    assert [counts.rows for counts in board.totals()] == [2, 6, 0]


def test_workers_add_up_and_the_furthest_tells_the_phase() -> None:
    total = add_up([Counts(Phase.WARMING_UP), Counts(Phase.SCORING, 2, 6, 1, 90), Counts(Phase.LOADING, 1, 3, 0, 10)])
    assert total == Counts(Phase.SCORING, 3, 9, 1, 100) and add_up([]) == Counts(Phase.LOADING)
