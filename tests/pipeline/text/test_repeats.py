"""Sentences that add no claim: copies of the context, and of what the response has said."""

import pytest

from ragassay.pipeline.text.repeats import repeated

CONTEXT = ["The drug is new. Nobody claims that the drug cures it.\n- Store it dry", "Take two (with water): one, then one."]


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("The drug is new.", True),
        ("THE DRUG – is new", True),
        ("- Store it dry", True),
        ("The drug is new. Nobody claims that the drug cures it.", True),
        ("the drug cures it.", False),  # a part of a sentence may say the opposite of it
        ("Nobody claims", False),
        ("Store it", False),
        ("The drug is old.", False),
    ],
)
def test_a_copy_begins_and_ends_where_a_sentence_of_the_context_does(sentence: str, expected: bool) -> None:
    assert repeated(CONTEXT, [sentence, "It costs ten euros."]) == [expected, False]


def test_only_the_first_of_equal_sentences_counts() -> None:
    assert repeated(CONTEXT, ["It costs ten.", "Yes.", "It costs ten!", "Yes."]) == [False, False, True, False]


def test_a_response_of_copies_is_judged_as_any_other() -> None:
    assert repeated(CONTEXT, ["The drug is new.", "Store it dry."]) == [False, False]


def test_attack_invisible_characters_make_no_new_sentence() -> None:
    assert repeated(CONTEXT, ["The dr\u200bug is new.", "It costs ten euros."]) == [True, False]
