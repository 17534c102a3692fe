"""Corruptions change what a sentence says; rephrasings do not, as far as a rule can tell."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragassay.pipeline.detectors.named import EntityKind, find_entities, known_keys
from ragassay.pipeline.training.corrupt import corrupt, drop_sentences, lead_in, rephrase, synthetic

CONTEXT = (
    "The reading room opens at 9 a.m. on Monday and closes at 6 p.m. on Friday. Members may borrow twelve books for 30 days. "
    "Late books cost 20 cents a day, paid to Mrs. Halloran or Mr. Oakes. The room was founded in 1987 by the Tidewren Society. "
    "Visitors must not bring food, and dogs are not allowed before noon."
)
SENTENCES = [
    "The reading room opens at 9 a.m. on Monday and closes at 6 p.m. on Friday.",
    "Members may borrow twelve books for 30 days.",
    "The room was founded in 1987 by the Tidewren Society.",
    "Visitors must not bring food, and dogs are not allowed before noon.",
]
SEEDS = st.integers(0, 10_000)


@given(st.sampled_from(SENTENCES), SEEDS)
def test_a_corruption_is_another_sentence_that_the_context_has_not(sentence: str, seed: int) -> None:
    changed = corrupt(sentence, CONTEXT, Random(seed))
    assert changed is not None
    assert changed != sentence
    assert changed.lower() not in CONTEXT.lower()


@given(st.sampled_from(SENTENCES), SEEDS)
def test_a_rephrasing_names_nothing_new(sentence: str, seed: int) -> None:
    known = known_keys([CONTEXT])
    said = find_entities(rephrase(sentence, Random(seed)))
    assert all(entity.is_in(known) for entity in said if entity.kind is not EntityKind.NAME)


@given(SEEDS)
def test_the_same_seed_gives_the_same_statements(seed: int) -> None:
    assert synthetic(SENTENCES, [], CONTEXT, 3, Random(seed)) == synthetic(SENTENCES, [], CONTEXT, 3, Random(seed))


@given(SEEDS)
def test_both_labels_are_as_many(seed: int) -> None:
    labels = [
        supported
        for _, supported in synthetic(SENTENCES, ["A dropped sentence about nothing else at all."], CONTEXT, 3, Random(seed))
    ]
    assert labels.count(True) == labels.count(False) == 3


def test_nothing_to_change_is_none() -> None:
    assert corrupt("Thank you very much indeed.", CONTEXT, Random(0)) is None


@pytest.mark.parametrize(("sentence", "start"), [("The room is closed.", "the room"), ("Halloran was there.", "Halloran was")])
def test_a_lead_in_keeps_names(sentence: str, start: str) -> None:
    assert start in lead_in(sentence, Random(1))


def test_a_dropped_sentence_is_gone_and_what_labels_speak_of_stays() -> None:
    text = " ".join(SENTENCES)
    spans, at = [], 0
    for sentence in SENTENCES:
        spans.append((text.index(sentence, at), text.index(sentence, at) + len(sentence)))
    for seed in range(20):
        left, dropped = drop_sentences([(text, spans)], ["founded", "borrow"], Random(seed))
        assert dropped == [SENTENCES[3]]
        assert left == [" ".join(SENTENCES[:3])]


def test_short_passages_lose_nothing() -> None:
    text = "One sentence of seven words stands here."
    assert drop_sentences([(text, [(0, len(text))])], [], Random(0)) == ([text], [])


def test_a_number_too_long_for_an_amount_gets_another_last_digit() -> None:
    for number in ("9" * 400, "12345678901234567890"):
        changed = [corrupt(f"Pay it into account {number} today.", "Pay it.", Random(seed)) for seed in range(20)]
        assert all(text is None or text.startswith(f"Pay it into account {number[:-1]}") for text in changed)
        assert any(changed) and f"Pay it into account {number} today." not in changed
