"""Reviewers' lines are read as they were written, and what is none says why."""

import json
from datetime import UTC

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragassay.schemas.review import LEAST_PROBABILITY, ReviewLine, Said

texts = st.text(max_size=30)
places = st.tuples(st.integers(0, 9999), st.integers(1, 9999)).map(lambda p: {"start": p[0], "end": p[0] + p[1]})


@given(
    row_id=texts,
    partition=st.none() | texts,
    place=st.just({}) | places,
    label=st.sampled_from(Said),
    reviewer=st.none() | texts,
    at=st.none() | st.datetimes(timezones=st.just(UTC)),
    probability=st.none() | st.floats(LEAST_PROBABILITY, 1),
)
def test_a_line_comes_back(row_id, partition, place, label, reviewer, at, probability) -> None:  # type: ignore[no-untyped-def]
    line = ReviewLine(
        row_id=row_id, partition=partition, label=label, reviewer=reviewer, at=at, inclusion_probability=probability, **place
    )
    text = line.to_json()
    assert "\n" not in text and ReviewLine.from_json(text) == line


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ({"label": "supported"}, "row_id: Field required"),
        ({"row_id": "a", "label": "fine"}, "label: .*'supported', 'unsupported' or 'unsure'"),
        ({"row_id": "a", "label": "unsure", "start": 3}, "start and end go together"),
        ({"row_id": "a", "label": "unsure", "start": 3, "end": 3}, "end must lie behind start"),
        ({"row_id": "a", "label": "unsure", "inclusion_probability": 0}, "inclusion_probability: .*greater"),
        ({"row_id": "a", "label": "unsure", "probability": 1}, "probability: Extra inputs"),
        ({"row_id": "a", "label": "unsure", "at": "2026-11-22T10:00:00"}, "at: .*timezone"),
        ([], "should be an object"),
    ],
)
def test_what_is_no_line_is_refused(line: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ReviewLine.from_json(json.dumps(line))
