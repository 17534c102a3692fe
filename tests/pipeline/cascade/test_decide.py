"""A judge's decisions replace verdicts and flags of decided rows, and no scores of the ensemble."""

import math
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from ragassay.pipeline.cascade.decide import make_decisions, replace_verdicts
from ragassay.schemas.columns import MEMBER, scored_schema
from tests.raises import raises

SCHEMA = scored_schema(pa.schema([]))
SENTENCES = st.lists(st.tuples(st.floats(-2, 2, width=32), st.booleans()), min_size=1, max_size=4)
KINDS = st.sampled_from(["judged", "failed", "not asked", "unscored"])
ROWS = st.lists(st.tuples(KINDS, SENTENCES, st.booleans()), max_size=12)


def scored_row(key: int, kind: str, sentences: list[tuple[float, bool]], supported: bool) -> dict[str, Any]:
    is_scored = kind != "unscored"
    flags = [flag for _, flag in sentences]
    return {
        "row_key": key,
        "row_id": f"r{key}",
        "score": 0.5 if is_scored else None,
        "threshold": 0.4 if supported else 0.6,
        "verdict": ("supported" if supported else "hallucinated") if is_scored else None,
        "decided_by": "ensemble" if is_scored else None,
        "sentences": [
            {"text": "a", "start": 0, "end": 1, "score": 0.1, "flagged": flag if is_scored else None} for flag in flags
        ],
        "flagged_sentences": sum(flags) if is_scored else None,
        "status": "ok" if is_scored else "not_judged",
        "run_id": "r",
    }


def judged_row(key: int, kind: str, sentences: list[tuple[float, bool]]) -> dict[str, Any]:
    member = {"name": "j", "sentence_scores": [value for value, _ in sentences]}
    return {"row_key": key, "judge": member if kind in {"judged", "unscored"} else None}


@given(ROWS, st.floats(-1, 1), st.integers(0, 6))
def test_only_decided_rows_change(
    rows: list[tuple[str, list[tuple[float, bool]], bool]], flags_below: float, start: int
) -> None:
    scored = pa.RecordBatch.from_pylist([scored_row(i, *row) for i, row in enumerate(rows)], SCHEMA)[start:]
    answers = [judged_row(i, kind, sentences) for i, (kind, sentences, _) in enumerate(rows) if kind != "not asked"]
    table = pa.Table.from_pylist(answers[::-1], pa.schema([("row_key", pa.int64()), ("judge", MEMBER)]))
    after = replace_verdicts(scored, make_decisions(table, "j", flags_below))
    assert after.schema == SCHEMA and after.num_rows == scored.num_rows
    for old, new, (kind, sentences, _) in zip(scored.to_pylist(), after.to_pylist(), rows[start:], strict=True):
        if kind != "judged":
            assert new == old
            continue
        flags = [value < flags_below for value, _ in sentences]
        lowest = min(value for value, _ in sentences)
        assert (new["decided_by"], new["judge_score"]) == ("j", lowest)
        assert new["verdict"] == ("hallucinated" if any(flags) else "supported") and any(flags) == (lowest < flags_below)
        assert [s["state"] == "flagged" for s in new["sentences"]] == flags and new["flagged_sentences"] == sum(flags)
        unchanged = ("score", "threshold", "probability", "status", "row_id")
        assert {name: new[name] for name in unchanged} == {name: old[name] for name in unchanged}
        assert [s["score"] for s in new["sentences"]] == [s["score"] for s in old["sentences"]]
    again = replace_verdicts(after, make_decisions(table, "j", flags_below))
    assert again.equals(after)


def test_other_sentences_are_refused() -> None:
    scored = pa.RecordBatch.from_pylist([scored_row(1, "judged", [(0.0, True)], True)], SCHEMA)
    table = pa.Table.from_pylist(
        [judged_row(1, "judged", [(0.0, True)] * 2)], pa.schema([("row_key", pa.int64()), ("judge", MEMBER)])
    )
    with raises("escalate.other-sentences"):
        replace_verdicts(scored, make_decisions(table, "j", 0.0))


def test_an_empty_table_has_no_decisions() -> None:
    empty = make_decisions(pa.table({"row_key": pa.array([], pa.int64()), "judge": pa.array([], MEMBER)}), "j", 0.0)
    assert (
        not len(empty.scores)
        and empty.find_indices(np.array([1, 2])).tolist() == [-1, -1]
        and not math.isnan(empty.flags_below)
    )
