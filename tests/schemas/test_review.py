"""Review lines are read as they were written, and errors name the faulty field."""

import json
from datetime import UTC

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragassay.schemas.review import MIN_PROBABILITY, ReviewLabel, ReviewLine

texts = st.text(max_size=30)
spans = st.tuples(st.integers(0, 9999), st.integers(1, 9999)).map(lambda pair: {"start": pair[0], "end": pair[0] + pair[1]})


@given(
    row_id=texts,
    partition=st.none() | texts,
    span=st.just({}) | spans,
    label=st.sampled_from(ReviewLabel),
    reviewer=st.none() | texts,
    at=st.none() | st.datetimes(timezones=st.just(UTC)),
    probability=st.none() | st.floats(MIN_PROBABILITY, 1),
)
def test_a_line_is_read_back(row_id, partition, span, label, reviewer, at, probability) -> None:  # type: ignore[no-untyped-def]
    line = ReviewLine(
        row_id=row_id, partition=partition, label=label, reviewer=reviewer, at=at, inclusion_probability=probability, **span
    )
    text = line.to_json()
    assert "\n" not in text and ReviewLine.from_json(text) == line


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ({"label": "supported"}, "row_id: Field required"),
        ({"row_id": "a", "label": "fine"}, "label: .*'supported', 'unsupported' or 'unsure'"),
        ({"row_id": "a", "label": "unsure", "start": 3}, "start and end must both be set"),
        ({"row_id": "a", "label": "unsure", "start": 3, "end": 3}, "end must be greater than start"),
        ({"row_id": "a", "label": "unsure", "inclusion_probability": 0}, "inclusion_probability: .*greater"),
        ({"row_id": "a", "label": "unsure", "probability": 1}, "probability: Extra inputs"),
        ({"row_id": "a", "label": "unsure", "at": "2026-11-22T10:00:00"}, "at: .*timezone"),
        ([], "should be an object"),
    ],
)
def test_an_invalid_line_is_refused(line: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ReviewLine.from_json(json.dumps(line))
