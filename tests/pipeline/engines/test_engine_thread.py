"""An engine on a thread of its own: calls one after another, in one thread, with their times."""

import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from ragassay.pipeline.engines import engine_thread
from ragassay.pipeline.engines.engine_thread import EngineThread
from ragassay.pipeline.engines.protocol import EngineOutput
from ragassay.pipeline.errors import ModelError
from tests.raises import EXAMPLE, raises

SECONDS = 0.05


class SlowEngine:
    """Says in which thread it was made and called, and whether two calls ever met."""

    max_model_len = 100
    tokenizer = object()

    def __init__(self) -> None:
        self.threads = {threading.get_ident()}
        self.inside = self.met = 0
        self.sizes: list[int] = []

    def label_logprobs(self, prompts: Sequence[Sequence[int]], labels: Sequence[int]) -> EngineOutput:
        self.inside += 1
        self.met = max(self.met, self.inside)
        self.threads.add(threading.get_ident())
        self.sizes.append(len(prompts[0]))
        time.sleep(SECONDS)
        self.inside -= 1
        lengths = np.array([len(p) for p in prompts])
        return EngineOutput(np.zeros((len(prompts), len(labels))), lengths, lengths * 0)


def test_many_callers_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[SlowEngine] = []

    def load() -> SlowEngine:
        made.append(SlowEngine())
        return made[0]

    called: list[tuple[float, ...]] = []
    monkeypatch.setattr(engine_thread, "called", lambda *values: called.append(values))
    thread = EngineThread(load)
    with ThreadPoolExecutor(4) as pool:
        outputs = list(pool.map(lambda n: thread.label_logprobs([[1] * n], [2]), range(1, 9)))
    assert [o.tokens_computed.tolist() for o in outputs] == [[n] for n in range(1, 9)]
    assert made[0].met == 1 and len(made[0].threads) == 1 and threading.get_ident() not in made[0].threads
    assert sorted(called) == sorted((o.tokens_computed.sum(), 0, o.seconds, o.idle_seconds) for o in outputs)
    assert min(o.seconds for o in outputs) >= SECONDS


def test_idle_time_is_what_lies_between_two_calls() -> None:
    thread = EngineThread(SlowEngine)
    thread.warm_up([3])
    first = thread.label_logprobs([[1]], [2])
    time.sleep(2 * SECONDS)
    second = thread.label_logprobs([[1]], [2])
    assert first.idle_seconds == 0
    assert second.idle_seconds >= 2 * SECONDS


def test_warm_up_fits_the_window() -> None:
    engine = SlowEngine()
    EngineThread(lambda: engine).warm_up([3])
    assert engine.sizes == [99]


def test_what_the_engine_raises_reaches_the_caller() -> None:
    def fail() -> SlowEngine:
        raise ModelError(EXAMPLE, text="no such model")

    with raises("test.example"):
        EngineThread(fail)
