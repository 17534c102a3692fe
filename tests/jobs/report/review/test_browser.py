"""The review page in headless Chromium, by keys: it loses no label, runs nothing planted in a log, and loads nothing."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from ragassay.schemas.review import ReviewLine
from tests.jobs.conftest import invoke, read_rows
from tests.jobs.evaluation.conftest import HOSTILE, job, raw_row, write_output
from tests.jobs.report.review.conftest import Reader

pytestmark = pytest.mark.slow
Open = Callable[[], Reader]
UNDO_AT, RELOAD_AT = 17, 25


def page_of(output: Path, *options: str) -> Path:
    done = invoke("review", output, *options)
    assert done.returncode == 0, done.stderr
    return output / "review.html"


def truth_of(reader: Reader) -> str:
    """Return the key of the true label of the current sentence; the fixture's sentences reveal it."""
    sentence, response = reader.text(".sentence.current"), reader.text("#response")
    good = "correct" in response or ("partial" in response and sentence.startswith("Rule"))
    return "1" if good else "2"


def test_forty_sentences_are_labeled_by_keys_with_reload_and_undo(scored: Path, reader: Open) -> None:
    page = page_of(scored, "--sample", "30", "--balanced")
    ana = reader()
    ana.open(page, "Ana")
    for number in range(40):
        if number == UNDO_AT:
            current = ana.text(".sentence.current")
            ana.press("2" if truth_of(ana) == "1" else "1")
            assert ana.text(".sentence.current") != current
            ana.press("z")
            assert ana.text(".sentence.current") == current and f"{number} of 60" in ana.text("#progress")
        if number == RELOAD_AT:
            current = ana.text(".sentence.current")
            ana.chrome.refresh()
            assert ana.text(".sentence.current") == current and ana.text("#reviewer") == "Ana"
            assert ana.text("#progress") == f"{number} of 60 sentences labeled." and "Not saved" in ana.text("#unsaved")
        assert ana.run("return document.getElementById('verdict').hidden")
        ana.press(truth_of(ana))
    ana.press("s")
    assert ana.text("#progress") == "40 of 60 sentences labeled, 1 skipped."
    ana.press("p")
    assert ana.run("return document.querySelectorAll('.passage.highlighted').length") <= 1
    ana.press("v")
    assert "score" in ana.text("#verdict") and not ana.run("return document.getElementById('verdict').hidden")
    ana.run("document.dispatchEvent(new KeyboardEvent('keydown', {key: 's', ctrlKey: true}))")
    file = ana.file()
    assert file.name == "review-out-Ana.jsonl" and ana.text("#unsaved") == "All saved."
    check_lines(scored, file)
    before = file.read_text()
    done = invoke("calibrate", scored, "--labels", file, "--target", "supported-f1")
    assert done.returncode == 0, done.stderr
    assert (scored / "calibration.json").exists()

    other = reader()  # another machine, without stored labels
    other.open(page, "somebody")
    other.chrome.find_element("id", "file").send_keys(str(file))
    assert other.text("#progress") == "40 of 60 sentences labeled." and other.text("#reviewer") == "Ana"
    assert other.text("#message") == "40 labels of Ana loaded."
    other.press("1w2")
    assert other.text("#progress") == "1 of 30 responses labeled, and 41 sentences."
    other.chrome.find_element("id", "save").click()
    lines = other.saved()
    assert all(json.loads(line) in lines for line in before.splitlines()) and len(lines) == 42
    assert sum("start" not in line and "end" not in line for line in lines) == 1
    for reviewer in (ana, other):
        assert reviewer.requested_schemes() <= {"file", "blob"} and reviewer.chrome.get_log("browser") == []


def check_lines(output: Path, file: Path) -> None:
    """Check every line against the fixture's rows."""
    rows = {row["row_id"]: row for row in read_rows(output)}
    labels = [ReviewLine.from_json(line) for line in file.read_text().splitlines()]
    assert len(labels) == len({(line.row_id, line.start) for line in labels}) == 40
    for line in labels:
        row = rows[line.row_id]
        assert (line.start, line.end) in {(s["start"], s["end"]) for s in row["sentences"]}
        wrong_spans = [(span["start"], span["end"]) for span in row["spans"]]
        assert line.label == ("unsupported" if (line.start, line.end) in wrong_spans else "supported")
        assert line.partition == f"dt={row['dt']}" and line.reviewer == "Ana" and line.at is not None
        assert line.stratum is not None and line.stratum.startswith("flagged" if row["verdict"] != "supported" else "supported")
        assert line.inclusion_probability is not None and 0 < line.inclusion_probability < 1


EVIL = f"</script><script>window.planted = 3</script>{HOSTILE}\u2028<!--<script> {{{{ 7 * 7 }}}} \u202e\u0007"


def test_log_texts_do_not_run_and_offsets_count_characters(tmp_path: Path, reader: Open) -> None:
    row = raw_row(0, 0, "wrong", np.random.default_rng(0))
    texts = [f"😀 𝔘𝔫𝔦 {EVIL}.", "مرحبا 👩‍👩‍👧 e\u0301."]
    spans = [{"text": texts[0], "start": 0, "end": len(texts[0])}]
    spans.append({"text": texts[1], "start": len(texts[0]) + 1, "end": len(texts[0]) + 1 + len(texts[1])})
    row |= {
        "row_id": f"id {EVIL}", "question": EVIL, "context": [EVIL, "", None, "x" * 9000], "response": " ".join(texts),
        "sentences": spans,
    }  # fmt: skip
    other_rows = [raw_row(i, i, "correct", np.random.default_rng(i)) for i in range(1, 9)]
    output = write_output(tmp_path / "out </script> é", {f"t={'%3Cimg src=x%3E'}": [row, *other_rows]}, job())
    page = page_of(output)
    ana = reader()
    ana.open(page, f"<img src=x onerror='window.planted = 4'> {EVIL[:30]}")
    while "planted = 3" not in ana.text("#question"):
        ana.press("j")
    while ana.text(".sentence.current") != ana.text(".sentence"):
        ana.press("k")
    assert ana.text("#question") == EVIL.replace("\u202e\u0007", "[U+202E][U+0007]")
    ana.press("pvo3")
    ana.press("y")
    assert ana.run("return window.planted") is None
    assert ana.run("return document.querySelectorAll('script').length") == 2
    assert ana.run("return document.querySelectorAll('body img, [onerror], [onclick], [onload]').length") == 0
    ana.run("document.getElementById('save').click()")
    lines = {line["start"]: line for line in ana.saved()}
    assert [(line["start"], line["end"], line["label"]) for line in sorted(lines.values(), key=lambda line: line["start"])] == [
        (spans[0]["start"], spans[0]["end"], "unsure"), (spans[1]["start"], spans[1]["end"], "supported"),
    ]  # fmt: skip
    assert lines[0]["row_id"] == row["row_id"] and lines[0]["partition"] == "t=<img src=x>" and "stratum" not in lines[0]
    assert ana.requested_schemes() <= {"file", "blob"} and ana.chrome.get_log("browser") == []


def test_labels_of_an_earlier_sample_are_not_lost(scored: Path, reader: Open) -> None:
    ana = reader()
    ana.open(page_of(scored, "--sample", "5"), "Ana")
    ana.press("123")
    ana.open(page_of(scored, "--sample", "5", "--seed", "1"))
    assert "0 of 10" in ana.text("#progress") and ana.text("#unsaved-samples").startswith("3 labels of another sample")
    ana.run("localStorage.setItem('ragassay reviewer', 'na')")  # another reviewer, whose name is the end of Ana's
    ana.chrome.refresh()
    assert ana.text("#reviewer") == "na" and ana.run("return document.getElementById('unsaved-samples').hidden")
    ana.run("localStorage.setItem('ragassay reviewer', 'Ana')")
    ana.chrome.refresh()
    ana.chrome.find_element("id", "rescue").click()
    assert [line["label"] for line in ana.saved()] == ["supported", "unsupported", "unsure"]
    ana.chrome.refresh()
    assert ana.run("return document.getElementById('unsaved-samples').hidden")


def test_an_invalid_file_is_refused_completely(scored: Path, tmp_path: Path, reader: Open) -> None:
    ana = reader()
    ana.open(page_of(scored, "--sample", "5"), "Ana")
    ana.press("1")
    line = '{"row_id": "r1", "label": "supported", "reviewer": "%s", "at": "2026-11-22T10:00:00Z"}\n'
    for number, (text, message) in enumerate(
        {
            line % "Ana" + "{torn": "line 2 is not a label of a review",
            line % "Ana" + line % "Ben": "labels of Ana and Ben",
            "\n": "it contains no label",
        }.items()
    ):
        path = tmp_path / f"bad{number}.jsonl"
        path.write_text(text)
        ana.chrome.find_element("id", "file").send_keys(str(path))
        assert message in ana.text("#notice") and "1 of 10" in ana.text("#progress")
    path.write_text(line % "Ana")
    ana.chrome.find_element("id", "file").send_keys(str(path))
    assert "Not in this sample: 1" in ana.text("#message") and ana.run("return document.getElementById('notice').hidden")


def test_the_page_has_buttons_for_a_phone(scored: Path, reader: Open) -> None:
    ana = reader()
    screen = {"width": 400, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    ana.chrome.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    ana.open(page_of(scored, "--sample", "5", "--level", "responses"))
    ana.press("Ana", into="#name")
    for button in (
        "begin",
        "unsupported",
        "level",
        "supported",
        "near",
        "reveal",
        "previous",
        "unsure",
        "undo",
        "next",
        "skip",
    ):
        ana.chrome.find_element("id", button).click()  # a covered button can't be clicked
        assert ana.run("return document.documentElement.scrollWidth") <= 400
    assert ana.text("#progress") == "1 of 10 sentences labeled, 1 skipped, and 1 whole response."
    boxes = "return [...document.querySelectorAll('footer button')].map(b => b.getBoundingClientRect())"
    sizes = [min(box["width"], box["height"]) for box in ana.run(f"{boxes}.map(r => r.toJSON())")]
    assert min(sizes) >= 24  # WCAG 2.2, target size
    assert ana.chrome.get_log("browser") == []
