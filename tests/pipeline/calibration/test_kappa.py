"""Cohen's kappa is scikit-learn's."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from ragassay.pipeline.calibration.kappa import agreement_of


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=60))
def test_it_is_that_of_scikit_learn(said: list[tuple[bool, bool]]) -> None:
    found = agreement_of(said)
    assert found is not None
    first, second = zip(*said, strict=True)
    if found.kappa is None:
        assert len({*first, *second}) == 1
    else:
        expected = cohen_kappa_score(first, second)
        assert not math.isnan(expected) and found.kappa == pytest.approx(expected, abs=1e-12)
    assert found.low <= found.share <= found.high


def test_of_nothing_there_is_none() -> None:
    assert agreement_of([]) is None
