"""The Arrow schemas of the three datasets: logs, raw and scored. Nothing else defines a column.

In every one of them a row is a response; its sentences are list columns.
"""

from enum import StrEnum

import pyarrow as pa

SCHEMA_VERSION = 1
METHOD_VERSION = 1
"""Raised when the same settings give other sentences or values than before, so that they never meet in one output folder."""


class Status(StrEnum):
    """Why a row has, or has not, a score. `error`: this program failed on that row, and `error` says where."""

    OK = "ok"
    NO_QUESTION = "no_question"
    NO_CONTEXT = "no_context"
    NO_RESPONSE = "no_response"
    EMPTY_RESPONSE = "empty_response"
    TOO_LONG = "too_long"
    UNREADABLE = "unreadable"
    NOT_JUDGED = "not_judged"
    LANGUAGE_NOT_MEASURED = "language_not_measured"
    NO_ANSWER = "no_answer"
    ERROR = "error"


LOGS = pa.schema(
    [
        pa.field("row_key", pa.int64(), nullable=False),
        pa.field("row_id", pa.string(), nullable=False),
        pa.field("question", pa.string()),
        pa.field("context", pa.list_(pa.string())),
        pa.field("passage_ids", pa.list_(pa.string())),
        pa.field("response", pa.string()),
        pa.field("status", pa.string(), nullable=False),
        pa.field("error", pa.string()),
    ]
)
"""A log row as the plan reads it. `row_key` is file number * 2**32 + row number in the file: unique by construction,
it is what checkpoints and the balance of rows count. `row_id` is the user's. `context` is a list of passages, `passage_ids`
are their ids in the same order, null where the log has none."""

SPAN = pa.struct([("text", pa.string()), ("start", pa.int32()), ("end", pa.int32()), ("repeats", pa.bool_())])
"""A sentence with its character offsets [start, end) into the response. `repeats`: it is, word for word, a sentence of the
context or an earlier one of the response, while others are not; it has no score and does not count in the response's."""

MEMBER = pa.struct(
    [
        ("name", pa.string()),
        ("sentence_scores", pa.list_(pa.float32())),
        ("response_score", pa.float32()),
        ("log_p_yes", pa.list_(pa.float32())),
        ("log_p_no", pa.list_(pa.float32())),
    ]
)
"""What one member of the ensemble says: a value a sentence, higher = better supported, null where it has nothing to go by
(a detector only). `response_score` is the member's value for the whole response, null where it was not asked for, or has
nothing to go by. log P are null for a member that is no SLM."""

EVIDENCE = pa.struct(
    [
        ("passage", pa.int32()),
        ("passage_id", pa.string()),
        ("start", pa.int32()),
        ("end", pa.int32()),
        ("missing", pa.list_(pa.struct([("kind", pa.string()), ("text", pa.string())]))),
        ("notes", pa.list_(pa.string())),
    ]
)
"""What detectors say of a sentence beside its value: the best passage (from 0), its id where the log has one, with the offsets
[start, end) of its best piece, null where none was looked for or found; the numbers, dates, steps and names that the context
lacks; and why a detector has no value."""

USAGE = pa.struct(
    [
        ("name", pa.string()),
        ("prompts", pa.int32()),
        ("tokens_computed", pa.int64()),
        ("tokens_reused", pa.int64()),
        ("engine_seconds", pa.float64()),
        ("idle_seconds", pa.float64()),
    ]
)
"""What a member spent on a row. A prompt shared with another row of the same call is counted once, on the first, and a
repeated row costs nothing. `idle_seconds` are the row's part of the time that the engine waited before the row's call."""

RAW_FIELDS = [
    pa.field("sentences", pa.list_(SPAN)),
    pa.field("members", pa.list_(MEMBER)),
    pa.field("evidence", pa.list_(EVIDENCE)),
    pa.field("usage", pa.list_(USAGE)),
    pa.field("context_windows", pa.int32()),
    pa.field("passage_order", pa.list_(pa.int32())),  # numbers of the passages, from 0, best first; null where not re-ranked
    pa.field("language", pa.string()),  # ISO 639-1 code; null where the texts give no clear evidence
]

SCORED_SENTENCE = pa.struct([*SPAN, ("score", pa.float64()), ("flagged", pa.bool_())])

SCORED_FIELDS = [  # probability: P(supported) by a calibration, null where none was used; judge_score: null unless it decided
    pa.field("score", pa.float64()),
    pa.field("probability", pa.float64()),
    pa.field("verdict", pa.string()),
    pa.field("threshold", pa.float64()),
    pa.field("decided_by", pa.string()),
    pa.field("judge_score", pa.float64()),
    pa.field("sentences", pa.list_(SCORED_SENTENCE)),
    pa.field("flagged_sentences", pa.int32()),
    pa.field("members", pa.list_(MEMBER)),
    pa.field("evidence", pa.list_(EVIDENCE)),
    pa.field("language", pa.string()),
    pa.field("status", pa.string(), nullable=False),
    pa.field("error", pa.string()),
    pa.field("run_id", pa.string(), nullable=False),
]

OUR_NAMES = frozenset(LOGS.names) | {f.name for f in RAW_FIELDS} | {f.name for f in SCORED_FIELDS}

SUPPORTED = "supported"
HALLUCINATED = "hallucinated"

ENSEMBLE = "ensemble"
"""`decided_by` of a response whose verdict is the ensemble's; else it is the name of the judge of the cascade."""


def passthrough_name(name: str) -> str:
    """Name under which an input column that is not ours is carried: `input_` is put before one of our names."""
    return f"input_{name}" if name in OUR_NAMES else name


def logs_schema(passthrough: pa.Schema) -> pa.Schema:
    """Schema of the rows that the plan reads: our columns, then the user's other columns."""
    return pa.schema([*LOGS, *passthrough])


def raw_schema(passthrough: pa.Schema) -> pa.Schema:
    """Schema of `raw/`: row_key, row_id, the user's other columns, question to response, sentences, members, usage."""
    *texts, status, error = LOGS
    return pa.schema([*texts, *passthrough, *RAW_FIELDS, status, error])


def raw_columns(*names: str) -> pa.Schema:
    """Some columns of `raw/`."""
    schema = raw_schema(pa.schema([]))
    return pa.schema([schema.field(name) for name in names])


def scored_schema(passthrough: pa.Schema) -> pa.Schema:
    """Schema of `scored/`: row_key, row_id, question to response, the user's other columns, then the verdict."""
    *texts, _, _ = LOGS
    return pa.schema([*texts, *passthrough, *SCORED_FIELDS])


def passthrough_of_raw(raw: pa.Schema) -> pa.Schema:
    """The user's other columns of a raw dataset."""
    ours = set(raw_schema(pa.schema([])).names)
    return pa.schema([f for f in raw if f.name not in ours])
