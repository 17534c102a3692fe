"""What the report shows of explanations, which are written here by hand."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ragassay.jobs.output.scored_dataset import open_scored
from ragassay.jobs.report.charts import KINDS, MOST_BARS, kinds_chart
from ragassay.jobs.report.explained import Explanation, count_explanations
from ragassay.jobs.report.gather import gather
from ragassay.jobs.report.marks import BEST, marked
from ragassay.jobs.report.marks import QUOTE as QUOTED
from ragassay.jobs.storage.folder import open_folder
from ragassay.schemas.explanations import EXPLANATION, explanations_schema
from tests.jobs.conftest import here
from tests.jobs.evaluation.conftest import HOSTILE, job, raw_row, write_output

NIGHTS = ("dt=2026-11-02/tenant=a%20b", "dt=2026-11-03/tenant=a%20b")
ROWS = 4
"""Scored responses a night; of every one the second sentence is flagged, and the first is not."""

EMPTY = {field.name: None for field in EXPLANATION}
SECTION = "<h3>Explanations</h3>"
MARK = '<mark class="quote">'


def raw_rows() -> Iterator[dict[str, Any]]:
    """Rows of a night, the last without a score; of the fourth, a detector says what is missing."""
    for row in range(ROWS):
        made = raw_row(row, row, "partial", np.random.default_rng(0))
        odds = [3.0 - 0.01 * row, -3.0 - 0.01 * row]
        for member in made["members"]:
            member["sentence_scores"], member["response_score"] = odds, odds[1]
            member["log_p_yes"], member["log_p_no"] = ([-np.log1p(np.exp(s * v)) for v in odds] for s in (-1, 1))
        lacks = [{"kind": "number", "text": f"9{HOSTILE}"}, {"kind": "odd", "text": "thing"}]
        nothing: dict[str, Any] = {"passage": None, "start": None, "end": None, "notes": []}
        if row == 3:
            made["evidence"] = [{**nothing, "missing": []}, {**nothing, "missing": lacks}]
        yield made
    failed = {"status": "no_context", "error": "why", "members": None, "sentences": None, "context": None}
    yield raw_row(ROWS, ROWS, "wrong", np.random.default_rng(0)) | failed


@pytest.fixture(scope="module")
def plain_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    days = {
        night: [row | {"row_id": f"n{number}r{i}"} for i, row in enumerate(raw_rows())] for number, night in enumerate(NIGHTS)
    }
    return write_output(tmp_path_factory.mktemp("explained") / "out", days, job(verdict={"threshold": {"value": 0.5}}))


@pytest.fixture
def plain(plain_once: Path, tmp_path: Path) -> Path:
    """An output without explanations that a test may change."""
    return Path(shutil.copytree(plain_once, tmp_path / "out"))


def said(reason: str | None, category: str | None = "wrong_value", **more: Any) -> dict[str, Any]:
    return EMPTY | {"sentence": 1, "status": "ok", "consistent": True, "reason": reason, "category": category} | more


def write(output: Path, told: dict[tuple[int, int], list[dict[str, Any]]], strategy: str = "categorized") -> None:
    """Write explanations by (night, row), in row groups of two."""
    for number, night in enumerate(NIGHTS):
        rows = [
            {"row_key": night << 32 | row, "row_id": f"n{night}r{row}", "model": "big <b>", "run_id": "x", "explanations": e}
            for (night, row), e in told.items()
            if night == number
        ]
        if rows:
            path = output / "explanations" / f"strategy={strategy}" / night / "part-0.parquet"
            path.parent.mkdir(parents=True)
            schema = pa.schema([field for field in explanations_schema([]) if field.name != "strategy"])
            pq.write_table(pa.Table.from_pylist(rows, schema=schema), path, row_group_size=2)


def page(output: Path, *options: str) -> str:
    done = here("report", output, *options)
    assert done.returncode == 0, done.stdout + done.stderr
    text = (output / "report.html").read_text()
    assert "<script>window" not in text and "<img" not in text and "default-src 'none'" in text
    return re.sub(r"made \S+", "", text)


def article(text: str, row_id: str) -> str:
    """What the page has of a response."""
    return next(part for part in text.split("<article")[1:] if f"<span>{row_id}</span>" in part).partition("</article>")[0]


QUOTE = {"passage": 0, "start": 0, "end": 12, "text": "Rule 0 holds"}
TOLD = {
    (0, 0): [said(f"The rule is another. {HOSTILE}", evidence=QUOTE)],
    (0, 1): [said("It is all there.", "not_a_hallucination", consistent=False)],
    (0, 2): [said(None, None, status="unreadable", consistent=None, error="no JSON")],
    (1, 0): [said("Nobody signed.", "added"), said("Of a sentence that is not flagged.", "denied", sentence=0)],
    (1, 1): [said("Another day.")],
}


def test_explanations_stand_under_their_sentences(plain: Path) -> None:
    write(plain, TOLD)
    write(plain, {(0, 0): [said("The fallback says something else.", None)]}, "fallback")
    text = page(plain)
    first = article(text, "n0r0")
    assert "<b>wrong_value</b> The rule is another. &lt;script&gt;" in first
    assert "passage 1: <q>Rule 0 holds</q>" in first and f"{MARK}Rule 0 holds</mark> on floor 0." in first
    first = re.sub("</?mark[^>]*>", "", first)
    assert first.index("It was signed by partial hands.") < first.index("The rule is another.")
    assert "<b>added</b> Nobody signed." in article(text, "n1r0") and MARK not in article(text, "n1r0")
    assert "says something else" not in text and "not flagged." not in text
    assert "explained by big &lt;b&gt;, strategy categorized. 1 of 4 explanations disagree with the flag" in text
    assert "are left out; --all shows them. Asked about without an explanation: 1 unreadable." in text
    assert "It is all there." not in text and 'class="why"' not in article(text, "n0r1") + article(text, "n0r2")


def test_those_that_disagree_are_shown_if_asked_for(plain: Path) -> None:
    write(plain, TOLD)
    text = page(plain, "--all")
    assert "<b>not_a_hallucination</b> <i>disagrees with the flag</i> It is all there." in article(text, "n0r1")
    assert "1 of 4 explanations disagree with the flag and are marked so." in text and "left out" not in text
    assert "disagrees" not in article(text, "n0r0")


def test_categories_are_counted_by_night(plain: Path) -> None:
    write(plain, TOLD)
    folder = open_folder(str(plain))
    found = count_explanations(folder, open_scored(folder))
    assert found is not None and found.models == {"big <b>"} and found.unanswered == {"unreadable": 1}
    assert found.nights == {"2026-11-02": {"wrong_value": 1}, "2026-11-03": {"added": 1, "wrong_value": 1}}
    text = page(plain)
    chart = text[text.index("Categories by dt</h3>") :].partition("</svg>")[0]
    for label in ("wrong_value (2)", "added (1)", "2026-11-02", "2026-11-03", "var(--k0)", "var(--k1)"):
        assert label in chart, label
    assert "not_a_hallucination" not in chart


def test_without_categories_there_is_no_chart(plain: Path) -> None:
    write(plain, {(0, 0): [said("Somehow.", None, consistent=None)]}, "vanilla")
    text = page(plain)
    assert "Somehow." in article(text, "n0r0") and "1 explanations, which cannot disagree with the flag." in text
    assert "Categories" not in text
    write(plain, {(1, 0): [said("Somehow else.", None), said("UNKNOWN", None, consistent=False, sentence=0)]}, "fallback")
    text = page(plain)  # it could have disagreed, and says more
    assert "Somehow else." in text and "Somehow." not in text and "0 of 1 explanations disagree with the flag." in text


def test_what_a_detector_misses_has_a_category_too(plain: Path) -> None:
    text = page(plain)
    assert text.count('class="why"') == 2 == text.count("<b>wrong_value</b> number 9&lt;script&gt;")
    assert ", odd thing: not in the context, by a detector" in article(text, "n0r3")
    write(plain, {(0, 3): [said("A model knows better.", "added")]})
    text = page(plain)
    assert "by a detector" not in article(text, "n0r3") and "by a detector" in article(text, "n1r3")


def test_without_explanations_there_is_no_section(plain: Path) -> None:
    text = page(plain)
    assert SECTION not in text and MARK not in text and "Below a flagged sentence" not in text
    write(plain, TOLD)
    for path in (plain / "scored").rglob("*.parquet"):  # as older versions wrote them
        pq.write_table(pq.read_table(path, partitioning=None).drop_columns(["row_key"]), path)
    assert page(plain) == text


def test_explanations_of_what_is_flagged_no_longer_are_not_shown(plain: Path) -> None:
    write(plain, TOLD)
    assert SECTION in page(plain)
    for path in (plain / "scored").rglob("*.parquet"):
        table = pq.read_table(path, partitioning=None)
        rows = table.to_pylist()
        for row in rows:
            for sentence in row["sentences"] or []:
                sentence["flagged"] = False
        pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), path)
    assert SECTION not in page(plain)


def test_an_output_without_days(tmp_path: Path) -> None:
    output = write_output(tmp_path / "out", {"": list(raw_rows())}, job(verdict={"threshold": {"value": 0.5}}))
    path = output / "explanations" / "strategy=categorized" / "part-0.parquet"
    path.parent.mkdir(parents=True)
    row = {"row_key": 2, "row_id": "r2", "strategy": "", "model": "m", "explanations": [said("So.")], "run_id": "x"}
    pq.write_table(pa.Table.from_pylist([row], schema=explanations_schema([])), path)
    assert [r.row_id for r in gather(open_folder(str(output))).worst if r.explained] == ["r2"]
    text = page(output)
    assert "Categories</h3>" in text and "all rows" in text


def test_quotes_are_marked_where_they_stand() -> None:
    def of(passage: int, start: int, text: str) -> Explanation:
        return Explanation(None, "", text, passage, start, start + len(text))

    quotes = [of(0, 4, "two three"), of(0, 0, "one two"), of(0, 4, "two"), of(1, 0, "other"), of(7, 0, "far"), of(-1, 0, "x")]
    assert marked(["one two three four", "x", ""], [*quotes, Explanation(None, "")]) == [
        [("one two three", QUOTED), (" four", "")],
        [("x", "")],
        [],
    ]
    assert marked(["one two three four"], [of(0, 4, "two")], [(0, 4, 13)]) == [
        [("one ", ""), ("two", QUOTED), (" three", BEST), (" four", "")]
    ]


def test_a_chart_of_many_categories_and_nights() -> None:
    nights = {f"night {i}$": {f"_kind{k}$": k + 1 for k in range(len(KINDS) + 3)} for i in range(MOST_BARS + 1)}
    chart = kinds_chart("kinds", nights, 'a "title"')
    count = MOST_BARS + 1
    assert f"_kind{len(KINDS) + 2}$ ({(len(KINDS) + 3) * count})" in chart and f"3 others ({6 * count})" in chart
    assert "var(--k7)" in chart and "var(--dim)" in chart and 'aria-label="a &quot;title&quot;"' in chart
