"""Compare two implementations of the engine protocol."""

import pytest

from tests.benchmarks.agreement import compare_engines


@pytest.mark.slow
@pytest.mark.engine
def test_vllm_and_transformers_agree_in_float32() -> None:
    """With an adapter, which is merged before an engine loads the weights; without it both engines load the same files."""
    agreement = compare_engines("float32", 16, adapter="facts")
    assert agreement["log_odds_sigma"] > 0.1, "the prompts must differ for the comparison to be meaningful"
    assert agreement["max"] < 1e-3
