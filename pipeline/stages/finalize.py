"""Finalise: rows of `scored/` from rows of `raw/`."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ragassay.pipeline.arrays import Bools, Floats
from ragassay.pipeline.calibration.probability import probabilities
from ragassay.pipeline.cascade.decide import by_ensemble
from ragassay.pipeline.contain import contain, fault_of
from ragassay.pipeline.members import scores_of
from ragassay.pipeline.stages.measured_language import in_other_languages, not_measured
from ragassay.pipeline.verdict.rule import Rule, apply_rule, flag_sentences
from ragassay.pipeline.verdict.threshold import verdicts
from ragassay.schemas.calibration import ProbabilityMap
from ragassay.schemas.columns import SCORED_SENTENCE, Status


@dataclass(frozen=True)
class VerdictSettings:
    """What turns raw scores into verdicts.

    Attributes:
        values: Member -> which of its numbers is used.
        rule: From values to response scores.
        threshold: tau; None while it is being found, and where no row has a score.
        run_id: Written into every row.
        probability: From response scores to P(supported); None without a calibration.
        languages: ISO 639-1 codes of the languages in which a row gets a verdict; None is every language.
    """

    values: dict[str, str]
    rule: Rule
    threshold: float | None
    run_id: str
    probability: ProbabilityMap | None = None
    languages: tuple[str, ...] | None = None


def finalize_rows(batch: pa.RecordBatch, schema: pa.Schema, settings: VerdictSettings) -> pa.RecordBatch:
    """`finalize_batch`, but a row for which it raises gets the status `error`, and all others come out as without it."""
    return pa.concat_batches(
        contain(
            batch.num_rows,
            lambda some: finalize_batch(batch[some], schema, settings),
            lambda i, error: _failed(batch.slice(i, 1), schema, settings, f"finalize: {fault_of(error)}"),
        )
    )


def _failed(row: pa.RecordBatch, schema: pa.Schema, settings: VerdictSettings, error: str) -> pa.RecordBatch:
    known = {"threshold": settings.threshold, "status": Status.ERROR.value, "error": error, "run_id": settings.run_id}
    kept = set(row.schema.names) - {"sentences", *known}
    columns = [row[f.name] if f.name in kept else pa.array([known.get(f.name)], f.type) for f in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def finalize_batch(batch: pa.RecordBatch, schema: pa.Schema, settings: VerdictSettings) -> pa.RecordBatch:
    """Rows of `scored/` from rows of `raw/`.

    `flag_sentences` says which sentences are flagged. A sentence's `score` is the ensemble's (eq. 5), which keeps the order
    that a positivity policy may lose. A row of which no member that counts says anything has no score, and a status that says
    so: the job may have fewer members than the one that scored it.
    """
    values, counts = scores_of(batch, settings.values)
    scores = apply_rule(settings.rule, values, counts)
    ok = pc.equal(batch["status"], Status.OK.value).to_numpy(zero_copy_only=False)
    size = batch.num_rows
    score = np.full(size, np.nan)
    score[ok] = scores.response
    unjudged = ok & np.isnan(score)
    others = ok & in_other_languages(batch["language"], settings.languages)  # more were measured when they were scored
    score[others] = np.nan

    spans = batch["sentences"]
    lengths = pc.fill_null(pc.list_value_length(spans), 0).to_numpy().astype(np.int64)
    of_ok_row = np.repeat(ok, lengths)
    sentence_score = np.full(len(of_ok_row), np.nan)
    sentence_score[of_ok_row] = scores.sentence
    sentence_score[np.repeat(others, lengths)] = np.nan
    flags = np.zeros(len(of_ok_row), dtype=bool)
    unknown = np.isnan(sentence_score)
    tau = settings.threshold
    flags[of_ok_row] = flag_sentences(scores, counts, np.nan if tau is None else tau)
    flat = spans.flatten()
    structs = pa.StructArray.from_arrays(
        [
            flat.field("text"),
            flat.field("start"),
            flat.field("end"),
            flat.field("repeats"),
            pa.array(sentence_score, mask=unknown),
            pa.array(flags, mask=unknown),
        ],
        fields=list(SCORED_SENTENCE),
    )
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    flagged = np.zeros(size, dtype=np.int32)
    flagged[ok] = np.add.reduceat(flags[of_ok_row].astype(np.int32), np.cumsum(counts) - counts) if len(counts) else 0

    verdict = verdicts(score, np.nan if tau is None else tau)
    columns = {
        "score": pa.array(score, mask=np.isnan(score)),
        "probability": _probability(settings.probability, score),
        "verdict": verdict,
        "threshold": pa.array([tau] * size, type=pa.float64()),
        "decided_by": by_ensemble(verdict),
        "judge_score": pa.nulls(size, pa.float64()),
        "sentences": pa.ListArray.from_arrays(pa.array(offsets), structs, mask=pc.is_null(spans)),
        "flagged_sentences": pa.array(flagged, mask=np.isnan(score)),
        "status": _replaced(batch["status"], unjudged, Status.NOT_JUDGED.value, others, Status.LANGUAGE_NOT_MEASURED.value),
        "error": _replaced(batch["error"], unjudged, _nobody(settings), others, _language_errors(batch, others, settings)),
        "run_id": pa.array([settings.run_id] * size),
    }
    return pa.RecordBatch.from_arrays([columns[f.name] if f.name in columns else batch[f.name] for f in schema], schema=schema)


def _language_errors(batch: pa.RecordBatch, others: Bools, settings: VerdictSettings) -> pa.Array:
    if not others.any():
        return pa.nulls(batch.num_rows, pa.string())
    codes = zip(batch["language"].to_pylist(), others, strict=True)
    return pa.array([not_measured(code, settings.languages or ()) if other else None for code, other in codes], pa.string())


def _replaced(column: pa.Array, unjudged: Bools, first: str, others: Bools, second: str | pa.Array) -> pa.Array:
    return pc.if_else(pa.array(others), second, pc.if_else(pa.array(unjudged), first, column))


def _nobody(settings: VerdictSettings) -> str:
    weights = settings.rule.weights
    counted = [name for name in settings.values if weights is None or weights[name]]
    return f"none of {', '.join(counted)} has a value for any of its sentences"


def _probability(fitted: ProbabilityMap | None, score: Floats) -> pa.Array:
    if fitted is None:
        return pa.nulls(len(score), pa.float64())
    return pa.array(probabilities(fitted, score), mask=np.isnan(score))
