"""Normalise each member's values by its own mean and deviation, then average over members (arXiv 2506.22486, eq. 4, 5)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ragassay.pipeline.arrays import Floats
from ragassay.pipeline.errors import FitError
from ragassay.pipeline.verdict import errors
from ragassay.schemas.stats import Moments


@dataclass(frozen=True)
class Fit:
    """Mean and deviation of one member.

    Attributes:
        mu: Mean of its values over previous responses.
        sigma: Their population standard deviation, > 0.
        count: How many values they come from.
        low: The smallest of them; the `shift` policy needs it.
    """

    mu: float
    sigma: float
    count: int
    low: float


def fit_detector(moments: Moments) -> Fit:
    """Fit mu and sigma of a member that may have little to say: without two different values, every z-score is 0."""
    if moments.low is None or moments.high == moments.low or moments.sigma == 0:
        return Fit(mu=moments.mean, sigma=1.0, count=moments.count, low=moments.mean)
    return Fit(mu=moments.mean, sigma=moments.sigma, count=moments.count, low=moments.low)


def fit_member(name: str, moments: Moments) -> Fit:
    """Fit mu and sigma of a member from its moments.

    Raises:
        FitError: There is no value, or all values are equal (sigma = 0), so that nothing can be told apart.
    """
    if moments.low is None or moments.high is None:
        raise FitError(errors.NO_SENTENCE, member=name)
    # Equal values leave an M2 of rounding size, so the extremes decide.
    if moments.high == moments.low or moments.sigma == 0:
        raise FitError(errors.NO_DEVIATION, member=name, sentences=moments.count, value=moments.mean)
    return Fit(mu=moments.mean, sigma=moments.sigma, count=moments.count, low=moments.low)


def ensemble(values: Mapping[str, Floats], fits: Mapping[str, Fit], weights: Mapping[str, float] | None = None) -> Floats:
    """Ensemble score of every sentence: mean over the M members of the z-scores.

        s_ij = sum_m w_m (s_ij(m) - mu_m) / sigma_m / sum_m w_m,   w_m = 1/M unless a calibration says otherwise

    over the members that have a value.

    Args:
        values: Member -> float64 array, one value a sentence, all of the same length; NaN where it has none.
        fits: Member -> its mu and sigma.
        weights: Member -> w_m; None is equal weights.

    Returns:
        float64 array, one ensemble score a sentence; unbounded, higher = better supported; NaN where no member of weight
        has a value.
    """
    z = np.stack([(x - fits[name].mu) / fits[name].sigma for name, x in values.items()])
    # A member without a value for a sentence leaves its weight to the others.
    w = np.where(np.isnan(z), 0.0, np.array([1.0 if weights is None else weights[m] for m in values])[:, None])
    total = w.sum(axis=0)
    return np.asarray(np.divide((w * np.nan_to_num(z)).sum(axis=0), total, out=np.full(len(total), np.nan), where=total > 0))


def lowest(fits: Mapping[str, Fit], members: Sequence[str], weights: Mapping[str, float] | None = None) -> float:
    """A lower bound of every ensemble score behind these fits: the (weighted) mean of the members' smallest z."""
    z = [(fits[m].low - fits[m].mu) / fits[m].sigma for m in members]
    return float(np.average(z, weights=None if weights is None else [weights[m] for m in members]))
