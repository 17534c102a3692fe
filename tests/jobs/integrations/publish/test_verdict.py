"""Test the conversion of rows to verdicts, and their division into chunks."""

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ragassay.jobs.integrations.publish.target import SendOptions
from ragassay.jobs.integrations.publish.verdict import (
    MAX_SENTENCES,
    TraceVerdict,
    VerdictSelection,
    build_verdict,
    chunk_verdicts,
    explain_verdict,
)
from ragassay.schemas.columns import HALLUCINATED, SUPPORTED
from tests.jobs.integrations.publish.outputs import row

SELECTION = VerdictSelection("row_id")
OPTIONS = SendOptions("ragassay", datetime(2026, 11, 20, tzinfo=UTC), datetime(2026, 11, 21, tzinfo=UTC))


def make_verdict(label: str, **columns: Any) -> TraceVerdict:
    return build_verdict(row("a", label, **columns), SELECTION)


def test_an_id_depends_only_on_tool_name_and_row() -> None:
    supported = make_verdict(SUPPORTED)
    assert supported.stable_id("phoenix", "n") == make_verdict(HALLUCINATED, run_id="other").stable_id("phoenix", "n")
    other_ids = {
        supported.stable_id("phoenix", "m"),
        supported.stable_id("mlflow", "n"),
        replace(supported, row_id="b").stable_id("phoenix", "n"),
    }
    assert len(other_ids | {supported.stable_id("phoenix", "n")}) == 4
    assert len(supported.stable_id("phoenix", "n")) == 32


def test_a_description_is_bounded() -> None:
    sentences = [{"text": "y " * 5000, "start": 0, "end": 9, "state": "flagged"} for _ in range(MAX_SENTENCES + 3)]
    text = explain_verdict(HALLUCINATED, sentences, None, with_text=True)
    assert len(text) < 12_000 and text.endswith("- and 3 more") and "…" in text


def test_a_response_without_a_flagged_sentence_names_its_lowest() -> None:
    scored_row = row("a", HALLUCINATED)
    for sentence, score in zip(scored_row["sentences"], (0.2, 0.1), strict=True):
        sentence |= {"state": "doubtful", "score": score}
    lines = build_verdict(scored_row, SELECTION).explanation.splitlines()
    assert len(lines) == 2 and scored_row["sentences"][1]["text"] in lines[1]


def test_without_texts_in_the_output_offsets_are_sent() -> None:
    scored_rows = row("a", HALLUCINATED)
    for sentence in scored_rows["sentences"]:
        sentence["text"] = None
    scored_rows["evidence"][1]["missing"][0]["text"] = None
    sent = build_verdict(scored_rows, replace(SELECTION, with_sentences=True))
    assert sent.explanation == "1 of 2 sentences not supported by the context:\n- characters 14 to 30"
    assert all("text" not in sentence for sentence in sent.facts["each_sentence"])


@given(
    st.lists(st.tuples(st.sampled_from("abcdefgh"), st.sampled_from([SUPPORTED, HALLUCINATED, None])), max_size=30),
    st.integers(1, 5),
    st.integers(0, 31),
    st.booleans(),
)
def test_every_row_is_in_one_chunk_for_every_start(
    drawn: list[tuple[str, str | None]], size: int, start: int, only: bool
) -> None:
    scored_rows = [row(name, label) for name, label in drawn]
    counts = Counter(name for name, _ in drawn)
    repeated_ids = {name for name, count in counts.items() if count > 1}
    selection = replace(SELECTION, only_flagged=only)

    def read_from(begin: int) -> tuple[list[str], Counter[str], int]:
        chunks = list(chunk_verdicts(iter(scored_rows), selection, size, start=begin, repeated=repeated_ids))
        assert all(len(chunk.verdicts) <= size for chunk in chunks)
        assert [chunk.end for chunk in chunks] == sorted(chunk.end for chunk in chunks)
        not_sent = sum((chunk.not_sent for chunk in chunks), Counter[str]())
        return [v.row_id for chunk in chunks for v in chunk.verdicts], not_sent, chunks[-1].end

    start = min(start, len(scored_rows))
    sent, not_sent, end = read_from(start)
    assert len(sent) + not_sent.total() == len(scored_rows) - start and end == len(scored_rows)
    all_ids = read_from(0)[0]
    assert len(set(all_ids)) == len(all_ids)  # each id is sent once
    first = [chunk for chunk in chunk_verdicts(iter(scored_rows), selection, size, repeated=repeated_ids) if chunk.end <= start]
    if first:
        rest = read_from(first[-1].end)[0]
        assert [v.row_id for chunk in first for v in chunk.verdicts] + rest == all_ids
