"""The step `fit`: mu and sigma of every member, and the threshold, from the scores that are whole."""

import time
from dataclasses import dataclass, replace

from rich.console import Console

from ragassay.jobs.output.scored_dataset import open_raw
from ragassay.jobs.progress.task import task
from ragassay.jobs.run import errors
from ragassay.jobs.run.plan import RunPlan
from ragassay.jobs.run.score import Scored
from ragassay.jobs.scoring.checkpoint import begun_files
from ragassay.jobs.scoring.register import refuse_unfinished, waiting_partitions
from ragassay.jobs.verdicts.fit import fit_output
from ragassay.jobs.verdicts.languages import languages_of, refuse_more_languages
from ragassay.jobs.verdicts.parts import calibration_of
from ragassay.jobs.verdicts.verdicts import Decided, Scores, decide, quantile, without_verdict
from ragassay.pipeline.errors import OutputError
from ragassay.pipeline.stages.finalize import VerdictSettings
from ragassay.schemas.manifest import Manifest, ThresholdRecord


@dataclass(frozen=True)
class Fitted:
    """How scores become verdicts, and of which partitions.

    Attributes:
        scores: The partitions that are whole; those of them that get verdicts.
        waiting: Hive paths of the partitions that are not whole.
        decided: Moments, rule and where each comes from.
        threshold: tau, and where it comes from.
        seconds: Wall time.
    """

    scores: Scores
    waiting: frozenset[str]
    decided: Decided
    threshold: ThresholdRecord
    seconds: float

    @property
    def settings(self) -> VerdictSettings:
        """From values to verdicts."""
        return replace(self.decided.settings, threshold=self.threshold.value)


def fit(plan: RunPlan, manifest: Manifest, scored: Scored | None, console: Console) -> Fitted | None:
    """Find how scores become verdicts; `stats/` is brought up to date on the way.

    Args:
        plan: The plan.
        manifest: As the step before left it.
        scored: What this run has scored: the partitions without verdicts are fitted. None fits all that are whole.
        console: Where progress goes.

    Returns:
        How; None where no partition is to get verdicts, because all wait for the rest of their files.

    Raises:
        RagassayError: Nothing can be fitted, or another run has to be ended first.
    """
    started = time.perf_counter()
    job, output = plan.job, plan.output
    if scored is None:
        refuse_unfinished(output, manifest, ())
    waiting = frozenset(_waiting(plan, manifest, scored))
    raw = open_raw(output).without(waiting).partitions
    chosen = list(raw) if scored is None else without_verdict(raw, manifest)
    if not chosen and (waiting or (scored is not None and not raw)):
        if scored is None:
            raise OutputError(errors.NO_WHOLE_PARTITION, output=output.uri)
        return None
    with task(console, "deciding", "moments", unit="partitions"):
        scores = Scores(raw, fit_output(job.members.values, output, waiting), chosen)
    refuse_more_languages(job.splitting, manifest, scores.stats)
    calibration = calibration_of(job, manifest.fingerprint)
    decided = decide(job, calibration, manifest.runs[-1].run_id, scores.stats, chosen)
    languages = languages_of(job, manifest.fingerprint, calibration)
    decided = replace(decided, settings=replace(decided.settings, languages=languages))
    with task(console, "deciding", "threshold"):
        threshold = decided.threshold or quantile(job.verdict, scores, decided.settings)
    return Fitted(scores, waiting, decided, threshold, round(time.perf_counter() - started, 3))


def _waiting(plan: RunPlan, manifest: Manifest, scored: Scored | None) -> set[str]:
    if scored is None:
        return waiting_partitions(manifest, begun_files(plan.output))
    return waiting_partitions(manifest, scored.begun, scored.deferred)
