"""Finalize: convert rows of `raw/` to rows of `scored/`."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ragassay.pipeline.arrays import Bools, Floats, Ints
from ragassay.pipeline.calibration.probability import predict_probabilities
from ragassay.pipeline.cascade.decide import make_decided_by
from ragassay.pipeline.contain import contain, describe_fault
from ragassay.pipeline.member_values import read_scores
from ragassay.pipeline.text.measured_language import find_other_languages, other_language_error
from ragassay.pipeline.verdict.rule import Rule, apply_rule, classify_sentences, decide_verdicts
from ragassay.schemas.calibration import ProbabilityMap
from ragassay.schemas.columns import SCORED_SENTENCE, SentenceState, Status


@dataclass(frozen=True)
class VerdictSettings:
    """Settings that turn member values into verdicts.

    Attributes:
        values: Member -> kind of its value.
        rule: Rule from values to response scores.
        threshold: tau; None before it is determined, and if no row has a score.
        run_id: Written to every row.
        probability: Map from response scores to P(supported); None without a calibration.
        sentence_probability: Map from sentence scores to P(supported); None without a calibration that has it.
        languages: ISO 639-1 codes of the languages in which rows get verdicts; None for every language.
    """

    values: dict[str, str]
    rule: Rule
    threshold: float | None
    run_id: str
    probability: ProbabilityMap | None = None
    sentence_probability: ProbabilityMap | None = None
    languages: tuple[str, ...] | None = None


def finalize_rows(batch: pa.RecordBatch, schema: pa.Schema, settings: VerdictSettings) -> pa.RecordBatch:
    """Run `finalize_batch`; a row for which it raises gets the status `error` and does not affect other rows."""
    return pa.concat_batches(
        contain(
            batch.num_rows,
            lambda some: finalize_batch(batch[some], schema, settings),
            lambda i, error: _make_failed_row(batch.slice(i, 1), schema, settings, f"finalize: {describe_fault(error)}"),
        )
    )


def _make_failed_row(row: pa.RecordBatch, schema: pa.Schema, settings: VerdictSettings, error: str) -> pa.RecordBatch:
    values = {"threshold": settings.threshold, "status": Status.ERROR.value, "error": error, "run_id": settings.run_id}
    kept = set(row.schema.names) - {"sentences", *values}
    columns = [row[field.name] if field.name in kept else pa.array([values.get(field.name)], field.type) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def finalize_batch(batch: pa.RecordBatch, schema: pa.Schema, settings: VerdictSettings) -> pa.RecordBatch:
    """Convert rows of `raw/` to rows of `scored/`.

    A sentence's `score` is the ensemble score before the positivity policy, because the policy can make different scores equal.
    A row without a value of a weighted member has no score, and its status states why: the job may have fewer members than the
    job that scored the row.
    """
    values, counts = read_scores(batch, settings.values)
    scores = apply_rule(settings.rule, values, counts)
    is_ok = pc.equal(batch["status"], Status.OK.value).to_numpy(zero_copy_only=False)
    size = batch.num_rows
    score = np.full(size, np.nan)
    score[is_ok] = scores.response
    is_unjudged = is_ok & np.isnan(score)
    # The scoring job may have measured more languages.
    is_other_language = is_ok & find_other_languages(batch["language"], settings.languages)
    score[is_other_language] = np.nan

    spans = batch["sentences"]
    lengths = pc.fill_null(pc.list_value_length(spans), 0).to_numpy().astype(np.int64)
    is_in_ok_row = np.repeat(is_ok, lengths)
    sentence_score = np.full(len(is_in_ok_row), np.nan)
    sentence_score[is_in_ok_row] = scores.sentence
    sentence_score[np.repeat(is_other_language, lengths)] = np.nan
    has_score = ~np.isnan(sentence_score)
    tau = settings.threshold
    has_missing = _find_missing_terms(batch["evidence"], lengths)[is_in_ok_row]
    states = classify_sentences(scores, np.nan if tau is None else tau, has_missing)
    states = pc.replace_with_mask(pa.nulls(len(is_in_ok_row), pa.string()), pa.array(is_in_ok_row), states)
    states = pc.if_else(pa.array(has_score), states, pa.scalar(None, pa.string()))
    flat_sentences = spans.flatten()
    sentence_arrays = [flat_sentences.field(name) for name in ("text", "start", "end", "repeats")]
    sentence_arrays += [
        pa.array(sentence_score, mask=~has_score),
        _compute_probability(settings.sentence_probability, sentence_score),
        states,
    ]
    structs = pa.StructArray.from_arrays(sentence_arrays, fields=list(SCORED_SENTENCE))
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
    is_flagged = pc.fill_null(pc.equal(states, SentenceState.FLAGGED.value), False).to_numpy(zero_copy_only=False)
    # A row without a sentence adds no count, which `reduceat` can't express.
    flagged = np.bincount(np.repeat(np.arange(size), lengths), weights=is_flagged, minlength=size)

    verdict = decide_verdicts(score, np.nan if tau is None else tau)
    columns = {
        "score": pa.array(score, mask=np.isnan(score)),
        "probability": _compute_probability(settings.probability, score),
        "verdict": verdict,
        "threshold": pa.array([tau] * size, type=pa.float64()),
        "decided_by": make_decided_by(verdict),
        "judge_score": pa.nulls(size, pa.float64()),
        "sentences": pa.ListArray.from_arrays(pa.array(offsets), structs, mask=pc.is_null(spans)),
        "flagged_sentences": pa.array(flagged.astype(np.int32), mask=np.isnan(score)),
        "status": _replace(
            batch["status"], is_unjudged, Status.NOT_JUDGED.value, is_other_language, Status.LANGUAGE_NOT_MEASURED.value
        ),
        "error": _replace(
            batch["error"],
            is_unjudged,
            _no_value_error(settings),
            is_other_language,
            _language_errors(batch, is_other_language, settings),
        ),
        "run_id": pa.array([settings.run_id] * size),
    }
    return pa.RecordBatch.from_arrays(
        [columns[field.name] if field.name in columns else batch[field.name] for field in schema], schema=schema
    )


def _find_missing_terms(evidence: pa.Array, lengths: Ints) -> Bools:
    """Return whether a detector names a term of each sentence that the context lacks; false where a row has no evidence."""
    counts = pc.fill_null(pc.list_value_length(evidence), 0).to_numpy().astype(np.int64)
    has_missing = np.zeros(lengths.sum(), dtype=bool)
    terms = pc.fill_null(pc.list_value_length(evidence.flatten().field("missing")), 0).to_numpy(zero_copy_only=False)
    has_missing[np.repeat(counts > 0, lengths)] = terms > 0
    return has_missing


def _language_errors(batch: pa.RecordBatch, is_other_language: Bools, settings: VerdictSettings) -> pa.Array:
    if not is_other_language.any():
        return pa.nulls(batch.num_rows, pa.string())
    codes = zip(batch["language"].to_pylist(), is_other_language, strict=True)
    return pa.array(
        [other_language_error(code, settings.languages or ()) if is_other else None for code, is_other in codes], pa.string()
    )


def _replace(
    column: pa.Array, is_unjudged: Bools, unjudged_value: str, is_other_language: Bools, other_value: str | pa.Array
) -> pa.Array:
    return pc.if_else(pa.array(is_other_language), other_value, pc.if_else(pa.array(is_unjudged), unjudged_value, column))


def _no_value_error(settings: VerdictSettings) -> str:
    weights = settings.rule.weights
    weighted = [name for name in settings.values if weights is None or weights[name]]
    return f"none of {', '.join(weighted)} has a value for a sentence of the row"


def _compute_probability(probability_map: ProbabilityMap | None, score: Floats) -> pa.Array:
    if probability_map is None:
        return pa.nulls(len(score), pa.float64())
    return pa.array(predict_probabilities(probability_map, score), mask=np.isnan(score))
