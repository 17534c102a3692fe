"""Preference pairs: two responses to one question over one context, of which one passed."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from tempfile import TemporaryFile

from ragassay.jobs.export.rows import (
    NO_CHOSEN,
    NO_QUESTION,
    NO_REJECTED,
    NOT_BEST,
    SAME_TEXT,
    SCALARS,
    TEXTS,
    Options,
    Read,
    Row,
    Tally,
    answered,
    asked,
    finite,
    key_of,
    prompt,
    provenance,
    rank,
    reason,
)
from ragassay.schemas.columns import HALLUCINATED, SUPPORTED


@dataclass
class _Best:
    """The supported responses to one prompt: how many, and the best one's rank and place."""

    rank: tuple[float, str, str]
    number: int
    count: int = 0


def pairs(read: Read, options: Options, tally: Tally) -> Iterator[Row]:
    """A pair for each hallucinated response that has a supported one beside it.

    The first pass keeps hashes and scores. The second puts the texts of the chosen responses into a temporary file; the
    third finds them there for each rejected one, and compares the texts: an equal hash alone makes no pair.
    """
    supported, rejected = prompts(read, options, tally)
    chosen = {best.number: key for key, best in supported.items() if key in rejected}
    with TemporaryFile() as spool:
        offsets: dict[bytes, int] = {}
        for number, row in enumerate(read([*SCALARS, *TEXTS])):
            if number in chosen:
                offsets[chosen[number]] = spool.tell()
                spool.write(json.dumps(row).encode() + b"\n")
        paired = set()
        for row in read([*SCALARS, *TEXTS]):
            if row["verdict"] != HALLUCINATED or not prompt(row, options):
                continue
            key = key_of(row)
            spool.seek(offsets.get(key, 0))
            best = json.loads(spool.readline()) if key in offsets else None
            if best is None or (best["question"], best["context"]) != (row["question"], row["context"]):
                tally.left_out[NO_CHOSEN] += 1
            elif best["response"] == row["response"]:
                tally.left_out[SAME_TEXT] += 1
            else:
                paired.add(key)
                tally.used += 1
                yield _pair(best, row, options)
    tally.used += len(paired)
    for key, best_of in supported.items():
        tally.left_out[NO_REJECTED if key not in offsets else NOT_BEST] += best_of.count - 1
        if key not in paired:
            tally.left_out[SAME_TEXT if key in offsets else NO_REJECTED] += 1
    tally.left_out = +tally.left_out  # without the zeros


def prompts(read: Read, options: Options, tally: Tally) -> tuple[dict[bytes, _Best], set[bytes]]:
    """Hashes of the prompts that have a supported response, with the best one, and of those that have a hallucinated one."""
    supported: dict[bytes, _Best] = {}
    rejected: set[bytes] = set()
    for number, row in enumerate(read([*SCALARS, "question", "context"])):
        tally.passed += row["verdict"] == SUPPORTED
        why = reason(row, options)
        if why == HALLUCINATED:
            if prompt(row, options):
                rejected.add(key_of(row))
            else:
                tally.left_out[NO_QUESTION] += 1
        elif why:
            tally.left_out[why] += 1
        else:
            best = supported.setdefault(key_of(row), _Best(rank(row), number))
            best.count += 1
            if rank(row) < best.rank:
                best.rank, best.number = rank(row), number
    return supported, rejected


def _pair(chosen: Row, rejected: Row, options: Options) -> Row:
    return {
        "prompt": asked(rejected, options),
        "chosen": [answered(chosen)],
        "rejected": [answered(rejected)],
        "chosen_score": finite(chosen["score"]),
        "rejected_score": finite(rejected["score"]),
        "provenance": {"chosen": provenance(chosen), "rejected": provenance(rejected)},
    }
