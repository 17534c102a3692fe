"""Two implementations of the engine protocol that agree are the best test of both."""

import pytest

from tests.benchmarks.agreement import differences


@pytest.mark.slow
def test_vllm_and_transformers_agree_in_float32() -> None:
    found = differences("float32", 64)
    assert found["log_odds_sigma"] > 0.01, "the prompts must differ for their agreement to mean something"
    assert found["max"] < 1e-3


@pytest.mark.slow
def test_they_agree_on_an_adapter_too() -> None:
    found = differences("float32", 48, adapter="facts")
    assert found["log_odds_sigma"] > 0.1
    assert found["max"] < 1e-3
