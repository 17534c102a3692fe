"""The listener gets progress reports, and its faults do not stop the work."""

from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from ragassay.pipeline import listener
from ragassay.pipeline.engines.engine_thread import EngineThread
from ragassay.pipeline.engines.protocol import EngineOutput
from ragassay.pipeline.listener import report_answered, report_loaded, set_listener


class RecordingListener:
    def __init__(self) -> None:
        self.reports: list[object] = []

    def on_loaded(self) -> None:
        self.reports.append("loaded")

    def on_answered(self, prompts: int, tokens: int) -> None:
        self.reports.append((prompts, tokens))

    def on_call(self, computed: int, reused: int, seconds: float, idle_seconds: float) -> None:
        self.reports.append((computed, reused))


class FailingListener(RecordingListener):
    def on_loaded(self) -> None:
        raise RuntimeError("broken")

    def on_answered(self, prompts: int, tokens: int) -> None:
        raise RuntimeError("broken")


@pytest.fixture(autouse=True)
def reset_listener() -> Iterator[None]:
    yield
    listener._listener.clear()


def test_only_the_last_listener_gets_reports() -> None:
    report_answered(9, 9)
    first, second = RecordingListener(), RecordingListener()
    set_listener(first)
    report_answered(1, 10)
    set_listener(second)
    report_loaded()
    report_answered(2, 20)
    assert first.reports == [(1, 10)] and second.reports == ["loaded", (2, 20)]


def test_a_failing_listener_stops_nothing() -> None:
    set_listener(FailingListener())
    report_loaded()
    report_answered(1, 1)


def test_an_engine_reports_that_it_is_loaded() -> None:
    class Engine:
        max_model_len, tokenizer = 64, object()

        def label_logprobs(self, prompts: Sequence[Sequence[int]], labels: Sequence[int]) -> EngineOutput:
            recorder.reports.append(len(prompts))
            return EngineOutput(np.zeros((1, 1)), np.ones(1, np.int64), np.zeros(1, np.int64))

    recorder = RecordingListener()
    set_listener(recorder)
    EngineThread(Engine).warm_up([7])
    assert recorder.reports == ["loaded", 1]
