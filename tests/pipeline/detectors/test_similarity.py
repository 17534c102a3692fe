"""Novelty and TF-IDF by hand, and against scikit-learn."""

import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction import FeatureHasher
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.metrics.pairwise import cosine_similarity

from ragassay.pipeline.detectors import similarity
from ragassay.pipeline.detectors.frequencies import BUCKETS, Frequencies, count, hashed, merge
from ragassay.pipeline.detectors.similarity import best_by_terms, best_by_vectors, covered
from ragassay.pipeline.detectors.terms import content_terms, has_word_spaces

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


@given(st.lists(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=9)), min_size=1, max_size=9))
def test_terms_are_counted_in_the_buckets_of_scikit_learn(lists: list[list[str]]) -> None:
    theirs = FeatureHasher(BUCKETS, input_type="string", alternate_sign=False).transform(lists).tocsr()
    ours = hashed(lists)
    assert ours.shape == theirs.shape and (ours != theirs).nnz == 0
    assert (ours.indptr == theirs.indptr).all() and (ours.indices == theirs.indices).all()


def test_no_document_has_no_terms() -> None:
    assert hashed([]).shape == (0, BUCKETS)
    assert hashed([[]]).nnz == 0


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


@given(documents, documents, st.integers(1, 40), st.data())
def test_in_slices_it_is_the_same(texts: list[list[str]], parts: list[list[str]], at_once: int, data: st.DataObject) -> None:
    frequencies = count(parts)
    rows = ints(*data.draw(st.lists(st.integers(0, 2), min_size=len(texts), max_size=len(texts))))
    part_rows = ints(*sorted(data.draw(st.lists(st.integers(0, 2), min_size=len(parts), max_size=len(parts)))))
    names = [[" ".join(words) for words in lists] for lists in (texts, parts)]

    def all_three() -> list[np.ndarray]:
        terms = best_by_terms(hashed(texts), rows, hashed(parts), part_rows, frequencies)
        vectors = best_by_vectors(names[0], rows, names[1], part_rows, unit_vectors)
        known = hashed(
            [word for part, of in zip(parts, part_rows, strict=True) if of == row for word in part] for row in range(3)
        )
        shares = covered(hashed(texts), rows, known, frequencies)
        return [terms.value, terms.part, vectors.value, vectors.part, shares]

    whole = all_three()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(similarity, "AT_ONCE", at_once)
        for one, other in zip(whole, all_three(), strict=True):
            np.testing.assert_array_equal(one, other)


def unit_vectors(texts: list[str]) -> np.ndarray:
    vectors = np.array([np.random.default_rng(len(text)).normal(size=24) for text in texts], dtype=np.float32)
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))


def test_a_row_of_many_sentences_and_passages_needs_little_memory() -> None:
    texts, parts = ([[f"w{(7 * i + 31 * k) % 997}" for k in range(15)] for i in range(size)] for size in (300, 4000))
    frequencies, rows, part_rows = count(parts), np.zeros(300, dtype=np.int64), np.zeros(4000, dtype=np.int64)
    known = hashed([[word for part in parts for word in part]])
    names = [[" ".join(words) + str(i) for i, words in enumerate(lists)] for lists in (texts, parts)]
    for doing in (
        lambda: best_by_terms(hashed(texts), rows, hashed(parts), part_rows, frequencies),
        lambda: best_by_vectors(names[0], rows, names[1], part_rows, unit_vectors),
        lambda: covered(hashed(texts), rows, known, frequencies),
    ):
        tracemalloc.start()
        doing()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 160 << 20  # all pairs at once: 470 MiB


@given(documents, documents)
def test_frequencies_merge(a: list[list[str]], b: list[list[str]]) -> None:
    one, both = count(a + b), merge([count(b), count(a)])
    assert one.documents == both.documents and (one.counts == both.counts).all()
    assert merge([]).documents == 0


def test_of_no_document_there_are_no_frequencies() -> None:
    assert hashed(iter([])).shape == (0, BUCKETS)
    assert count([]).documents == 0 and (count([]).idf == 1).all()


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
