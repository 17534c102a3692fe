"""Text of bars; speeds and remaining times."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragassay.jobs.progress.bar_state import Bar, SpeedEstimator


class GrowingBar:
    """A bar that grows while it is measured."""

    def __init__(self, total: int | None) -> None:
        self.now = 0.0
        self.speeds = SpeedEstimator(lambda: self.now)
        self.bar = Bar("scoring", "facts", 0, total, "sentences", tokens=0)

    def at(self, now: float, done: int, worked: int | None = None) -> Bar:
        self.now = now
        return self.speeds.measure(replace(self.bar, done=done, done_here=worked, tokens=10 * done))


def test_before_any_progress_speed_and_time_are_unknown() -> None:
    still = GrowingBar(10)
    for now in (0, 5, 90):
        bar = still.at(now, 0)
        assert bar.seconds_left is None and bar.tokens_per_second is None
    assert GrowingBar(0).at(0, 0).seconds_left == 0, "nothing to do takes no time"


def test_speed_and_remaining_time_come_from_the_last_minutes() -> None:
    steady = GrowingBar(500)
    for now in range(1, 21):
        bar = steady.at(now, 10 * now)
    assert bar.tokens_per_second == pytest.approx(100) and bar.seconds_left == pytest.approx(30)


def test_work_of_an_earlier_run_does_not_count_as_speed() -> None:
    resumed = GrowingBar(6_000)
    for now in range(10):
        bar = resumed.at(now, 5_000 + 10 * now, worked=10 * now)
    assert bar.seconds_left == pytest.approx((6_000 - 5_090) / 10)


@given(st.lists(st.tuples(st.floats(0, 100), st.integers(-5, 1000)), max_size=30), st.integers(0, 10_000))
def test_a_speed_is_always_positive_and_a_time_never_negative(steps: list[tuple[float, int]], total: int) -> None:
    growing, now, value = GrowingBar(total), 0.0, 0
    for seconds, growth in steps:  # a count can shrink when a batch with an estimate ends
        now, value = now + seconds, value + growth
        bar = growing.at(now, value)
        assert bar.tokens_per_second is None or bar.tokens_per_second > 0
        assert bar.seconds_left is None or bar.seconds_left >= 0


def test_the_text_of_a_bar() -> None:
    whole = Bar("scoring", "facts", 1_200, 6_400, "sentences", is_estimate=True, tokens_per_second=2_134.4, seconds_left=151)
    assert whole.title == "facts: scoring"
    assert whole.text == "1,200 of about 6,400 sentences, 2,134 tokens/s, about 3 min left"
    assert Bar("loading", "Ray").text == "" and Bar("evaluating").title == "evaluating"
    assert Bar("reading", "", 12, None, "rows").text == "12 rows"
    assert Bar("scoring", "facts", 0, 0, "sentences", seconds_left=0.0).text == "0 of 0 sentences, 0 s left"
