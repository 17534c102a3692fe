"""Sentences that add no claim: copies of context sentences, and repetitions within a response."""

import pytest

from ragassay.pipeline.text.repeats import find_repeats

CONTEXT = ["The drug is new. Nobody claims that the drug cures it.\n- Store it dry", "Take two (with water): one, then one."]


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("The drug is new.", True),
        ("THE DRUG – is new", True),
        ("- Store it dry", True),
        ("The drug is new. Nobody claims that the drug cures it.", True),
        ("the drug cures it.", False),  # a part of a sentence can mean its opposite
        ("Nobody claims", False),
        ("Store it", False),
        ("The drug is old.", False),
    ],
)
def test_a_copy_spans_whole_sentences_of_the_context(sentence: str, expected: bool) -> None:
    assert find_repeats(CONTEXT, [sentence, "It costs ten euros."]) == [expected, False]


def test_only_the_first_of_equal_sentences_counts() -> None:
    assert find_repeats(CONTEXT, ["It costs ten.", "Yes.", "It costs ten!", "Yes."]) == [False, False, True, False]


def test_a_response_of_copies_has_no_repeats() -> None:
    assert find_repeats(CONTEXT, ["The drug is new.", "Store it dry."]) == [False, False]


@pytest.mark.parametrize(("first", "copies_count"), [("Yes.", True), ("Sure, thank you!", True), ("At ten.", False)])
def test_words_such_as_yes_are_no_claim(first: str, copies_count: bool) -> None:
    assert find_repeats(CONTEXT, [first, "Store it dry."]) == [False, not copies_count]


def test_attack_invisible_characters_make_no_new_sentence() -> None:
    assert find_repeats(CONTEXT, ["The dr\u200bug is new.", "It costs ten euros."]) == [True, False]
