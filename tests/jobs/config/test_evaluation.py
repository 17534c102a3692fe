import pytest

from tests.jobs.config.texts import assert_refused, job_of


@pytest.mark.parametrize(
    ("text", "fault"),
    [("true_means: yes", "true_means"), ("resamples: -1", "resamples"), ("ignore: ['']", "ignore.0")],
)
def test_faults_are_named(text: str, fault: str) -> None:
    assert_refused(f"evaluation: {{{text}}}", f"evaluation.{fault}")


def test_a_reference_prompt_is_checked() -> None:
    assert_refused("evaluation: {reference: {name: r, base_url: 'http://a', model: m, prompt: x}}", "prompt.judged-once")
    assert job_of("evaluation: {reference: {name: r, base_url: 'http://a', model: m}}").evaluation.reference is not None
