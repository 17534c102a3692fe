"""Passages are cut into pieces at the sentence ends of responses."""

import pytest

from ragassay.pipeline.text.pieces import split_passage


@pytest.mark.parametrize(
    "pieces",
    [
        ["The desk is open from 9 a.m. to 1 p.m. and on Saturdays from 10 a.m. to noon.", "Call No. 4."],
        ["Late buses run every 30 minutes until 4:30 a.m.", "They depart from Market Square."],
        ["Open from 9 a.m. Monday to Friday.", "Ask Dr. Smith, e.g. by mail.", "“Is it free?”", "Yes!", "Approx. five seats."],
    ],
)
def test_passages_have_the_sentence_ends_of_responses(pieces: list[str]) -> None:
    passage = " ".join(pieces)
    assert [passage[start:end] for start, end in split_passage(passage)] == pieces


def test_lines_end_pieces() -> None:
    passage = "Opening hours\n  - Monday, 9 a.m.\n\n  - Friday"
    assert [passage[start:end] for start, end in split_passage(passage)] == ["Opening hours", "- Monday, 9 a.m.", "- Friday"]
