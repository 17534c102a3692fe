"""Who listens is told, and stops nobody by failing."""

from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from ragassay.pipeline import listener
from ragassay.pipeline.engines.engine_thread import EngineThread
from ragassay.pipeline.engines.protocol import EngineOutput
from ragassay.pipeline.listener import answered, listen, loaded


class Heard:
    def __init__(self) -> None:
        self.said: list[object] = []

    def loaded(self) -> None:
        self.said.append("loaded")

    def answered(self, prompts: int, tokens: int) -> None:
        self.said.append((prompts, tokens))

    def called(self, computed: int, reused: int, seconds: float, idle_seconds: float) -> None:
        self.said.append((computed, reused))


class Failing(Heard):
    def loaded(self) -> None:
        raise RuntimeError("broken")

    def answered(self, prompts: int, tokens: int) -> None:
        raise RuntimeError("broken")


@pytest.fixture(autouse=True)
def nobody() -> Iterator[None]:
    yield
    listener._listener.clear()


def test_the_last_who_listens_is_told_and_nobody_else() -> None:
    answered(9, 9)
    first, second = Heard(), Heard()
    listen(first)
    answered(1, 10)
    listen(second)
    loaded()
    answered(2, 20)
    assert first.said == [(1, 10)] and second.said == ["loaded", (2, 20)]


def test_who_fails_stops_nobody() -> None:
    listen(Failing())
    loaded()
    answered(1, 1)


def test_an_engine_tells_when_it_is_loaded() -> None:
    class Engine:
        max_model_len, tokenizer = 64, object()

        def label_logprobs(self, prompts: Sequence[Sequence[int]], labels: Sequence[int]) -> EngineOutput:
            heard.said.append(len(prompts))
            return EngineOutput(np.zeros((1, 1)), np.ones(1, np.int64), np.zeros(1, np.int64))

    heard = Heard()
    listen(heard)
    EngineThread(Engine).warm_up([7])
    assert heard.said == ["loaded", 1]
