"""Properties of the choice of flagged sentences."""

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ragassay.jobs.second_pass.explain.choose import FlaggedRows, choose_rows
from ragassay.pipeline.errors import InputError
from tests.raises import raises

ROW = st.tuples(st.integers(0, 2**40), st.floats(-3, 3), st.integers(1, 4), st.sampled_from("abc"))


def make_rows(rows: list[tuple[int, float, int, str]]) -> FlaggedRows:
    keys, scores, counts, strata = zip(*rows, strict=True) if rows else ((), (), (), ())
    numbers = [tuple(range(count)) for count in counts]
    return FlaggedRows(np.array(keys, np.int64), np.zeros(len(rows), np.int64), np.array(scores), numbers, list(strata))


@given(st.lists(ROW, unique_by=lambda row: row[0]), st.integers(1, 30), st.booleans(), st.integers(0, 2**32), st.randoms())
def test_the_choice_is_within_the_limit_and_independent_of_the_order(
    rows: list[tuple[int, float, int, str]], limit: int, stratified: bool, seed: int, random: object
) -> None:
    flagged = make_rows(rows)
    try:
        chosen = choose_rows(flagged, limit, stratified, seed)
    except InputError as error:
        assert error.code == "explain.too-few-sentences" and limit < max(row[2] for row in rows)
        return
    assert flagged.counts[chosen].sum() <= limit and len(set(chosen.tolist())) == len(chosen)
    assert set(chosen) <= set(choose_rows(flagged, limit + 3, stratified, seed))  # a superset
    shuffled = rows.copy()
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    reordered = make_rows(shuffled)
    if len({row[1] for row in rows}) == len(rows):
        assert set(reordered.keys[choose_rows(reordered, limit, stratified, seed)]) == set(flagged.keys[chosen])


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=60), st.integers(1, 20), st.integers(0, 99))
def test_strata_are_balanced(strata: list[str], limit: int, seed: int) -> None:
    flagged = make_rows([(i, 0.0, 1, stratum) for i, stratum in enumerate(strata)])
    chosen = Counter(strata[i] for i in choose_rows(flagged, limit, True, seed))
    counts = Counter(strata)
    assert chosen.total() == min(limit, len(strata))
    assert all(chosen[s] >= min(counts[s], max(chosen.values()) - 1) for s in counts)


def test_the_worst_responses_are_chosen_first() -> None:
    flagged = make_rows([(1, 0.5, 2, "a"), (2, -1.0, 3, "a"), (3, 0.1, 1, "a"), (4, 0.2, 1, "a")])
    assert flagged.keys[choose_rows(flagged, 4, False, 0)].tolist() == [2, 3]
    with raises("explain.too-few-sentences", flagged=3, sentences=2):
        choose_rows(flagged, 2, False, 0)
    assert flagged.keys[choose_rows(flagged, 5, False, 0)].tolist() == [2, 3, 4]
    assert len(choose_rows(flagged, None, False, 0)) == 4
