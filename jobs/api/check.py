"""Check answers one by one: each gives what a run over it alone would, under one calibration."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from ragassay.jobs.api import errors
from ragassay.jobs.api.checked import Checked
from ragassay.jobs.api.in_process import Tell, load, through
from ragassay.jobs.api.rule import judging
from ragassay.jobs.api.stages import row_stages
from ragassay.jobs.config.input import Columns
from ragassay.jobs.config.job import Job, with_dtypes
from ragassay.pipeline.errors import InputError
from ragassay.schemas.columns import passthrough_name


def check_answers(
    job: Job, answers: Sequence[Mapping[str, Any]], like: str | None, calibration: str | None, tell: Tell
) -> list[Checked]:
    """Judge answers.

    Args:
        job: The job.
        answers: Each with question, context and response under the names of `input.columns`; what else they have is
            carried along. A question may be left out where no prompt asks for it.
        like: See `rule.judging`.
        calibration: See `rule.judging`.
        tell: Told what is waited for.

    Returns:
        One an answer, in order.

    Raises:
        RagassayError: An answer lacks something or has it as another type, a model can't be used, or what it is judged by.
    """
    if job.input.columns.messages is not None:  # an answer is asked about by its parts
        job = job.model_copy(update={"input": job.input.model_copy(update={"columns": Columns()})})
    columns = job.input.columns
    table = _table(answers, columns, job.members.need_question)
    job = with_dtypes(job)
    by = judging(job, like, calibration)
    rows = through(load(row_stages(job, by), tell), table, tell).to_pylist()
    ours = {columns.question, columns.context, columns.response, columns.row_id}
    others = [{passthrough_name(key): value for key, value in answer.items() if key not in ours} for answer in answers]
    return [Checked({**row, **other}, by.source, job.splitting.language) for row, other in zip(rows, others, strict=True)]


def _table(answers: Sequence[Mapping[str, Any]], columns: Columns, question_needed: bool) -> pa.Table:
    for number, answer in enumerate(answers, 1):
        where = f"answer {number}" if len(answers) > 1 else "the answer"
        wanted = [columns.question] * question_needed + [columns.context, columns.response]
        missing = [name for name in wanted if name not in answer]
        if missing:
            said = f"; it has {', '.join(map(repr, answer))}" if answer else ""
            raise InputError(errors.MISSING_FIELD, answer=where, fields=" and no ".join(map(repr, missing)), given=said)
    data: dict[str, pa.Array] = {}
    for name, fits, expected in (
        (columns.question, _is_text, "a text or null"),
        (columns.context, _is_context, "a text, a list of texts (the passages), or null"),
        (columns.response, _is_text, "a text or null"),
        *([(columns.row_id, _is_id, "a text or a whole number")] if columns.row_id else []),
    ):
        values = [answer.get(name) for answer in answers]
        for number, value in enumerate(values, 1):
            where = f"answer {number}" if len(answers) > 1 else "the answer"
            if not fits(value):
                raise InputError(errors.FIELD_TYPE, answer=where, field=name, wanted=expected, found=_kind(value))
        data[name] = values
    if columns.row_id:
        ids = data[columns.row_id]
        data[columns.row_id] = [f"answer {i}" if known is None else str(known) for i, known in enumerate(ids, 1)]
    data[columns.context] = [[value] if isinstance(value, str) else value for value in data[columns.context]]
    kinds = {columns.context: pa.list_(pa.string())}
    try:
        return pa.table({name: pa.array(values, kinds.get(name, pa.string())) for name, values in data.items()})
    except UnicodeEncodeError as error:
        raise InputError(errors.NO_UNICODE, character=error.object[error.start]) from error


def _is_text(value: Any) -> bool:
    return value is None or isinstance(value, str)


def _is_context(value: Any) -> bool:
    return _is_text(value) or (isinstance(value, list | tuple) and all(map(_is_text, value)))


def _is_id(value: Any) -> bool:
    return _is_text(value) or (isinstance(value, int) and not isinstance(value, bool))


def _kind(value: Any) -> str:
    if isinstance(value, list | tuple):
        odd = next(item for item in value if not _is_text(item))
        return f"a list with {_kind(odd)} in it"
    names = {bool: "a boolean", int: "a number", float: "a number", dict: "an object"}
    return names.get(type(value), f"a {type(value).__name__}")
