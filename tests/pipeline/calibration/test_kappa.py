"""Cohen's kappa equals that of scikit-learn."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from ragassay.pipeline.calibration.kappa import measure_agreement


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=60))
def test_kappa_equals_that_of_scikit_learn(labels: list[tuple[bool, bool]]) -> None:
    agreement = measure_agreement(labels)
    assert agreement is not None
    first, second = zip(*labels, strict=True)
    if agreement.kappa is None:
        assert len({*first, *second}) == 1
    else:
        expected = cohen_kappa_score(first, second)
        assert not math.isnan(expected) and agreement.kappa == pytest.approx(expected, abs=1e-12)
    assert agreement.low <= agreement.share <= agreement.high


def test_no_items_have_no_agreement() -> None:
    assert measure_agreement([]) is None
