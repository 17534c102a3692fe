"""Check single answers. Each gets the scores of a run whose only row it is, with the same calibration."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import pyarrow as pa

from ragassay.jobs.api import errors
from ragassay.jobs.api.checked_answer import CheckedAnswer
from ragassay.jobs.api.in_process import ReportStep, load_stages, run_stages
from ragassay.jobs.api.resolve_settings import resolve_answer_settings
from ragassay.jobs.api.row_stages import make_row_stages
from ragassay.jobs.config.input import Columns
from ragassay.jobs.config.job import Job, resolve_dtypes
from ragassay.jobs.input.documents import parse_document
from ragassay.pipeline.errors import InputError
from ragassay.schemas.columns import passthrough_name
from ragassay.schemas.manifest import MemberFit


def check_answers(
    job: Job, answers: Sequence[Mapping[str, Any]], history: str | None, calibration: str | None, report_step: ReportStep
) -> list[CheckedAnswer]:
    """Check answers. An SLM finds the evidence, unless the job sets `evidence`.

    Args:
        job: The job.
        answers: Mappings with question, context and response under the names of `input.columns`; other keys are passed
            through. The question is optional if no prompt needs it.
        history: See `resolve_answer_settings`.
        calibration: See `resolve_answer_settings`.
        report_step: Called with the name of each step before it starts.

    Returns:
        One result per answer, in order.

    Raises:
        RagassayError: An answer lacks a field or has one of a wrong type, or a model, the output or the calibration can't be
            used.
    """
    if job.input.columns.messages is not None:  # answers have separate fields instead
        job = job.model_copy(update={"input": job.input.model_copy(update={"columns": Columns()})})
    columns = job.input.columns
    table = _make_table(answers, columns, job.members.need_question)
    job = resolve_dtypes(job.model_copy(update={"members": job.members.with_evidence()}))
    settings = resolve_answer_settings(job, history, calibration)
    rows = run_stages(load_stages(make_row_stages(job, settings), report_step), table, report_step).to_pylist()
    verdict_settings = settings.verdict_settings
    fits = {
        name: MemberFit(**asdict(fit), value=verdict_settings.values[name]) for name, fit in verdict_settings.rule.fits.items()
    }
    used = {columns.question, columns.context, columns.response, columns.row_id}
    passthrough = [{passthrough_name(key): value for key, value in answer.items() if key not in used} for answer in answers]
    return [
        CheckedAnswer({**row, **other_fields}, settings.source, job.splitting.language, fits, verdict_settings.rule.weights)
        for row, other_fields in zip(rows, passthrough, strict=True)
    ]


def _make_table(answers: Sequence[Mapping[str, Any]], columns: Columns, needs_question: bool) -> pa.Table:
    for number, answer in enumerate(answers, 1):
        required = [columns.question] * needs_question + [columns.context, columns.response]
        missing = [name for name in required if name not in answer]
        if missing:
            available = ", ".join(map(repr, answer))
            advice = f". Available: {available}. Name yours in input.columns of a job file (--config)" if answer else ""
            raise InputError(
                errors.MISSING_FIELD,
                answer=_name_answer(number, len(answers)),
                fields=" and no ".join(map(repr, missing)),
                advice=advice,
            )
    data: dict[str, pa.Array] = {}
    for name, is_valid, expected in (
        (columns.question, _is_text, "a string or null"),
        (columns.context, _is_context, "a string, a list of strings or of objects with a text (the passages), or null"),
        (columns.response, _is_text, "a string or null"),
        *([(columns.row_id, _is_id, "a string or an integer")] if columns.row_id else []),
    ):
        values = [answer.get(name) for answer in answers]
        for number, value in enumerate(values, 1):
            if not is_valid(value):
                raise InputError(
                    errors.FIELD_TYPE,
                    answer=_name_answer(number, len(answers)),
                    field=name,
                    expected=expected,
                    actual=_describe_type(value),
                )
        data[name] = values
    if columns.row_id:
        ids = data[columns.row_id]
        data[columns.row_id] = [f"answer {i}" if row_id is None else str(row_id) for i, row_id in enumerate(ids, 1)]
    data[columns.context] = [_to_text(context) for context in data[columns.context]]
    try:
        return pa.table({name: pa.array(values, pa.string()) for name, values in data.items()})
    except UnicodeEncodeError as error:
        raise InputError(errors.NO_UNICODE, character=error.object[error.start]) from error


def _to_text(context: Any) -> str | None:
    """Return a context as the text that a run reads: passages as a JSON list."""
    if _is_text(context):
        text: str | None = context
        return text
    return json.dumps([context] if isinstance(context, Mapping) else context, default=str)


def _name_answer(number: int, total: int) -> str:
    return f"answer {number}" if total > 1 else "the answer"


def _is_text(value: Any) -> bool:
    return value is None or isinstance(value, str)


def _is_context(value: Any) -> bool:
    return _is_text(value) or all(map(_is_passage, value if isinstance(value, list | tuple) else [value]))


def _is_passage(value: Any) -> bool:
    return value is None or parse_document(value) is not None


def _is_id(value: Any) -> bool:
    return _is_text(value) or (isinstance(value, int) and not isinstance(value, bool))


def _describe_type(value: Any) -> str:
    if isinstance(value, list | tuple):
        invalid = next(item for item in value if not _is_passage(item))
        return f"a list that contains {_describe_type(invalid)}"
    names = {bool: "a boolean", int: "a number", float: "a number", dict: "an object without a text"}
    return names.get(type(value), f"a {type(value).__name__}")
