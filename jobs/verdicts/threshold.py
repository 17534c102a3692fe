"""Find a threshold that is a quantile of the response scores, and the probabilities at which verdicts and states change."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

import numpy as np

from ragassay.jobs.config.verdict import DEFAULT_QUANTILE, Threshold, VerdictConfig
from ragassay.jobs.display.counted import format_count
from ragassay.jobs.output.partitions import earlier_partitions
from ragassay.jobs.runtime.resources import MODEL_FREE_TASK_CPUS
from ragassay.jobs.runtime.tasks import make_task
from ragassay.jobs.verdicts.finalize_partition import count_score_cells
from ragassay.jobs.verdicts.partitions import CompletePartitions
from ragassay.jobs.verdicts.settings import NO_SCORE
from ragassay.pipeline.calibration.probability import predict_probabilities, predict_probability
from ragassay.pipeline.finalize import VerdictSettings
from ragassay.pipeline.verdict.exact_quantile import ScoreHistogram, find_share_threshold
from ragassay.pipeline.verdict.rule import find_sentence_limits
from ragassay.schemas.manifest import ThresholdRecord

TIED = 0.01
"""Excess of the flagged share over the quantile above which the record mentions ties."""


def find_quantile_threshold(config: VerdictConfig, scores: CompletePartitions, settings: VerdictSettings) -> ThresholdRecord:
    """Find the threshold that is a quantile of the response scores. Without a score it has no value.

    Args:
        config: Its `threshold` sets the quantile and the responses over which it is computed.
        scores: The complete partitions.
        settings: Settings of the verdicts.
    """
    raw, chosen = scores.raw, scores.chosen
    paths = [*chosen, *(earlier_partitions(raw, chosen, config.history.partitions) if config.threshold.of == "history" else [])]
    start = make_task(count_score_cells, MODEL_FREE_TASK_CPUS)

    def count_cells(low: int, high: int) -> Iterator[ScoreHistogram]:
        tasks = [start(raw[path], settings, low, high) for path in sorted(paths)]
        while tasks:  # one result at a time: those of hundreds of partitions take a gigabyte
            yield tasks.pop().result()

    return compute_quantile_threshold(config.threshold, count_cells)


def add_probabilities(threshold: ThresholdRecord, settings: VerdictSettings) -> ThresholdRecord:
    """Add P(supported) of a response at the threshold and of sentences at the limits of their states, where these have one."""
    tau = threshold.value
    if tau is None:
        return threshold
    threshold = replace(threshold, probability=predict_probability(settings.probability, tau))
    if settings.sentence_probability is None:
        return threshold
    limits = np.array(find_sentence_limits(settings.rule, tau))
    flagged, doubtful = predict_probabilities(settings.sentence_probability, limits).tolist()
    return replace(threshold, flagged_probability=flagged, doubtful_probability=doubtful)


def compute_quantile_threshold(
    threshold: Threshold, count_range: Callable[[int, int], Iterable[ScoreHistogram]]
) -> ThresholdRecord:
    """Compute a quantile threshold.

    Args:
        threshold: Settings of the threshold.
        count_range: Counts scores within a range of keys, see `find_share_threshold`.
    """
    target_share = DEFAULT_QUANTILE if threshold.quantile is None else threshold.quantile
    cut = find_share_threshold(count_range, target_share)
    if cut is None:
        return ThresholdRecord(None, NO_SCORE)
    history_text = " and its history" if threshold.of == "history" else ""
    source = f"quantile {target_share:g} of the {format_count(cut.count, 'response')} of this run{history_text}"
    flagged_share = cut.flagged / cut.count
    if flagged_share > target_share + TIED:
        ties = "because many tie (aggregate.positive: cdf or shift makes fewer ties)"
        source += f"; {flagged_share:.1%} have that score or less, {ties}"
    return ThresholdRecord(cut.value, source)
