"""The review page as built: nothing in a log becomes HTML, and every response is complete."""

import json
import re
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ragassay.jobs.display.visible import make_visible
from ragassay.jobs.output.scored_dataset import DataFile, Position
from ragassay.jobs.report.review.page import hash_sample, render_review
from ragassay.jobs.report.review.rows import make_page_row
from ragassay.jobs.report.review.sample import SampledRow
from tests.jobs.conftest import invoke
from tests.raises import fails

SAMPLED = SampledRow(Position(DataFile("dt=1/team=a%20b", "scored/a.parquet"), 0), "flagged, near the threshold", 0.25)
texts = st.text(st.characters() | st.sampled_from("<>&'\"\u2028\ud800\u202e\r\n😀/"), max_size=40)


def scored(response: str, cuts: list[int], context: list[str | None], evidence: object = None) -> dict[str, object]:
    ends = sorted({min(cut, len(response)) for cut in cuts})
    spans = [(a, b) for a, b in zip(ends[::2], ends[1::2], strict=False) if a < b]
    return {
        "row_id": "r</script>", "question": None, "context": context, "response": response, "score": float("nan"),
        "threshold": 0.5, "verdict": "hallucinated", "evidence": evidence,
        "sentences": [
            {"text": response[a:b], "start": a, "end": b, "score": 0.25, "probability": None, "state": "flagged"}
            for a, b in spans
        ],
    }  # fmt: skip


@given(texts, st.lists(st.integers(0, 40), max_size=6), st.lists(texts | st.none(), min_size=1, max_size=3))
def test_a_page_contains_complete_texts_as_data(response: str, cuts: list[int], context: list[str | None]) -> None:
    row = scored(response, cuts, context)
    page_row = make_page_row(row, SAMPLED)
    assert "".join(part if isinstance(part, str) else part["text"] for part in page_row["parts"]) == make_visible(response)
    sentences = [part for part in page_row["parts"] if not isinstance(part, str)]
    assert all(make_visible(response[s["start"] : s["end"]]) == s["text"] for s in sentences)
    page = render_review("out</script>", [page_row], "sentences")
    scripts = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page)
    assert len(scripts) == 1 and scripts[0].isascii() and not set("<>&") & set(scripts[0])
    assert page.count("</script>") == 2 and page.count("<script") == 2 and page.encode("utf-8")
    data = json.loads(scripts[0])
    assert data["rows"] == json.loads(json.dumps([page_row])) and data["output"] == "out</script>"


@given(texts, texts, texts)
def test_the_best_piece_is_in_javascripts_units(before: str, piece: str, after: str) -> None:
    evidence = {"passage": 1, "start": len(before), "end": len(before + piece)}
    row = scored("It is so.", [0, 9], ["", before + piece + after], [evidence])
    number, begin, end = make_page_row(row, SAMPLED)["parts"][0]["near"]
    units = make_visible(before + piece + after).encode("utf-16-le", "surrogatepass")
    assert number == 1 and units[2 * begin : 2 * end] == make_visible(piece).encode("utf-16-le", "surrogatepass")


def test_without_evidence_the_passage_with_most_words_is_nearest() -> None:
    row = scored("Two dogs bark. Nil.", [0, 14, 15, 19], ["a dog", "two dogs", None, "dogs bark, two"])
    del row["evidence"]  # as in outputs of older versions
    near = [part["near"] for part in make_page_row(row, SAMPLED)["parts"] if not isinstance(part, str)]
    assert near == [(3, 0, 0), None]


def test_a_samples_hash_depends_on_its_rows_and_probabilities() -> None:
    page_row = make_page_row(scored("It is so.", [0, 9], ["x"]), SAMPLED)
    assert hash_sample([page_row]) == hash_sample([{**page_row, "verdict": "other words"}])
    changes: tuple[dict[str, Any], ...] = (
        {"row_id": "r2"},
        {"partition": None},
        {"inclusion_probability": 0.5},
        {"stratum": None},
        {"parts": []},
    )
    assert len({hash_sample([{**page_row, **more}]) for more in ({}, *changes)}) == 6 and hash_sample(
        [page_row]
    ) != hash_sample([page_row, page_row])


def test_the_command_writes_only_review_pages(scored: Path, tmp_path: Path) -> None:
    done = invoke("review", scored, "--sample", "12", "--balanced", "--where", "tenant=$t0$ ")
    assert done.returncode == 0, done.stderr
    assert "sample  12 of 120 scored responses, 24 sentences" in done.stdout and ": 3 of " in done.stdout
    first = (scored / "review.html").read_text()
    assert invoke("review", scored, "--sample", "12", "--balanced", "--where", "tenant=$t0$ ").returncode == 0
    assert (scored / "review.html").read_text() == first  # the same output and seed
    file = tmp_path / "precious.txt"
    file.write_text("precious")
    for path, code in (
        (file, "options.out-foreign-page"),
        (scored / "raw" / "x.html", "output.file-inside"),
        (tmp_path, "path.is-folder"),
    ):
        fails(invoke("review", scored, "--out", path), code)
    assert file.read_text() == "precious"
    foreign = tmp_path / "theirs.html"
    for page in ("<!doctype html><title>Their review</title>", "<!doctype html><title>RAGAssay report: out</title>"):
        foreign.write_text(page)
        refused = invoke("review", scored, "--out", foreign)
        fails(refused, "options.out-foreign-page")
        assert foreign.read_text() == page
    assert (
        invoke("--log-format", "json", "review", scored, "--out", tmp_path / "a.html", "--level", "responses").returncode == 0
    )
    assert '"level": "responses"' in (tmp_path / "a.html").read_text()
