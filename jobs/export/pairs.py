"""Make preference pairs: a supported and a hallucinated response to the same question and context."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from tempfile import TemporaryFile

import pyarrow as pa

from ragassay.jobs.export.rows import (
    MESSAGES_TYPE,
    NO_CHOSEN,
    NO_QUESTION,
    NO_REJECTED,
    NOT_BEST,
    PROVENANCE_TYPE,
    SAME_TEXT,
    SCALARS,
    TEXTS,
    ExportOptions,
    ExportTally,
    Row,
    RowReader,
    find_omission_reason,
    hash_prompt,
    make_prompt,
    make_prompt_messages,
    make_provenance,
    make_response_message,
    rank_row,
)
from ragassay.jobs.output.scored_dataset import finite_or_none
from ragassay.schemas.columns import HALLUCINATED, SUPPORTED

PAIR_SCHEMA = pa.schema(
    [
        *((name, MESSAGES_TYPE) for name in ("prompt", "chosen", "rejected")),
        *((name, pa.float64()) for name in ("chosen_score", "rejected_score")),
        ("provenance", pa.struct([("chosen", PROVENANCE_TYPE), ("rejected", PROVENANCE_TYPE)])),
    ]
)


@dataclass
class _BestResponse:
    """The supported responses to one prompt: their number, and the rank and row number of the best."""

    rank: tuple[float, str, str]
    number: int
    count: int = 0


def make_pairs(read: RowReader, options: ExportOptions, tally: ExportTally) -> Iterator[Row]:
    """Make a pair for each hallucinated response with a supported response to the same prompt.

    The first pass keeps hashes and scores. The second writes the texts of the chosen responses to a temporary file. The third
    reads them back for each rejected response and compares the texts, because an equal hash alone makes no pair.
    """
    supported, rejected = find_prompts(read, options, tally)
    chosen = {best.number: key for key, best in supported.items() if key in rejected}
    with TemporaryFile() as spool:
        offsets: dict[bytes, int] = {}
        for number, row in enumerate(read([*SCALARS, *TEXTS])):
            if number in chosen:
                offsets[chosen[number]] = spool.tell()
                spool.write(json.dumps(row).encode() + b"\n")
        paired = set()
        for row in read([*SCALARS, *TEXTS]):
            if row["verdict"] != HALLUCINATED or not make_prompt(row, options):
                continue
            key = hash_prompt(row)
            spool.seek(offsets.get(key, 0))
            best = json.loads(spool.readline()) if key in offsets else None
            if best is None or (best["question"], best["context"]) != (row["question"], row["context"]):
                tally.omitted[NO_CHOSEN] += 1
            elif best["response"] == row["response"]:
                tally.omitted[SAME_TEXT] += 1
            else:
                paired.add(key)
                tally.used += 1
                yield _make_pair(best, row, options)
    tally.used += len(paired)
    for key, responses in supported.items():
        tally.omitted[NO_REJECTED if key not in offsets else NOT_BEST] += responses.count - 1
        if key not in paired:
            tally.omitted[SAME_TEXT if key in offsets else NO_REJECTED] += 1
    tally.omitted = +tally.omitted  # drops the zeros


def find_prompts(read: RowReader, options: ExportOptions, tally: ExportTally) -> tuple[dict[bytes, _BestResponse], set[bytes]]:
    """Find the prompts of supported and of hallucinated responses.

    Returns:
        Hash of a prompt -> its best supported response; hashes of the prompts that have a hallucinated response.
    """
    supported: dict[bytes, _BestResponse] = {}
    rejected: set[bytes] = set()
    for number, row in enumerate(read([*SCALARS, "question", "context"])):
        tally.supported += row["verdict"] == SUPPORTED
        omission = find_omission_reason(row, options)
        if omission == HALLUCINATED:
            if make_prompt(row, options):
                rejected.add(hash_prompt(row))
            else:
                tally.omitted[NO_QUESTION] += 1
        elif omission:
            tally.omitted[omission] += 1
        else:
            best = supported.setdefault(hash_prompt(row), _BestResponse(rank_row(row), number))
            best.count += 1
            if rank_row(row) < best.rank:
                best.rank, best.number = rank_row(row), number
    return supported, rejected


def _make_pair(chosen: Row, rejected: Row, options: ExportOptions) -> Row:
    return {
        "prompt": make_prompt_messages(rejected, options),
        "chosen": [make_response_message(chosen)],
        "rejected": [make_response_message(rejected)],
        "chosen_score": finite_or_none(chosen["score"]),
        "rejected_score": finite_or_none(rejected["score"]),
        "provenance": {"chosen": make_provenance(chosen), "rejected": make_provenance(rejected)},
    }
