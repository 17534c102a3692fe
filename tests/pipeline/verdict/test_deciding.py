"""Deciding sentences: the flagged ones, or the lowest of a response that the aggregate made hallucinated."""

from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from ragassay.pipeline.verdict.deciding import find_deciding_sentences, list_deciding_sentences
from ragassay.schemas.columns import HALLUCINATED, SUPPORTED

SENTENCES = pa.list_(pa.struct([("state", pa.string()), ("score", pa.float64())]))
sentence = st.fixed_dictionaries(
    {"state": st.sampled_from([None, "supported", "doubtful", "flagged"]), "score": st.none() | st.floats(-4, 4)}
)


@given(st.lists(st.lists(sentence, max_size=5), max_size=5))
def test_the_deciding_sentences_of_a_row_and_of_a_batch_are_the_same(rows: list[list[dict[str, Any]]]) -> None:
    batch = pa.array(rows, type=SENTENCES)
    one_by_one = [tuple(find_deciding_sentences(HALLUCINATED, row)) for row in rows]
    assert list_deciding_sentences(batch) == one_by_one
    assert list_deciding_sentences(batch.slice(1)) == one_by_one[1:]
    for row, deciding in zip(rows, one_by_one, strict=True):
        flagged = [i for i, item in enumerate(row) if item["state"] == "flagged"]
        scores = [item["score"] for item in row if item["score"] is not None]
        assert list(deciding) == flagged or (not flagged and [row[i]["score"] for i in deciding] == [min(scores)])
        assert deciding or not (flagged or scores)
        assert find_deciding_sentences(SUPPORTED, row) == find_deciding_sentences(None, row) == []
