"""Similarity of sentences and parts of a text, in several scripts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragassay.pipeline.text.nearest_parts import NearestParts


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (
            "Each minute costs €0.32.",
            ["Riders must be at least 16.", "A minute costs €0.22.", "Helmets are left to the rider."],
        ),
        (
            "Der Laden schließt um acht.",
            ["Brot kostet drei Euro.", "Geschlossen wird der Laden um 20 Uhr.", "Fragen Sie Anna."],
        ),
        ("店は八時に開きます。", ["パンは三ユーロです。", "店は七時に開きます。", "アンに聞いてください。"]),
    ],
)
def test_the_part_with_the_same_words_is_the_nearest(text: str, parts: list[str]) -> None:
    similarity = NearestParts(parts).compare(text)
    assert similarity.index(max(similarity)) == 1


@given(st.text(), st.lists(st.text(), max_size=6))
def test_similarity_is_between_0_and_1_for_any_text(text: str, parts: list[str]) -> None:
    similarity = NearestParts(parts).compare(text)
    assert len(similarity) == len(parts) and all(0 <= value <= 1 + 1e-9 for value in similarity)
