"""Novelty and TF-IDF by hand, and against scikit-learn."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics.pairwise import cosine_similarity

from pipeline.detectors.frequencies import Frequencies, count, hashed, merge
from pipeline.detectors.similarity import best_by_terms, best_by_vectors, covered
from pipeline.detectors.terms import content_terms, has_word_spaces

words = st.lists(st.sampled_from(["leave", "notice", "badge", "floor", "key", "shift", "tariff"]), max_size=8)
documents = st.lists(words, min_size=1, max_size=6)


def ints(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def test_novelty_by_hand() -> None:
    frequencies = count([["badge", "key"], ["badge"], ["floor"]])  # three documents; badge in two of them
    idf = {"badge": math.log(4 / 3) + 1, "key": math.log(4 / 2) + 1, "new": math.log(4 / 1) + 1}
    got = covered(
        hashed([["badge", "new", "badge"], ["key"], [], ["new"]]),
        ints(0, 0, 0, 1),
        hashed([["badge", "key"], ["floor"]]),
        frequencies,
    )
    assert got[[0, 1, 3]] == pytest.approx([idf["badge"] / (idf["badge"] + idf["new"]), 1.0, 0.0])
    assert math.isnan(got[2])


@given(documents, documents)
def test_tfidf_is_scikit_learns(texts: list[list[str]], parts: list[list[str]]) -> None:
    frequencies = count(parts)
    found = best_by_terms(hashed(texts), ints(*[0] * len(texts)), hashed(parts), ints(*[0] * len(parts)), frequencies)
    if not any(parts):
        assert np.isnan(found.value).all()
        return
    vectorizer = TfidfVectorizer(analyzer=lambda terms: terms).fit(parts)
    known = [[term for term in text if term in vectorizer.vocabulary_] for text in texts]
    if known != texts:  # scikit-learn leaves unknown terms out of a text's length, ours does not
        return
    for text, value, part in zip(texts, found.value, found.part, strict=True):
        if not text:
            assert math.isnan(value) and part == -1
            continue
        expected = cosine_similarity(vectorizer.transform([text]), vectorizer.transform(parts))[0]
        assert value == pytest.approx(expected.max(), abs=1e-9) and expected[part] == pytest.approx(expected.max(), abs=1e-9)


@given(documents, documents)
def test_rows_do_not_see_each_other(first: list[list[str]], second: list[list[str]]) -> None:
    frequencies = count(first + second)
    alone = best_by_terms(hashed(first), ints(*[0] * len(first)), hashed(first), ints(*[0] * len(first)), frequencies)
    rows = ints(*[0] * len(first), *[1] * len(second))
    together = best_by_terms(hashed(first + second), rows, hashed(first + second), rows, frequencies)
    assert together.value[: len(first)] == pytest.approx(alone.value, nan_ok=True)
    assert (together.part[: len(first)] == alone.part).all() and (together.part[len(first) :] != 0).all() | (len(first) == 0)


@given(documents, documents)
def test_frequencies_merge(a: list[list[str]], b: list[list[str]]) -> None:
    one, both = count(a + b), merge([count(b), count(a)])
    assert one.documents == both.documents and (one.counts == both.counts).all()
    assert merge([]).documents == 0


def test_unknown_terms_make_a_text_less_like_its_passage() -> None:
    frequencies = Frequencies(0, count([[]]).counts * 0)
    found = best_by_terms(hashed([["key"], ["key", "new"]]), ints(0, 0), hashed([["floor"], ["key"]]), ints(0, 0), frequencies)
    assert found.value == pytest.approx([1.0, math.sqrt(0.5)]) and list(found.part) == [1, 1]


def test_embeddings_choose_within_the_row() -> None:
    vectors = {"a": [1.0, 0.0], "b": [0.6, 0.8], "c": [-1.0, 0.0]}
    found = best_by_vectors(["a", "a"], ints(0, 1), ["c", "b", "c"], ints(0, 0, 1), lambda t: np.array([vectors[x] for x in t]))
    assert found.value == pytest.approx([0.6, 0.0]) and list(found.part) == [1, 2]


def test_terms() -> None:
    assert content_terms("The employees' badges, and I am running 3 floors!", "en") == ["employe", "badg", "run", "floor"]
    assert content_terms("Die Häuser", "de") == ["haus"] and content_terms("ett hus", "tn") == ["ett", "hus"]
    assert has_word_spaces("Open at nine.") and not has_word_spaces("図書館は九時に開きます。") and has_word_spaces("")
