"""Find the sentences that decided that a response is hallucinated: the flagged ones, or the lowest one."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from ragassay.schemas.columns import HALLUCINATED, is_flagged


def find_deciding_sentences(verdict: str | None, sentences: Sequence[Mapping[str, Any]] | None) -> list[int]:
    """Find the deciding sentences of a row of `scored/`.

    Args:
        verdict: Verdict of the response.
        sentences: Its sentences, with `state` and `score`.

    Returns:
        Indices of the flagged sentences, ascending. If there are none, the aggregate decided: index of the sentence with the
        lowest score. Empty unless the response is hallucinated.
    """
    if verdict != HALLUCINATED or not sentences:
        return []
    if flagged := [i for i, sentence in enumerate(sentences) if is_flagged(sentence)]:
        return flagged
    scores = [(sentence["score"], i) for i, sentence in enumerate(sentences) if sentence["score"] is not None]
    return [min(scores)[1]] if scores else []


def list_deciding_sentences(sentences: pa.ListArray) -> list[tuple[int, ...]]:
    """Find the deciding sentences of many hallucinated responses, like `find_deciding_sentences`.

    Args:
        sentences: `sentences` of rows of `scored/`, with `state` and `score`; no row is null.
    """
    return [tuple(find_deciding_sentences(HALLUCINATED, row)) for row in sentences.to_pylist()]
