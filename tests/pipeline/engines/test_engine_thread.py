"""An engine on a separate thread: calls run one after another, on one thread, with measured times."""

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
    """Records the threads that create and call it, and the largest number of concurrent calls."""

    max_model_len = 100
    tokenizer = object()

    def __init__(self) -> None:
        self.threads = {threading.get_ident()}
        self.concurrent = self.most_concurrent = 0
        self.sizes: list[int] = []

    def label_logprobs(self, prompts: Sequence[Sequence[int]], labels: Sequence[int]) -> EngineOutput:
        self.concurrent += 1
        self.most_concurrent = max(self.most_concurrent, self.concurrent)
        self.threads.add(threading.get_ident())
        self.sizes.append(len(prompts[0]))
        time.sleep(SECONDS)
        self.concurrent -= 1
        lengths = np.array([len(p) for p in prompts])
        return EngineOutput(np.zeros((len(prompts), len(labels))), lengths, lengths * 0)


def test_concurrent_calls_run_on_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    engines: list[SlowEngine] = []

    def load() -> SlowEngine:
        engines.append(SlowEngine())
        return engines[0]

    called: list[tuple[float, ...]] = []
    monkeypatch.setattr(engine_thread, "report_call", lambda *values: called.append(values))
    thread = EngineThread(load)
    with ThreadPoolExecutor(4) as pool:
        outputs = list(pool.map(lambda size: thread.label_logprobs([[1] * size], [2]), range(1, 9)))
    assert [o.tokens_computed.tolist() for o in outputs] == [[n] for n in range(1, 9)]
    assert engines[0].most_concurrent == 1 and len(engines[0].threads) == 1 and threading.get_ident() not in engines[0].threads
    assert sorted(called) == sorted((o.tokens_computed.sum(), 0, o.seconds, o.idle_seconds) for o in outputs)
    assert min(o.seconds for o in outputs) >= SECONDS


def test_idle_time_is_the_time_between_two_calls() -> None:
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


def test_an_error_while_loading_reaches_the_caller() -> None:
    def fail() -> SlowEngine:
        raise ModelError(EXAMPLE, text="no such model")

    with raises("test.example"):
        EngineThread(fail)
