"""The estimate is PPI++ where that is known, exact where all is labelled, and its intervals hold what they state."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragassay.pipeline.arrays import Floats
from ragassay.pipeline.calibration.prediction_powered import (
    Cells,
    Sample,
    bands_of,
    cells_of,
    classical,
    labels_to_halve,
    limits,
    powered,
    share_of,
)
from tests.benchmarks.estimate import drawn, normal_ppi, simulated, strata_of

ROWS, DRAWS, POPULATIONS = 1500, 1000, 20


def plain(rows: list[int], wrong: list[bool]) -> Sample:
    return Sample(np.array(rows), np.array(wrong), np.ones(len(rows)), np.zeros(len(rows), dtype=np.int64))


@pytest.mark.parametrize("seed", range(5))
def test_by_the_verdict_alone_it_is_ppi_plus_plus(seed: int) -> None:
    rng = np.random.default_rng(seed)
    logs = simulated("good", 0.3, rng, ROWS)
    sample = drawn(logs, strata_of(logs, "random"), 80, rng)
    by_verdict = cells_of((~logs.flagged).astype(np.int64), sample)
    assert share_of(by_verdict).value == pytest.approx(normal_ppi(logs, sample).value, abs=1e-12)


@given(st.integers(0, 2**32), st.integers(1, 40))
def test_ends_lie_around_it(seed: int, labels: int) -> None:
    rng = np.random.default_rng(seed)
    logs = simulated("good", float(rng.uniform(0, 1)), rng, 60)
    sample = drawn(logs, strata_of(logs, "random"), labels, rng)
    for cells in (powered(logs.flagged, logs.scores, sample), classical(60, sample)):
        assert cells.shares.sum() == pytest.approx(1)
        found = share_of(cells)
        assert 0 <= found.low <= found.value <= found.high <= 1
        assert found.low < found.high
        assert 0 <= labels_to_halve(cells, labels, 60) <= 60 - labels


def test_of_rows_that_are_all_labelled_nothing_is_uncertain() -> None:
    logs = simulated("useless", 0.2, np.random.default_rng(0), 200)
    sample = plain(list(range(200)), logs.wrong.tolist())
    found = share_of(powered(logs.flagged, logs.scores, sample))
    assert found.value == pytest.approx(0.2) and found.high - found.low < 1e-3


def test_what_nobody_saw_may_be_there() -> None:
    flagged = np.arange(1000) < 200
    scores = np.linspace(-1, 1, 1000)
    all_right = share_of(powered(flagged, scores, plain(list(range(0, 1000, 20)), [False] * 50)))
    assert all_right.low == 0 == all_right.value and 0.04 < all_right.high < 0.1
    as_flagged = share_of(powered(flagged, scores, plain(list(range(0, 1000, 20)), [True] * 10 + [False] * 40)))
    assert as_flagged.value == pytest.approx(0.2) and as_flagged.low < 0.17 and as_flagged.high > 0.23
    none_flagged = share_of(powered(flagged, scores, plain(list(range(500, 510)), [False] * 10)))
    assert none_flagged.high > 0.2  # the flagged ones, of which nobody has seen one, may all be wrong
    last = share_of(powered(np.arange(20) == 0, np.zeros(20), plain(list(range(1, 20)), [False] * 19)))
    assert last.high > 0.04  # one row is left, and it is the only flagged one
    one = share_of(powered(flagged, scores, plain([3], [True])))
    assert one.high > 0.95 and one.low < 0.2


def test_bands_hold_as_many_labels_each_and_follow_the_verdict() -> None:
    rng = np.random.default_rng(1)
    scores = rng.normal(size=5000)
    flagged = scores < -0.5
    rows = rng.choice(5000, 200, replace=False)
    bands = bands_of(flagged, scores, rows)
    counts = np.bincount(bands[rows])
    assert len(counts) > 4 and counts.min() >= 20
    assert set(bands[flagged]).isdisjoint(bands[~flagged])
    assert len(set(bands_of(np.ones(50, dtype=bool), np.zeros(50), np.arange(50)))) == 1  # equal scores are not parted


@given(st.integers(0, 2**32))
def test_more_labels_that_say_the_same_are_narrower(seed: int) -> None:
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.ones(4))
    cells = Cells(shares, rng.uniform(size=4), rng.integers(2, 30, 4).astype(float), shares * 1e6, 0.0)
    widths = [found.high - found.low for found in (share_of(cells.with_labels(times)) for times in (1, 2, 4, 8))]
    assert widths == sorted(widths, reverse=True)


@pytest.mark.parametrize("design", ["random", "verdict and margin"])
@pytest.mark.parametrize("labels", [60, 200])
@pytest.mark.parametrize("judge", ["good", "useless", "inverted", "flags all"])
def test_intervals_hold_what_they_state(judge: str, labels: int, design: str) -> None:
    """Of 1,000 draws at least 93.5 % where 95 % are stated: two standard errors of the simulation."""
    for rate in (0.03, 0.2, 0.5):
        rng = np.random.default_rng([labels, round(100 * rate), len(judge)])
        found: list[Cells] = []
        for draw in range(DRAWS):
            if draw % (DRAWS // POPULATIONS) == 0:
                logs = simulated(judge, rate, rng, ROWS)
                strata = strata_of(logs, design)
            found.append(powered(logs.flagged, logs.scores, drawn(logs, strata, labels, rng)))
        width = max(len(cells.shares) for cells in found)

        def padded(name: str, fill: float, found: list[Cells] = found, width: int = width) -> Floats:
            arrays = [getattr(cells, name) for cells in found]
            return np.array([np.pad(a, (0, width - len(a)), constant_values=fill) for a in arrays])

        mixing = np.array([cells.mixing for cells in found])
        low, high = limits(padded("shares", 0), padded("rates", 0), padded("labels", 1), padded("sizes", 2), mixing)
        truth = float(logs.wrong.mean())
        held = float(((low <= truth) & (truth <= high)).mean())
        assert held >= 0.935, (judge, labels, design, rate, held)


@pytest.mark.parametrize("judge", ["good", "useless"])
@pytest.mark.parametrize("shares", [(0.2, 0.2), (0.1, 0.5)], ids=["one share", "two shares"])
def test_of_a_scored_sample_the_intervals_hold_the_rate_of_all_rows(judge: str, shares: tuple[float, float]) -> None:
    """Two files are scored in part, as with `--fraction`; the second has twice the faults; 60 rows are labeled."""
    rng = np.random.default_rng([7, len(judge), round(100 * shares[0])])
    draws, held, ignorant = 400, 0, 0
    for draw in range(draws):
        if draw % 30 == 0:
            parts = [simulated(judge, rate, rng, ROWS) for rate in (0.15, 0.3)]
            wrong, flagged, scores = (np.concatenate([getattr(p, n) for p in parts]) for n in ("wrong", "flagged", "scores"))
            share = np.repeat(shares, ROWS)
        mine = rng.uniform(size=2 * ROWS) < share
        scored = int(mine.sum())
        rows = rng.choice(scored, 400 if judge == "good" else 60, replace=False)
        sample = plain(rows.tolist(), wrong[mine][rows].tolist())
        found = share_of(powered(flagged[mine], scores[mine], sample, 1 / share[mine]))
        held += found.low <= wrong.mean() <= found.high
        blind = share_of(powered(flagged[mine], scores[mine], sample))
        ignorant += blind.low <= wrong.mean() <= blind.high
    assert held / draws >= 0.935
    if judge == "good":  # many labels: who takes the scored rows for all is too sure, or asks the wrong rows
        assert ignorant < held


def test_a_sample_of_which_all_is_labelled_is_as_uncertain_as_a_random_sample() -> None:
    logs = simulated("good", 0.2, np.random.default_rng(1), 400)
    rows = plain(list(range(400)), logs.wrong.tolist())
    found = powered(logs.flagged, logs.scores, rows, np.full(400, 4.0))
    share = share_of(found)
    normal = 2 * 1.96 * (0.2 * 0.8 / 400 * (1 - 1 / 4)) ** 0.5
    assert share.value == pytest.approx(0.2) and normal < share.high - share.low < 1.15 * normal
    assert labels_to_halve(found, 400, 400) == 0
    whole = powered(logs.flagged, logs.scores, rows, np.ones(400))
    assert share_of(whole) == share_of(powered(logs.flagged, logs.scores, rows))
