"""The share of hallucinated responses among all, from the verdicts of all and the labels of a few.

Prediction-powered inference (Angelopoulos et al. 2023, arXiv 2301.09633, and PPI++, arXiv 2311.01453) adds to the mean of the
predictions f of all N rows what the n labelled ones Y say that these are wrong by,

    theta(lambda) = 1/N sum_N lambda f  +  1/n sum_n (Y - lambda f),    lambda = cov(Y, f) / var(f),

with the lambda of the smallest variance, so that a useless prediction costs nothing. Here f says in which band of the verdicts
and scores a response lies, as one 0/1 column a band with a lambda each; the estimate then is, term by term, the mean of the
bands' labelled rates, each band with its share W of ALL rows (post-stratification):

    theta = sum_k W_k p_k,     and for the verdict alone W_1 p_1 + W_0 p_0, with lambda = p_1 - p_0.

The normal interval of the papers is too short for few labels or rare faults: none was seen, and so none can be. The interval
here follows Fay and Feuer (1997, Statistics in Medicine 16), who do for weighted sums of counts what Clopper and Pearson do for
one: an end is where the truth would be if one label more had said so; with Beta in place of their Gamma.

Where only a sample of the rows was scored, each scored row stands for w = 1 / share of them. Then W_k are shares of sum w, what
a cell is worth is counted against all of its rows, scored or not, and to the variance comes that of the W_k,

    sum_scored w (w - 1) (p_band - theta)^2 / (sum w)^2,

which with what is left within the bands is the variance of a random sample.
"""

from dataclasses import dataclass, replace

import numpy as np

from ragassay.pipeline.arrays import Bools, Floats, Ints

LEVEL = 0.95
BAND_LABELS = 20
"""Labels that a band of scores has at least, before a verdict's rows are parted into two or more."""
MOST_BANDS = 4
"""Bands of a verdict."""
SAID = 0.75
"""How much of the one label more, at an end of the interval, says what the end is for. By simulation: 1 gives wider intervals
than are needed, 0.5 too short ones where there is one cell (`tests/benchmarks/estimate.py`)."""
TINY = np.finfo(float).tiny
LIGHT, HEAVY = 1e-3, 1e15
"""Weights of a Beta that is all of 0 to 1, and of one that is a point."""


@dataclass(frozen=True)
class Sample:
    """The labelled rows.

    Attributes:
        rows: Their numbers among all rows, each once.
        wrong: Whether each is hallucinated.
        weights: How many rows each stands for: 1 / inclusion probability; all equal in a simple random sample.
        strata: Number of the stratum that each was drawn from, from 0.
    """

    rows: Ints
    wrong: Bools
    weights: Floats
    strata: Ints


@dataclass(frozen=True)
class Cells:
    """Parts of all rows, in each of which the labelled ones are alike a random sample.

    Attributes:
        shares: Share of all rows, summing to 1.
        rates: Share of the labelled ones that is wrong.
        labels: Labels that this rate is worth, above 0.
        sizes: Rows of each.
        mixing: Variance of the estimate that comes of strata that lie in several bands, with these labels.
        drawn: Variance that comes of scoring a sample only, however many labels there are.
        most: Labels that each could have at most, its scored rows; None for its sizes.
    """

    shares: Floats
    rates: Floats
    labels: Floats
    sizes: Floats
    mixing: float
    drawn: float = 0.0
    most: Floats | None = None

    @property
    def could(self) -> Floats:
        """Labels that each could have at most."""
        return self.sizes if self.most is None else self.most

    def with_labels(self, times: float) -> "Cells":
        """The same with so many times the labels, at most all scored rows."""
        return replace(self, labels=np.minimum(self.labels * times, self.could), mixing=self.mixing / times)


@dataclass(frozen=True)
class Share:
    """A share of all rows with its 95 % interval, all 0 to 1."""

    value: float
    low: float
    high: float


def bands_of(flagged: Bools, scores: Floats, rows: Ints) -> Ints:
    """Band of every row: flagged or passed, and among these bands of the score with about as many labels each.

    Args:
        flagged: Whether each of all rows is flagged.
        scores: Score of each.
        rows: Numbers of the labelled ones.

    Returns:
        Number of each row's band, from 0; those of flagged rows come first.
    """
    bands = np.zeros(len(flagged), dtype=np.int64)
    first = 0
    for verdict in (True, False):
        mine = flagged == verdict
        if not mine.any():
            continue
        known = np.sort(scores[rows[mine[rows]]])
        count = int(np.clip(len(known) // BAND_LABELS, 1, MOST_BANDS))
        ends = np.array([len(known) * k // count for k in range(1, count)], dtype=np.int64)
        cuts = (known[ends - 1] + known[ends]) / 2
        bands[mine] = first + np.searchsorted(cuts, scores[mine])
        first += count
    return bands


def cells_of(bands: Ints, sample: Sample, stands: Floats | None = None) -> Cells:
    """Cells by stratum and band; a band is shared among the strata in it as their weights say.

    A band without any label counts as though it had one, that said what all labels together do.

    Args:
        bands: Band of each scored row.
        sample: The labelled rows, at least one.
        stands: How many rows each scored one stands for; None where all rows were scored.
    """
    every = np.ones(len(bands)) if stands is None else stands
    sample = replace(sample, weights=sample.weights * every[sample.rows])
    size = every.sum()
    of_band = np.bincount(bands, every) / size
    number = len(of_band)
    codes, cell = np.unique(sample.strata * number + bands[sample.rows], return_inverse=True)
    band, stratum = codes % number, codes // number
    weight = np.bincount(cell, sample.weights)
    rates = np.bincount(cell, sample.weights * sample.wrong) / weight
    labels = weight**2 / np.bincount(cell, sample.weights**2)  # Kish: as many equal ones would tell as much
    labelled = np.bincount(band, weight, number)
    shares = of_band[band] * weight / labelled[band]
    # A stratum in several bands: how many of its rows lie in which is known from the sample only.
    apart = rates - (np.bincount(band, shares * rates, number) / np.where(labelled, of_band, 1))[band]
    of_stratum = np.bincount(stratum, shares * apart) / np.maximum(np.bincount(stratum, shares), TINY)
    mixing = float((shares**2 * (apart - of_stratum[stratum]) ** 2 / labels).sum())
    without = of_band[(labelled == 0) & (of_band > 0)]
    known = shares > 0
    average = np.average(sample.wrong, weights=sample.weights)
    of_bands = np.bincount(band, shares * rates, number) / np.where(of_band > 0, of_band, 1)
    of_rows = np.where(labelled > 0, of_bands, average)[bands]
    centre = np.average(of_rows, weights=every)
    scored = np.bincount(bands, minlength=number)
    return Cells(
        shares=np.concatenate([shares[known], without]),
        rates=np.concatenate([rates[known], np.full(len(without), average)]),
        labels=np.concatenate([labels[known], np.ones(len(without))]),
        sizes=np.concatenate([shares[known] * size, without * size + 1]),  # the label that it never had is of none of its rows
        mixing=mixing,
        drawn=float((every * (every - 1) * (of_rows - centre) ** 2).sum() / size**2),
        most=np.concatenate([(scored[band] * weight / labelled[band])[known], scored[(labelled == 0) & (of_band > 0)] + 1.0]),
    )


def share_of(cells: Cells) -> Share:
    """The estimate and its interval, see `limits`."""
    value = float(np.clip((cells.shares * cells.rates).sum(), 0, 1))
    low, high = limits(cells.shares, cells.rates, cells.labels, cells.sizes, np.array(cells.mixing), np.array(cells.drawn))
    return Share(value, min(float(low), value), max(float(high), value))


def limits(
    shares: Floats, rates: Floats, labels: Floats, sizes: Floats, mixing: Floats, drawn: Floats | float = 0.0
) -> tuple[Floats, Floats]:
    """Ends of the interval, of one estimate or of many.

        low = min_k Beta^-1(0.025; m_k, v_k),   high = max_k Beta^-1(0.975; m_k, v_k)   with
        m = sum W p',   v = sum W^2 p' (1 - p') / (n' - 1),   n' = n / (1 - n / N)

    where Beta has the mean m and the variance v, and in the cell k one more label stands, SAID of it saying what the end is
    for: wrong for high, right for low.

    Args:
        shares: Array (..., cells), W; 0 fills up what has fewer cells.
        rates: p.
        labels: n.
        sizes: N.
        mixing: Array (...).
        drawn: Array (...), or 0 where all rows were scored.

    Returns:
        Two arrays (...), each 0 to 1.
    """
    from scipy.stats import beta

    left = np.maximum(1 - labels / sizes, 1e-9)  # what is not labelled: of all rows nothing is uncertain
    worth = labels / left
    found = []
    for said, level in ((1 - SAID, (1 - LEVEL) / 2), (SAID, (1 + LEVEL) / 2)):
        more = (rates * worth + said) / (worth + 1)
        before = shares**2 * rates * (1 - rates) / np.maximum(worth - 1, 1)
        after = shares**2 * more * (1 - more) / np.maximum(worth, 1)
        means = np.clip((shares * rates).sum(-1, keepdims=True) + shares * (more - rates), 0, 1)
        variances = before.sum(-1, keepdims=True) - before + after + (mixing * left.max(-1) + drawn)[..., None]
        weight = np.clip(means * (1 - means) / np.maximum(variances, TINY) - 1, LIGHT, HEAVY)
        ends = np.where((means > 0) & (means < 1), beta.ppf(level, means * weight, (1 - means) * weight), means)
        found.append(ends)
    low, high = (np.where(shares > 0, ends, fill) for ends, fill in zip(found, (1.0, 0.0), strict=True))
    none, every = ((shares * rates).sum(-1) <= 0), ((shares * (1 - rates)).sum(-1) <= 0)
    return np.where(none, 0.0, low.min(-1)), np.where(every, 1.0, high.max(-1))


def powered(flagged: Bools, scores: Floats, sample: Sample, stands: Floats | None = None) -> Cells:
    """Cells of the prediction-powered estimate; see `cells_of`."""
    return cells_of(bands_of(flagged, scores, sample.rows), sample, stands)


def classical(size: int, sample: Sample, stands: Floats | None = None) -> Cells:
    """Cells of the estimate from the labels alone: the strata; see `cells_of`."""
    return cells_of(np.zeros(size, dtype=np.int64), sample, stands)


def labels_to_halve(cells: Cells, labels: int, size: int) -> int:
    """How many more labels, drawn as these were and saying what these say, make the interval half as wide.

    Args:
        cells: Those of the estimate.
        labels: Labels that there are.
        size: All rows: more than their labels there can't be.
    """
    found = share_of(cells)
    wanted = (found.high - found.low) / 2
    few, many = 1.0, float((cells.could / cells.labels).max())
    for _ in range(25):
        middle = (few + many) / 2
        now = share_of(cells.with_labels(middle))
        few, many = (few, middle) if now.high - now.low <= wanted else (middle, many)
    return min(int(np.ceil((many - 1) * labels)), size - labels)
