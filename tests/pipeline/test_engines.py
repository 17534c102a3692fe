"""Two implementations of the engine protocol that agree are the best test of both."""

import pytest

from tests.benchmarks.agreement import measure


@pytest.mark.slow
def test_vllm_and_transformers_agree_in_float32() -> None:
    found = measure("float32", 200)
    assert found["log_odds_sigma"] > 0.01, "the prompts must differ for their agreement to mean something"
    assert found["vllm_vs_transformers_max"] < 1e-3
    assert found["again_all_from_cache_max"] < 1e-4
    assert found["shuffled_max"] < 1e-4
