"""What a worker counts, and how the counts of several add up."""

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from ragassay.jobs.plan import Stage, counted
from ragassay.jobs.progress.meter import CountedActor, Counts, Meter, Phase, count_batch, sentences_of, used
from ragassay.jobs.progress.tally import add_up
from ragassay.pipeline import listener
from ragassay.pipeline.listener import answered, loaded
from ragassay.pipeline.slm.config import Replicas
from ragassay.schemas.columns import SPAN, USAGE


def rows(*sentences: int | None, prompts: int | None = None) -> pa.Table:
    """Rows with so many sentences, and so many prompts of ten tokens a sentence that an SLM was charged for."""
    span = {"text": "x", "start": 0, "end": 1}
    spans = pa.array([None if n is None else [span] * n for n in sentences], pa.list_(SPAN))

    def charged(n: int) -> list[dict[str, object]]:
        return [] if prompts is None else [{"name": "m", "prompts": n * prompts, "tokens_computed": 10 * n * prompts}]

    use = [None if n is None else charged(n) for n in sentences]
    return pa.table({"row_key": range(len(sentences)), "sentences": spans, "usage": pa.array(use, pa.list_(USAGE))})


class Model:
    """Answers in two steps, told after its first trial."""

    def __init__(self, prompts: int) -> None:
        loaded()
        answered(1, 256)
        self._prompts = prompts
        self.seen: list[Counts] = []

    def __call__(self, table: pa.Table) -> pa.Table:
        size = sentences_of(table)
        for _ in range(2):
            answered(size * self._prompts // 2, 5 * size * self._prompts)
            self.seen.append(meter().counts)
        return rows(*table["sentences"].combine_chunks().value_lengths().to_pylist(), prompts=self._prompts)


def meter() -> Meter:
    """That of the last actor."""
    (mine,) = listener._listener
    assert isinstance(mine, Meter)
    return mine


@pytest.fixture(autouse=True)
def nobody() -> Iterator[None]:
    yield
    listener._listener.clear()


def test_a_batch_counts_while_it_is_done_and_a_trial_does_not() -> None:
    actor = CountedActor(Model, {"prompts": 1}, "run/0")
    assert actor._meter.counts == Counts(Phase.WAITING)
    actor(rows(3, None, 5))
    half, whole = actor._actor.seen
    assert (half.begun, half.in_hand, half.sentences, half.tokens) == (4, 8, 0, 40) and (whole.begun, whole.tokens) == (8, 80)
    assert actor._meter.counts == Counts(Phase.SCORING, rows=3, sentences=8, tokens=80)


def test_what_was_done_tells_how_many_prompts_a_sentence_takes() -> None:
    actor = CountedActor(Model, {"prompts": 4}, "run/0")
    actor(rows(10))
    assert [c.begun for c in actor._actor.seen] == [10, 10], "without knowing better, no more than there are"
    actor(rows(10))
    assert [c.begun for c in actor._actor.seen[2:]] == [5, 10]
    assert actor._meter.counts.sentences == 20 and actor._meter.counts.tokens == 800


def test_a_function_is_counted_too_and_gives_what_it_gives() -> None:
    def split(table: pa.Table, *, lengths: list[int]) -> pa.Table:
        return rows(*lengths)

    before = pa.table({"row_key": [0, 1, 2]})
    stage = counted(Stage("split", split, {"lengths": [2, 0, 4]}), "run/7")
    assert stage.name == "split" and stage.step(before).equals(rows(2, 0, 4))
    from ragassay.jobs.progress.meter import _meter

    assert _meter("run/7").counts == Counts(Phase.SCORING, rows=3, sentences=6)
    assert count_batch(before, split, {"lengths": [1]}, "run/8").equals(rows(1))


def test_a_pool_stays_a_pool() -> None:
    stage = Stage("m", Model, {"prompts": 1}, Replicas(min=2, max=2), {"A": "b"})
    marked = counted(stage, "run/1")
    assert (marked.replicas, marked.environment) == (stage.replicas, stage.environment)
    assert CountedActor in getattr(marked.call, "__bases__", ()) and marked.call.__name__ == "Model", (
        "Ray shows its processes by that name"
    )


def test_columns_that_are_not_there_yet() -> None:
    assert sentences_of(pa.table({"row_key": [1]})) == 0 and used(pa.table({"row_key": [1]})) == (0, 0)
    assert sentences_of(rows()) == 0 and used(rows()) == (0, 0)
    assert sentences_of(rows(None, 0)) == 0 and used(rows(2, 3, None, prompts=2)) == (10, 100)


def test_a_judges_usage_is_one_a_row() -> None:
    usage = pa.array([{"prompts": 2, "tokens_computed": 30}, None])
    assert used(pa.table({"usage": usage})) == (2, 30)


def test_what_cannot_be_counted_is_done_all_the_same() -> None:
    odd = pa.table({"sentences": pa.array(["no list"]), "usage": pa.array([1])})
    assert Meter("run/0").batch(lambda table: table, odd) is odd


def test_entries_are_json_and_written_sparingly(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[Any] = []
    from ray.experimental import internal_kv

    monkeypatch.setattr(internal_kv, "_internal_kv_put", lambda key, text, namespace: written.append((key, json.loads(text))))
    mine = Meter("run/3")
    mine.enter(Phase.LOADING)

    def ask(table: pa.Table) -> pa.Table:
        for _ in range(1000):
            mine.answered(1, 10)
        return table

    mine.batch(ask, rows(1000))
    assert len(written) < 10, "not once a prompt"
    assert {key for key, _ in written} == {written[0][0]} and written[0][0].startswith("run/3/")
    last = written[-1][1]
    assert last == {"phase": "scoring", "rows": 1, "sentences": 1000, "in_hand": 0, "begun": 0, "tokens": 10_000}


def test_a_store_that_fails_stops_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    from ray.experimental import internal_kv

    def fail(*_: object, **__: object) -> None:
        raise ConnectionError("gone")

    monkeypatch.setattr(internal_kv, "_internal_kv_put", fail)
    assert Meter("run/0").batch(lambda table: table, rows(2)).num_rows == 1


def test_workers_add_up_and_the_furthest_tells_the_phase() -> None:
    total = add_up([Counts(Phase.WARMING_UP), Counts(Phase.SCORING, 2, 6, 4, 1, 90), Counts(Phase.LOADING, 1, 3, 0, 0, 10)])
    assert total == Counts(Phase.SCORING, 3, 9, 4, 1, 100) and add_up([]) == Counts(Phase.LOADING)
