"""Speeds and times left, of numbers that grow in leaps."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragassay.jobs.progress.bar import WINDOW_SECONDS, Bar, Pace


def pace(*seen: tuple[float, float]) -> Pace:
    made = Pace()
    made.start(*seen[0])
    for now, value in seen[1:]:
        made.add(now, value)
    return made


def test_nothing_is_known_before_anything_has_grown() -> None:
    assert Pace().rate is None and Pace().seconds_left(10) is None
    still = pace((0, 0), (5, 0), (90, 0))
    assert still.rate is None and still.seconds_left(10) is None and still.seconds_left(None) is None
    assert still.seconds_left(0) == 0, "of nothing there is nothing left"


def test_between_two_leaps_the_time_left_runs_down_and_the_speed_stays() -> None:
    steady = pace((0, 0), (10, 100), (20, 200))
    assert steady.rate == 10 and steady.seconds_left(500) == 30
    steady.add(25, 200)
    assert steady.rate == 10 and steady.seconds_left(500) == 25


def test_a_leap_that_takes_longer_than_those_before_slows_it_down() -> None:
    stalled = pace((0, 0), (10, 100), (20, 200), (50, 200))
    assert stalled.rate == pytest.approx(200 / 40)
    assert stalled.seconds_left(500) == pytest.approx(300 / 5 - 10)


def test_what_was_done_before_the_start_does_not_count() -> None:
    resumed = pace((100, 5_000), (110, 5_050))
    assert resumed.rate == 5 and resumed.seconds_left(5_100) == 10
    resumed.start(200, 9_000)
    assert resumed.rate is None


def test_only_the_last_minute_counts() -> None:
    faster = pace((0, 0), *((float(t), float(t)) for t in range(1, 100)), *((99.0 + t, 99.0 + 10 * t) for t in range(1, 100)))
    assert faster.rate == pytest.approx(10) and WINDOW_SECONDS < 99


@given(st.lists(st.tuples(st.floats(0, 100), st.integers(-5, 1000)), max_size=30), st.integers(0, 10_000))
def test_whatever_comes_a_speed_is_positive_and_a_time_is_not_negative(steps: list[tuple[float, int]], total: int) -> None:
    made, now, value = Pace(), 0.0, 0
    for seconds, growth in steps:  # what is counted can shrink: a batch of estimates has ended
        now, value = now + seconds, value + growth
        made.add(now, value)
        assert made.rate is None or made.rate > 0
        left = made.seconds_left(total)
        assert left is None or left >= 0


def test_a_bar_in_words() -> None:
    whole = Bar("scoring", "facts", 1_200, 6_400, "sentences", about=True, tokens_per_second=2_134.4, seconds_left=151)
    assert whole.title == "facts: scoring"
    assert whole.text == "1,200 of about 6,400 sentences, 2,134 tokens/s, about 3 min left"
    assert Bar("loading", "Ray").text == "" and Bar("evaluating").title == "evaluating"
    assert Bar("reading", "", 12, None, "rows").text == "12 rows"
    assert Bar("scoring", "facts", 0, 0, "sentences", seconds_left=0.0).text == "0 of 0 sentences, 0 s left"
