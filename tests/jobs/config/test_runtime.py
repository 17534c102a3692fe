import pytest

from tests.jobs.config.texts import assert_refused, job_of


@pytest.mark.parametrize(
    "text", ["block_mib: .inf", "block_mib: 0", "context_order_mib: -1", "max_error_share: 2", "wait_minutes: -1"]
)
def test_faults_are_named(text: str) -> None:
    assert_refused(f"runtime: {{{text}}}", f"runtime.{text.partition(':')[0]}")


def test_a_wait_is_set_in_minutes() -> None:
    assert job_of("runtime: {wait_minutes: 0.5}").runtime.wait_seconds == 30
