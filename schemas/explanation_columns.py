"""The columns of `explanations/`: one row per response and strategy, with its deciding sentences in a list."""

from collections.abc import Sequence
from enum import StrEnum

import pyarrow as pa


class AnswerStatus(StrEnum):
    """Outcome of a request to a text engine, such as the question why a sentence was flagged.

    `ok`: a readable answer. `unreadable`: an answer that can't be parsed. `too_long`: the prompt exceeds the model's window.
    `refused`: the server refused the prompt. `no_answer`: the answer is empty. `over_budget`: not sent, because the money is
    spent. `error`: the server failed, or RAGAssay failed on the row.
    """

    OK = "ok"
    UNREADABLE = "unreadable"
    TOO_LONG = "too_long"
    REFUSED = "refused"
    NO_ANSWER = "no_answer"
    OVER_BUDGET = "over_budget"
    ERROR = "error"


RETRIED_STATUSES = frozenset({AnswerStatus.TOO_LONG, AnswerStatus.OVER_BUDGET, AnswerStatus.ERROR})
"""Statuses that a later run retries: another window, budget or time may give an answer."""

EXPLANATIONS = "explanations"
"""Folder of the dataset in the output folder."""


def strategy_folder(strategy: str) -> str:
    """Return the folder of a strategy's explanations in the dataset: `strategy` is their first hive key."""
    return f"strategy={strategy}"


QUOTE = pa.struct([("passage", pa.int32()), ("start", pa.int32()), ("end", pa.int32()), ("text", pa.string())])
"""Evidence in the context: the passage (from 0), the character offsets [start, end) in it, and the text."""

EXPLANATION = pa.struct(
    [
        ("sentence", pa.int32()),
        ("category", pa.string()),
        ("reason", pa.string()),
        ("evidence", QUOTE),
        ("consistent", pa.bool_()),
        ("answer", pa.string()),
        ("prompt_tokens", pa.int64()),
        ("completion_tokens", pa.int64()),
        ("request", pa.string()),
        ("status", pa.string()),
        ("error", pa.string()),
    ]
)
"""The reasoner's answer for one deciding sentence. `sentence` is its number in the response, from 0. `category` is null unless
the strategy is `categorized`. `evidence` is null if the answer quotes nothing, or text that no passage contains. `consistent`
states whether the reasoner agrees with the flag; null under `vanilla`. `answer` is the answer's text, null if the question was
not sent. Token counts are those of the server or the engine. `request` is a hash of the whole request; an answered request is
never sent again."""

EXPLANATION_FIELDS = [
    pa.field("row_key", pa.int64(), nullable=False),
    pa.field("row_id", pa.string(), nullable=False),
    pa.field("strategy", pa.string(), nullable=False),
    pa.field("model", pa.string(), nullable=False),
    pa.field("explanations", pa.list_(EXPLANATION), nullable=False),
    pa.field("run_id", pa.string(), nullable=False),
]


def explanations_partition_key(key: str) -> str:
    """Return the name of a partition key in `explanations/`: `input_` is prefixed to a name of its own columns."""
    return f"input_{key}" if key in {"strategy", *(field.name for field in EXPLANATION_FIELDS)} else key


def explanations_schema(partition_keys: Sequence[str]) -> pa.Schema:
    """Return the schema for writing `explanations/`: its partition keys, which become folders, then its columns."""
    return pa.schema([*(pa.field(key, pa.string()) for key in partition_keys), *EXPLANATION_FIELDS])
