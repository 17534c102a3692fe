"""What an estimate takes for granted, and what is missing, in words."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ragassay.pipeline.arrays import Bools, Floats
from ragassay.pipeline.calibration.prediction_powered import Sample
from ragassay.schemas.estimate import RateRecord

FEW = 20
UNDECIDED = 0.1
"""Share of what was looked at that may be left without a label unsaid."""
ODD = 1e-4
"""A random sample differs so much from all rows with at most this probability."""
OFF = 0.1
"""Share of the rows by which labels may stand for more or fewer unsaid."""
CHANCE = 3.0
"""Standard deviations of what a part of a sample stands for; a whole one has none."""


@dataclass(frozen=True)
class SpokenOf:
    """The scored rows that labels speak of, with a label or without, where they say with what probability each was drawn.

    Attributes:
        weights: How many rows each stands for: 1 / inclusion probability.
        bare: Partitions in which there is none.
        partitions: Partitions.
        domain: Whether the labels speak of rows that `--where` leaves out, so that these are a part of a sample.
    """

    weights: Floats
    bare: int
    partitions: int
    domain: bool


def estimate_notes(
    overall: RateRecord,
    sample: Sample,
    flagged: Bools,
    strata: Sequence[str],
    undecided: int,
    spoken: SpokenOf | None,
    weak: str | None,
) -> Iterator[str]:
    """Notes of an estimate, a sentence each without its full stop.

    Args:
        overall: The estimate of all rows.
        sample: The labelled rows.
        flagged: Whether each of them is flagged.
        strata: Names of the strata.
        undecided: Rows that the labels speak of without giving the response a label.
        spoken: What the labels stand for; None where they have no inclusion probabilities.
        weak: Which model said it, where no person did.
    """
    if weak:
        yield f"the labels are opinions of {weak}: the estimate is of what it would say, not of what is true"
    if spoken is None:
        named = "although they name strata, " if strata else ""
        yield (
            f"the labels have no inclusion_probability: {named}they are taken for a simple random sample of all scored "
            "responses. If people chose what to look at, the estimate is wrong, and the interval does not know it"
        )
    else:
        yield from _stands_for(spoken, overall)
    yield from _unlike(overall, sample, flagged, weighted=spoken is not None)
    for verdict, share in (("flagged", overall.flagged), ("passed", 1 - overall.flagged)):
        labelled = overall.labelled_flagged if verdict == "flagged" else 1 - (overall.labelled_flagged or 0)
        if share and not labelled:
            yield f"none of the {verdict} responses ({share:.1%} of all) has a label: the next ones should be of these"
    if len(sample.rows) < FEW:
        yield f"{len(sample.rows)} labels tell little, whatever the verdicts: the interval is honest, and wide"
    if undecided > UNDECIDED * (len(sample.rows) + undecided):
        yield (
            f"{undecided} responses were looked at without getting a label (unsure, or some of their sentences only): the "
            "estimate takes them to be like the others, which those that are hard to judge may not be"
        )


def _stands_for(spoken: SpokenOf, overall: RateRecord) -> Iterator[str]:
    """Whether the labels are of these rows: a whole sample stands for as many as there are, by its probabilities."""
    found = float(spoken.weights.sum())
    by_chance = CHANCE * float(np.sqrt((spoken.weights * (spoken.weights - 1)).sum())) if spoken.domain else 0.0
    if abs(found - overall.rows) <= OFF * overall.rows + by_chance:
        return
    stand = f"by their inclusion probabilities the labels stand for about {found:,.0f} of {overall.rows:,} scored responses"
    if found > overall.rows:
        yield (
            f"{stand}: they were drawn from more than these, or are of several pages. The estimate is right only if they are a "
            "random sample of these all the same; name the same --where as `review` had, or give the labels of one page"
        )
    elif spoken.bare:
        yield (
            f"{stand}, and {spoken.bare:,} of {spoken.partitions:,} partitions have none: what was drawn before these came, or "
            "with --where, tells nothing of them. Name the same --where here, label a page that `review` draws today, or more "
            "of the page if it is only begun"
        )
    else:
        drawn = round(len(spoken.weights) * overall.rows / found)
        yield (
            f"{stand}: {overall.labels:,} of about {drawn:,} drawn responses have a label, if they were drawn from all. Who "
            "stops early is no harm but a slightly too short interval; who skips the hard ones is: say `u` of these. If "
            "`review` had a --where, name the same here"
        )


def _unlike(overall: RateRecord, sample: Sample, flagged: Bools, *, weighted: bool) -> Iterator[str]:
    """Whether the verdicts of the labelled rows are like those of all; weights count as so many equal ones (Kish)."""
    from scipy.stats import binom

    weights = sample.weights
    count = round(float(weights.sum() ** 2 / (weights**2).sum()))
    share = float(np.average(flagged, weights=weights))
    seen = round(share * count)
    if min(binom.cdf(seen, count, overall.flagged), binom.sf(seen - 1, count, overall.flagged)) >= ODD:
        return
    if weighted:
        yield (
            f"weighted by their inclusion probabilities {share:.1%} of the labelled responses are flagged, of all "
            f"{overall.flagged:.1%}: chance alone draws no such sample. They were drawn otherwise than they say, from other "
            "responses than these, or labelled by choice"
        )
    else:
        yield (
            f"{seen} of {overall.labels} labelled responses are flagged, of all {overall.flagged:.1%}: chance alone draws "
            "no such sample. The estimate is right only if it was chosen by the verdict and nothing else"
        )
