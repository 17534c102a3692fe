import pytest

from tests.jobs.config.texts import assert_refused


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("aggregate: {epsilon: .inf}", "verdict.aggregate.epsilon"),
        ("aggregate: {epsilon: .nan}", "verdict.aggregate.epsilon"),
        ("drift: {psi: .inf}", "verdict.drift.psi"),
        ("threshold: {value: 1, quantile: 0.5}", "config.value-and-quantile"),
        ("threshold: {quantile: 7}", "verdict.threshold.quantile"),
        ("aggregate: {positive: none}", "config.positive-scores"),
        ("aggregate: {mean: median}", "verdict.aggregate.mean"),
        ("normalize: {source: frozen}", "config.frozen-file"),
        ("calibration: null", "config.null-calibration"),
    ],
)
def test_faults_are_named(text: str, fault: str) -> None:
    assert_refused(f"verdict: {{{text}}}", fault)
