"""Which flagged sentences are taken: laws that hold for any rows."""

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ragassay.jobs.second_pass.explain.choose import FlaggedRows, choose_rows
from ragassay.pipeline.errors import InputError
from tests.raises import raises

ROW = st.tuples(st.integers(0, 2**40), st.floats(-3, 3), st.integers(1, 4), st.sampled_from("abc"))


def flagged(rows: list[tuple[int, float, int, str]]) -> FlaggedRows:
    keys, scores, counts, strata = zip(*rows, strict=True) if rows else ((), (), (), ())
    numbers = [tuple(range(count)) for count in counts]
    return FlaggedRows(np.array(keys, np.int64), np.zeros(len(rows), np.int64), np.array(scores), numbers, list(strata))


@given(st.lists(ROW, unique_by=lambda row: row[0]), st.integers(1, 30), st.booleans(), st.integers(0, 2**32), st.randoms())
def test_a_budget_is_kept_and_nothing_else_matters_than_the_rows(
    rows: list[tuple[int, float, int, str]], budget: int, stratified: bool, seed: int, random: object
) -> None:
    found = flagged(rows)
    try:
        taken = choose_rows(found, budget, stratified, seed)
    except InputError as error:
        assert error.code == "explain.too-few-sentences" and budget < max(row[2] for row in rows)
        return
    assert found.counts[taken].sum() <= budget and len(set(taken.tolist())) == len(taken)
    assert set(taken) <= set(choose_rows(found, budget + 3, stratified, seed))  # more takes the same and more
    shuffled = rows.copy()
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    other = flagged(shuffled)
    if len({row[1] for row in rows}) == len(rows):
        assert set(other.keys[choose_rows(other, budget, stratified, seed)]) == set(found.keys[taken])


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=60), st.integers(1, 20), st.integers(0, 99))
def test_every_stratum_gets_its_part(strata: list[str], budget: int, seed: int) -> None:
    found = flagged([(i, 0.0, 1, stratum) for i, stratum in enumerate(strata)])
    taken = Counter(strata[i] for i in choose_rows(found, budget, True, seed))
    there = Counter(strata)
    assert taken.total() == min(budget, len(strata))
    assert all(taken[s] >= min(there[s], max(taken.values()) - 1) for s in there)


def test_the_worst_come_first() -> None:
    found = flagged([(1, 0.5, 2, "a"), (2, -1.0, 3, "a"), (3, 0.1, 1, "a"), (4, 0.2, 1, "a")])
    assert found.keys[choose_rows(found, 4, False, 0)].tolist() == [2, 3]
    with raises("explain.too-few-sentences", flagged=3, sentences=2):
        choose_rows(found, 2, False, 0)
    assert found.keys[choose_rows(found, 5, False, 0)].tolist() == [2, 3, 4]
    assert len(choose_rows(found, None, False, 0)) == 4
