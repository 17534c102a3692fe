"""The passages that a sentence cites by number."""

import pytest

from ragassay.pipeline.text.citations import find_cited_passages


@pytest.mark.parametrize(
    ("sentence", "cited"),
    [
        ("It opens at nine (Passage 2).", (1,)),
        ("It opens at nine [2].", (1,)),
        ("It opens at nine [1][3].", (0, 2)),
        ("It opens at nine [1, 3].", (0, 2)),
        ("It opens at nine 【2】.", (1,)),
        ("According to passages 1 and 3, it opens at nine.", (0, 2)),
        ("Passages 2-3 state that it opens at nine.", (1, 2)),
        ("As Document 3 and source 1 state, it opens.", (0, 2)),
        ("Laut Passage 2 öffnet es um neun.", (1,)),
        ("Según el pasaje 2, abre a las nueve.", (1,)),
        ("Secondo il passaggio 3, apre alle nove.", (2,)),
        ("D'après les passages 1 et 2, il ouvre à neuf heures.", (0, 1)),
        ("根据段落2，九点开门。", (1,)),
        ("第2段说九点开门。", (1,)),
    ],
)
def test_a_sentence_cites_passages_by_number(sentence: str, cited: tuple[int, ...]) -> None:
    assert find_cited_passages(sentence, range(4)) == cited


@pytest.mark.parametrize(
    "sentence",
    [
        "It opens at nine.",
        "It opens at nine (Passage 5).",
        "It opens at nine [1] [7].",
        "All of passages 1 to 4 agree, see passages 1, 2, 3 and 4.",
        "Resource 2 opens at nine.",
        "Document 2.5 of the plan opens at nine.",
        "The source 20 % cheaper opens at nine.",
        "See [2](https://example.org).",
        "Step 2 takes an hour, and section 3 is closed.",
    ],
)
def test_other_numbers_cite_nothing(sentence: str) -> None:
    assert find_cited_passages(sentence, range(4)) == ()


def test_numbers_are_those_of_the_logged_context() -> None:
    """Passages may be in another order, and empty ones are left out."""
    assert find_cited_passages("It opens [2].", (2, 1, 0)) == (1,)
    assert find_cited_passages("It opens [3].", (2, 1, 0)) == (0,)
    assert find_cited_passages("It opens [2].", (0, 2)) == ()
    assert find_cited_passages("It opens [1].", (0,)) == ()
