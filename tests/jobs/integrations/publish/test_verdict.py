"""What is sent of a row, and in what chunks."""

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ragassay.jobs.integrations.publish.target import Sending
from ragassay.jobs.integrations.publish.verdict import MOST_SENTENCES, Verdict, Wanted, chunks, explanation, verdict_of
from ragassay.schemas.columns import HALLUCINATED, SUPPORTED
from tests.jobs.integrations.publish.outputs import row

WANTED = Wanted("row_id")
SENDING = Sending("ragassay", datetime(2026, 11, 20, tzinfo=UTC), datetime(2026, 11, 21, tzinfo=UTC))


def verdict(label: str, **more: Any) -> Verdict:
    return verdict_of(row("a", label, **more), WANTED)


def test_an_id_is_of_tool_name_and_row_and_of_nothing_else() -> None:
    one = verdict(SUPPORTED)
    assert one.id_of("phoenix", "n") == verdict(HALLUCINATED, run_id="other").id_of("phoenix", "n")
    others = {one.id_of("phoenix", "m"), one.id_of("mlflow", "n"), replace(one, row_id="b").id_of("phoenix", "n")}
    assert len(others | {one.id_of("phoenix", "n")}) == 4
    assert len(one.id_of("phoenix", "n")) == 32


def test_an_explanation_is_bounded() -> None:
    sentences = [{"text": "y " * 5000, "start": 0, "end": 9, "flagged": True} for _ in range(MOST_SENTENCES + 3)]
    text = explanation(sentences, None, with_text=True)
    assert len(text) < 12_000 and text.endswith("- and 3 more") and "…" in text


def test_where_output_holds_no_text_places_are_told() -> None:
    mine = row("a", HALLUCINATED)
    for sentence in mine["sentences"]:
        sentence["text"] = None
    mine["evidence"][1]["missing"][0]["text"] = None
    told = verdict_of(mine, replace(WANTED, with_sentences=True))
    assert told.explanation == "1 of 2 sentences not supported by the context:\n- characters 14 to 30"
    assert all("text" not in sentence for sentence in told.facts["each_sentence"])


@given(
    st.lists(st.tuples(st.sampled_from("abcdefgh"), st.sampled_from([SUPPORTED, HALLUCINATED, None])), max_size=30),
    st.integers(1, 5),
    st.integers(0, 31),
    st.booleans(),
)
def test_every_row_is_in_one_chunk_wherever_it_begins(
    drawn: list[tuple[str, str | None]], size: int, start: int, only: bool
) -> None:
    mine = [row(name, label) for name, label in drawn]
    counts = Counter(name for name, _ in drawn)
    twice = {name for name, count in counts.items() if count > 1}
    wanted = replace(WANTED, only_flagged=only)

    def read(begin: int) -> tuple[list[str], Counter[str], int]:
        found = list(chunks(iter(mine), wanted, size, start=begin, repeated=twice))
        assert all(len(chunk.verdicts) <= size for chunk in found)
        assert [chunk.end for chunk in found] == sorted(chunk.end for chunk in found)
        left = sum((chunk.left_out for chunk in found), Counter[str]())
        return [v.row_id for chunk in found for v in chunk.verdicts], left, found[-1].end

    start = min(start, len(mine))
    sent, left, end = read(start)
    assert len(sent) + left.total() == len(mine) - start and end == len(mine)
    whole = read(0)[0]
    assert len(set(whole)) == len(whole)  # an id goes out once
    head = [chunk for chunk in chunks(iter(mine), wanted, size, repeated=twice) if chunk.end <= start]
    if head:
        behind = read(head[-1].end)[0]
        assert [v.row_id for chunk in head for v in chunk.verdicts] + behind == whole
