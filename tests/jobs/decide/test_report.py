"""The report, in real headless Chromium: it renders, it filters, nothing planted in a log runs, nothing is fetched."""

import shutil
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ragassay.jobs.decide.report.gather import Sentence, _parts, gather
from ragassay.jobs.decide.report.text import LONGEST, shortened
from ragassay.jobs.storage import open_folder
from ragassay.jobs.visible import visible
from ragassay.pipeline.errors import InputError
from tests.jobs.conftest import ragassay, read_rows

from .conftest import DAYS, HOSTILE, ITEMS, job, raw_row, write_output

ROWS = DAYS * (3 * ITEMS + 1)


@pytest.fixture(scope="module")
def page(scored_once: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    done = ragassay(
        "report", scored_once, "--label", "label", "--slice", "tenant", "--slice", "dt", "--resamples", "10", "--to", path
    )
    assert done.returncode == 0, done.stderr
    assert "correct against wrong: 120 and 120 rows" in done.stdout  # the table and the report, in one command
    return path


@pytest.fixture(scope="module", params=["light", "dark"])
def browser(request: pytest.FixtureRequest, page: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not (chromium and driver):
        pytest.skip("chromium and chromedriver are not installed: `make browser`")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    profile = tmp_path_factory.mktemp("profile")
    for argument in (
        "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
        "--disable-background-networking", "--disable-component-update", f"--user-data-dir={profile}",
    ):  # fmt: skip
        options.add_argument(argument)
    if request.param == "dark":
        options.add_argument("--blink-settings=preferredColorScheme=0")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    chrome = webdriver.Chrome(options=options, service=Service(driver))
    chrome.get(page.as_uri())
    assert chrome.execute_script("return matchMedia('(prefers-color-scheme: dark)').matches") == (request.param == "dark")
    yield chrome
    chrome.quit()


@pytest.mark.slow
def test_in_a_browser(browser: Any) -> None:
    run = browser.execute_script
    assert run("return document.querySelectorAll('svg').length") == 3 + 5  # days, two slices, five histograms
    assert run("return document.querySelectorAll('article').length") == 50
    assert run("return window.planted") is None
    assert run("return performance.getEntriesByType('resource').length") == 0
    assert run("return document.querySelectorAll('script').length") == 1
    assert run("return document.querySelectorAll('body img, [onerror], [onclick], [onload]').length") == 0
    assert HOSTILE in run("return document.querySelector('article').textContent")

    shown = "return [...document.querySelectorAll('article')].filter(a => !a.hidden).length"
    worst = run("return [...document.querySelectorAll('article')].filter(a => a.dataset.label === 'partial').length")
    run("const s = document.querySelector('select[name=label]'); s.value = '=partial'; s.dispatchEvent(new Event('change'))")
    assert run(shown) == worst > 0 and run("return document.getElementById('shown').textContent") == str(worst)
    run("const s = document.getElementById('search'); s.value = 'no such words'; s.dispatchEvent(new Event('input'))")
    assert run(shown) == 0
    run("const s = document.getElementById('search'); s.value = ''; s.dispatchEvent(new Event('input'))")
    run("const s = document.querySelector('select[name=label]'); s.value = ''; s.dispatchEvent(new Event('change'))")
    assert run(shown) == 50

    run("document.querySelector('.sentence').focus()")
    near = "return [...document.querySelector('article').querySelectorAll('.near')].map(p => p.dataset.number)"
    assert run(near) == [run("return document.querySelector('.sentence').dataset.passage")]
    for element in ("body", "svg text", ".sentence", "td"):
        assert contrast(browser, element) >= 4.5, element
    assert browser.get_log("browser") == []


def contrast(browser: Any, selector: str) -> float:
    """WCAG contrast of an element's text against what lies behind it."""
    return float(
        browser.execute_script(
            """
            const element = document.querySelector(arguments[0]);
            const rgb = (text) => text.match(/[\\d.]+/g).map(Number);
            let behind = element, colour;
            do { colour = rgb(getComputedStyle(behind).backgroundColor); behind = behind.parentElement; }
            while (behind && colour.length === 4 && colour[3] === 0);
            const style = getComputedStyle(element);
            const ink = rgb(element.closest('svg') ? style.fill : style.color);
            const light = (c) => c.slice(0, 3).map(v => v / 255)
              .map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
              .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
            const [a, b] = [light(ink), light(colour)].sort((x, y) => y - x);
            return (a + 0.05) / (b + 0.05);
            """,
            selector,
        )
    )


class Tags(HTMLParser):
    """Every tag and attribute that stands in a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def test_the_page_holds_no_handler_no_address_and_one_script(page: Path) -> None:
    found = Tags()
    found.feed(page.read_text())
    assert [tag for tag, _ in found.tags].count("script") == 1 and "img" not in [tag for tag, _ in found.tags]
    for tag, attributes in found.tags:
        assert not any(name.startswith("on") for name in attributes), (tag, attributes)
        assert not {"src", "href"} & set(attributes) or all(v and v.startswith("#") for v in [attributes.get("href")]), (
            attributes
        )
    policy = next(a["content"] for tag, a in found.tags if a.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None and "default-src 'none'" in policy and "script-src 'sha256-" in policy


def test_everything_is_counted(scored_once: Path) -> None:
    found = gather(open_folder(str(scored_once)), ["tenant", "dt"], "label")
    rows = read_rows(scored_once)
    flagged = sum(row["verdict"] == "hallucinated" for row in rows)
    assert found.rows == {"ok": ROWS - DAYS, "no_context": DAYS} and found.flagged == flagged
    for shares in (found.days, *found.slices.values()):
        assert sum(s.scored for s in shares) == ROWS - DAYS and sum(s.flagged for s in shares) == flagged
    assert [s.value for s in found.days] == [f"2026-11-{d + 2:02d}" for d in range(DAYS)]
    ranked = sorted((r["score"], min(s["score"] for s in r["sentences"]), r["row_id"]) for r in rows if r["status"] == "ok")
    assert [response.row_id for response in found.worst] == [row_id for *_, row_id in ranked[:50]]
    assert len(found.failed["no_context"]) == 3 and "no context" in found.failed["no_context"][0][2]
    with pytest.raises(InputError, match="no column 'generator'"):
        gather(open_folder(str(scored_once)), ["generator"])


def test_a_response_is_shown_whole() -> None:
    text = " One here. \nTwo there.\n"
    sentences = [
        {"start": 1, "end": 10, "text": "One here.", "score": 0.5, "flagged": False},
        {"start": 12, "end": 22, "text": "Two there.", "score": -1.0, "flagged": True},
    ]
    parts = _parts(text, sentences, ["nothing", "two was there"], None)
    assert "".join(p if isinstance(p, str) else p.text for p in parts) == text
    assert [p.passage for p in parts if isinstance(p, Sentence)] == [None, 1]


def test_text_is_made_visible() -> None:
    assert visible("a\u202eb\x00c\td\ne\r\u200d") == "a[U+202E]b[U+0000]c\td\ne\n\u200d"
    long = "x" * (LONGEST + 5)
    assert shortened(long).endswith("x [… 5 more characters]") and shortened("ok") == "ok"


def test_without_labels_and_without_days(scored: Path) -> None:
    done = ragassay("report", scored)
    assert done.returncode == 0 and done.stdout.endswith("out/report.html\n")
    text = (scored / "report.html").read_text()
    assert "Against labels" not in text and "responses by score" in text
    assert ragassay("report", scored, "--slice", "nothing").returncode == 1


def test_an_output_without_any_score_has_a_report_too(tmp_path: Path) -> None:
    failed = {"status": "no_context", "error": "why", "members": None, "sentences": None, "context": None}
    rows = [raw_row(i, i, "wrong", np.random.default_rng(0)) | failed for i in range(3)]
    output = write_output(tmp_path / "out", {"dt=1": rows}, job())
    done = ragassay("report", output)
    assert done.returncode == 0, done.stderr
    text = (output / "report.html").read_text()
    assert "No response has a score." in text and "no_context" in text and "Not checked" in text
    for command in (("evaluate", output, "--label", "label"), ("compare", output), ("drift", output)):
        refused = ragassay(*command)
        assert refused.returncode == 1 and "no row of this output has a score" in refused.stderr


def test_a_slice_must_be_of_plain_values(scored: Path) -> None:
    refused = ragassay("report", scored, "--slice", "sentences")
    assert refused.returncode == 1 and "slices are of plain values" in refused.stderr
