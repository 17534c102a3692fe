"""Two implementations of the engine protocol that agree are the best test of both."""

import pytest

from tests.benchmarks.agreement import differences


@pytest.mark.slow
@pytest.mark.engine
def test_vllm_and_transformers_agree_in_float32() -> None:
    """With an adapter, which is merged before an engine sees it: without one they load weights in the same way."""
    found = differences("float32", 16, adapter="facts")
    assert found["log_odds_sigma"] > 0.1, "the prompts must differ for their agreement to mean something"
    assert found["max"] < 1e-3
