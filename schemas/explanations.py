"""The columns of `explanations/`: a row a response and strategy, its flagged sentences in a list."""

from collections.abc import Sequence
from enum import StrEnum

import pyarrow as pa


class Outcome(StrEnum):
    """What became of the question why a sentence was flagged.

    `ok`: an answer that could be read, whether or not it agrees. `unreadable`: one that could not. `too_long`: the prompt has
    no place in the model's window. `refused`: the server refuses the prompt. `no_answer`: it answered nothing. `over_budget`:
    not asked, since the money was spent. `error`: the server was in trouble, or this program failed on that row.
    """

    OK = "ok"
    UNREADABLE = "unreadable"
    TOO_LONG = "too_long"
    REFUSED = "refused"
    NO_ANSWER = "no_answer"
    OVER_BUDGET = "over_budget"
    ERROR = "error"


ASKED_AGAIN = frozenset({Outcome.TOO_LONG, Outcome.OVER_BUDGET, Outcome.ERROR})
"""Outcomes that another run does not leave as they are: nothing was answered, and another window, budget or hour may do."""

EXPLANATIONS = "explanations"
"""Folder of the dataset below the output folder."""


def part_of(strategy: str) -> str:
    """Folder of a strategy's explanations below the dataset's: `strategy` is their first hive key."""
    return f"strategy={strategy}"


QUOTE = pa.struct([("passage", pa.int32()), ("start", pa.int32()), ("end", pa.int32()), ("text", pa.string())])
"""Evidence as the context has it: [start, end) are characters of the passage, which counts from 0."""

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
"""What the reasoner says of one flagged sentence. `sentence` is its number in the response, from 0. `category` is null but
under the strategy `categorized`; `evidence` where it quotes nothing, or what is in no passage; `consistent`, whether it agrees
with the flag, under `vanilla`, which can't say. `answer` is what it said, null where it was not asked. Tokens are the server's
count, or the engine's. `request` is a hash of all that was asked: an answer to it is never asked for again."""

EXPLANATION_FIELDS = [
    pa.field("row_key", pa.int64(), nullable=False),
    pa.field("row_id", pa.string(), nullable=False),
    pa.field("strategy", pa.string(), nullable=False),
    pa.field("model", pa.string(), nullable=False),
    pa.field("explanations", pa.list_(EXPLANATION), nullable=False),
    pa.field("run_id", pa.string(), nullable=False),
]


def key_name(key: str) -> str:
    """Name of a partition's key in `explanations/`: `input_` is put before one that is ours there."""
    return f"input_{key}" if key in {"strategy", *(field.name for field in EXPLANATION_FIELDS)} else key


def explanations_schema(partition_keys: Sequence[str]) -> pa.Schema:
    """Schema of `explanations/` as it is written: the keys of its partitions, which become folders, stand in front."""
    return pa.schema([*(pa.field(key, pa.string()) for key in partition_keys), *EXPLANATION_FIELDS])
