"""Explanations in the report, from explanations written by hand."""

import re
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ragassay.jobs.output.scored_dataset import open_scored
from ragassay.jobs.report.details.figures import MAX_CATEGORIES, make_category_table
from ragassay.jobs.report.gather import gather_report_data
from ragassay.jobs.report.responses.explanations import ExplanationSummary, ShownExplanation, count_explanations
from ragassay.jobs.report.responses.marks import BEST, mark_passages
from ragassay.jobs.report.responses.marks import QUOTE as QUOTED
from ragassay.jobs.storage.folder import open_folder
from ragassay.schemas.explanation_columns import EXPLANATION, explanations_schema
from tests.jobs.conftest import invoke
from tests.jobs.evaluation.conftest import HOSTILE, job, raw_row, write_output

PARTITIONS = ("dt=2026-11-02/tenant=a%20b", "dt=2026-11-03/tenant=a%20b")
ROWS = 4
"""Scored responses per partition; the second sentence of each is flagged, the first is not."""

EMPTY = {field.name: None for field in EXPLANATION}
SECTION = "<h3>Explanations</h3>"
QUOTE_MARK = '<mark class="quote">'


def raw_rows() -> Iterator[dict[str, Any]]:
    """Make the rows of a partition. The last has no score; for the fourth, a detector misses terms in the context."""
    for row in range(ROWS):
        raw = raw_row(row, row, "partial", np.random.default_rng(0))
        log_odds = [3.0 - 0.01 * row, -3.0 - 0.01 * row]
        for member in raw["members"]:
            member["sentence_scores"], member["response_score"] = log_odds, log_odds[1]
            member["log_p_yes"], member["log_p_no"] = ([-np.log1p(np.exp(s * v)) for v in log_odds] for s in (-1, 1))
        missing = [{"kind": "number", "text": f"9{HOSTILE}"}, {"kind": "odd", "text": "thing"}]
        no_evidence: dict[str, Any] = {"passage": None, "start": None, "end": None, "notes": []}
        if row == 3:
            raw["evidence"] = [{**no_evidence, "missing": []}, {**no_evidence, "missing": missing}]
        yield raw
    failed = {"status": "no_context", "error": "why", "members": None, "sentences": None, "context": None}
    yield raw_row(ROWS, ROWS, "wrong", np.random.default_rng(0)) | failed


@pytest.fixture(scope="module")
def plain_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    days = {
        partition: [row | {"row_id": f"n{number}r{i}"} for i, row in enumerate(raw_rows())]
        for number, partition in enumerate(PARTITIONS)
    }
    return write_output(tmp_path_factory.mktemp("explained") / "out", days, job(verdict={"threshold": {"value": 0.5}}))


@pytest.fixture
def plain(plain_once: Path, tmp_path: Path) -> Path:
    """An output without explanations that a test may change."""
    return Path(shutil.copytree(plain_once, tmp_path / "out"))


def explain(reason: str | None, category: str | None = "wrong_value", **more: Any) -> dict[str, Any]:
    return EMPTY | {"sentence": 1, "status": "ok", "consistent": True, "reason": reason, "category": category} | more


def write(output: Path, explained: dict[tuple[int, int], list[dict[str, Any]]], strategy: str = "categorized") -> None:
    """Write explanations by (partition, row), in row groups of two."""
    for number, partition in enumerate(PARTITIONS):
        rows = [
            {
                "row_key": partition << 32 | row,
                "row_id": f"n{partition}r{row}",
                "model": "big <b>",
                "run_id": "x",
                "explanations": e,
            }
            for (partition, row), e in explained.items()
            if partition == number
        ]
        if rows:
            path = output / "explanations" / f"strategy={strategy}" / partition / "part-0.parquet"
            path.parent.mkdir(parents=True)
            schema = pa.schema([field for field in explanations_schema([]) if field.name != "strategy"])
            pq.write_table(pa.Table.from_pylist(rows, schema=schema), path, row_group_size=2)


def page(output: Path, *options: str) -> str:
    done = invoke("report", output, *options)
    assert done.returncode == 0, done.stdout + done.stderr
    text = (output / "report.html").read_text()
    assert "<script>window" not in text and "<img" not in text and "default-src 'none'" in text
    return re.sub(r"made \S+", "", text)


def article(text: str, row_id: str) -> str:
    """Return the part of the page about a response."""
    return next(part for part in text.split("<article")[1:] if f"<span>{row_id}</span>" in part).partition("</article>")[0]


QUOTE = {"passage": 0, "start": 0, "end": 12, "text": "Rule 0 holds"}
EXPLAINED = {
    (0, 0): [explain(f"The rule is another. {HOSTILE}", evidence=QUOTE)],
    (0, 1): [explain("It is all there.", "not_a_hallucination", consistent=False)],
    (0, 2): [explain(None, None, status="unreadable", consistent=None, error="no JSON")],
    (1, 0): [explain("Nobody signed.", "added"), explain("Of a sentence that is not flagged.", "denied", sentence=0)],
    (1, 1): [explain("Another day.")],
}


def test_explanations_are_below_their_sentences(plain: Path) -> None:
    write(plain, EXPLAINED)
    write(plain, {(0, 0): [explain("The fallback gives another reason.", None)]}, "fallback")
    text = page(plain)
    first = article(text, "n0r0")
    assert "<b>Wrong value:</b> The rule is another. &lt;script&gt;" in first
    assert "passage 1: <q>Rule 0 holds</q>" in first and f"{QUOTE_MARK}Rule 0 holds</mark> on floor 0." in first
    first = re.sub("</?mark[^>]*>", "", first)
    assert first.index("It was signed by partial hands.") < first.index("The rule is another.")
    assert "<b>Added:</b> Nobody signed." in article(text, "n1r0") and QUOTE_MARK not in article(text, "n1r0")
    assert "gives another reason" not in text and "not flagged." not in text
    assert "explained by big &lt;b&gt;, strategy categorized. 1 of 4 explanations disagree with the flag and are" in text
    assert "marked. Without a readable explanation: 1 unreadable." in text
    assert "Mainly by " in article(text, "n0r2")  # its explanation is unreadable


def test_explanations_that_disagree_are_marked(plain: Path) -> None:
    write(plain, EXPLAINED)
    text = page(plain)
    assert "<b>Supported after all:</b> <i>disagrees with the flag</i> It is all there." in article(text, "n0r1")
    assert "1 of 4 explanations disagree with the flag and are marked." in text
    assert "disagrees" not in article(text, "n0r0")


def test_categories_are_counted_by_partition(plain: Path) -> None:
    write(plain, EXPLAINED)
    folder = open_folder(str(plain))
    summary = count_explanations(folder, open_scored(folder))
    assert summary is not None and summary.models == {"big <b>"} and summary.unreadable == {"unreadable": 1}
    assert summary.categories == {"2026-11-02": {"wrong_value": 1}, "2026-11-03": {"added": 1, "wrong_value": 1}}
    text = page(plain)
    table = text[text.rindex("Categories by dt</h3>") :].partition("</table>")[0]
    assert re.findall(r">([^<>\n]+)</t[hd]>", table) == [
        *("dt", "Wrong value", "Added"), *("2026-11-02", "1", "0"), *("2026-11-03", "1", "1"), *("all", "2", "1"),
    ]  # fmt: skip


def test_without_categories_there_is_no_chart(plain: Path) -> None:
    write(plain, {(0, 0): [explain("Somehow.", None, consistent=None)]}, "vanilla")
    text = page(plain)
    assert "Somehow." in article(text, "n0r0") and "1 explanations, which can&#39;t disagree with the flag." in text
    assert "Categories" not in text
    write(plain, {(1, 0): [explain("Somehow else.", None), explain("UNKNOWN", None, consistent=False, sentence=0)]}, "fallback")
    text = page(plain)  # this strategy can disagree, so it is preferred
    assert "Somehow else." in text and "Somehow." not in text and "0 of 1 explanations disagree with the flag." in text


def test_terms_that_a_detector_misses_are_named_in_words(plain: Path) -> None:
    text = page(plain)
    assert "“9&lt;script&gt;" in article(text, "n0r3") and "is not in the passages." in article(text, "n0r3")
    assert "“thing” is not in the passages." in article(text, "n0r3") and "wrong_value" not in text
    write(plain, {(0, 3): [explain("A model knows better.", "added")]})
    text = page(plain)
    assert "A model knows better." in article(text, "n0r3") and "in the passages" not in article(text, "n0r3")
    assert "is not in the passages." in article(text, "n1r3")


def test_without_explanations_there_is_no_section(plain: Path) -> None:
    text = page(plain)
    assert SECTION not in text and QUOTE_MARK not in text and "strategy" not in text.partition('id="record"')[0]
    write(plain, EXPLAINED)
    for path in (plain / "scored").rglob("*.parquet"):  # as older versions wrote it
        pq.write_table(pq.read_table(path, partitioning=None).drop_columns(["row_key"]), path)
    assert page(plain) == text


def test_explanations_of_supported_responses_are_not_shown(plain: Path) -> None:
    write(plain, EXPLAINED)
    assert SECTION in page(plain)
    for path in (plain / "scored").rglob("*.parquet"):
        table = pq.read_table(path, partitioning=None)
        rows = table.to_pylist()
        for row in rows:
            row["verdict"] = "supported"
        pq.write_table(pa.Table.from_pylist(rows, schema=table.schema), path)
    assert SECTION not in page(plain)


def test_an_output_without_partitions(tmp_path: Path) -> None:
    output = write_output(tmp_path / "out", {"": list(raw_rows())}, job(verdict={"threshold": {"value": 0.5}}))
    path = output / "explanations" / "strategy=categorized" / "part-0.parquet"
    path.parent.mkdir(parents=True)
    row = {"row_key": 2, "row_id": "r2", "strategy": "", "model": "m", "explanations": [explain("So.")], "run_id": "x"}
    pq.write_table(pa.Table.from_pylist([row], schema=explanations_schema([])), path)
    assert [
        r.row_id
        for r in gather_report_data(open_folder(str(output))).worst
        if any(s.explanation is not None for s in r.sentences)
    ] == ["r2"]
    text = page(output)
    assert "Categories</h3>" in text and "all rows" in text


def test_quotes_are_marked_at_their_position() -> None:
    def quote_of(passage: int, start: int, text: str) -> ShownExplanation:
        return ShownExplanation(None, "", text, passage, start, start + len(text))

    quotes = [
        quote_of(0, 4, "two three"),
        quote_of(0, 0, "one two"),
        quote_of(0, 4, "two"),
        quote_of(1, 0, "other"),
        quote_of(7, 0, "far"),
        quote_of(-1, 0, "x"),
    ]
    assert mark_passages(["one two three four", "x", ""], [*quotes, ShownExplanation(None, "")]) == [
        [("one two three", QUOTED), (" four", "")],
        [("x", "")],
        [],
    ]
    assert mark_passages(["one two three four"], [quote_of(0, 4, "two")], [(0, 4, 13)]) == [
        [("one ", ""), ("two", QUOTED), (" three", BEST), (" four", "")]
    ]


def test_a_table_of_many_categories_sums_the_rest() -> None:
    counts = Counter({f"kind_{k}": k + 1 for k in range(MAX_CATEGORIES + 3)})
    table = make_category_table(
        ExplanationSummary("categorized", categories={"2026-11-02": counts, "2026-11-03": counts}), "dt"
    )
    assert table is not None and table.header[:2] == ["dt", f"kind {MAX_CATEGORIES + 2}"] and table.header[-1] == "3 others"
    assert [row[0] for row in table.rows] == ["2026-11-02", "2026-11-03", "all"] and table.rows[-1][-1] == "12"
    assert make_category_table(ExplanationSummary("vanilla"), "dt") is None
