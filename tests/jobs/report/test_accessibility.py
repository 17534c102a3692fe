"""Report, index, page of a partition and review in headless Chromium: axe-core finds nothing, and nothing is too wide."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser import PHONE, SCREEN, find_violations, resize, start_chromium
from tests.jobs.conftest import invoke, resamples

pytestmark = pytest.mark.slow
UNFOLD = "for (const details of document.querySelectorAll('details')) details.open = true"


@pytest.fixture(scope="module")
def pages(scored_once: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    (folder / "events.csv").write_text("date,text\n2026-11-04,prompt v7\n")
    report = ("report", scored_once, "--slice", "tenant", "--events", folder / "events.csv")
    labels = ("--label", "label", *resamples(folder, 10))
    for command in (
        (*report, *labels, "--out", folder / "report.html"),
        (*report, "--all-runs", "--out", folder / "site"),
        ("review", scored_once, "--sample", "5", "--out", folder / "review.html"),
    ):
        done = invoke(*command)
        assert done.returncode == 0, done.stderr
    site = folder / "site"
    return {
        "report": folder / "report.html", "index": site / "index.html", "partition": site / "2026-11-04.html",
        "review": folder / "review.html",
    }  # fmt: skip


@pytest.fixture(scope="module", params=["light", "dark"])
def chrome(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    browser = start_chromium(tmp_path_factory.mktemp("profile"), is_dark=request.param == "dark")
    yield browser
    browser.quit()


@pytest.mark.parametrize("screen", [SCREEN, PHONE], ids=["desktop", "phone"])
@pytest.mark.parametrize("name", ["report", "index", "partition", "review"])
def test_a_page_has_no_accessibility_violation(name: str, screen: dict[str, Any], chrome: Any, pages: dict[str, Path]) -> None:
    resize(chrome, screen)
    chrome.get(pages[name].as_uri())
    states = {"review": [None, "document.getElementById('name').value = 'Ana'; document.getElementById('begin').click()"]}
    for script in states.get(name, [None, UNFOLD, "document.getElementById('scope1')?.click()"]):
        if script:
            chrome.execute_script(script)
        assert find_violations(chrome) == []
        assert chrome.execute_script("return document.documentElement.scrollWidth <= innerWidth")


def test_the_dialog_of_the_review_fits_a_phone(chrome: Any, pages: dict[str, Path]) -> None:
    resize(chrome, PHONE)
    chrome.get(pages["review"].as_uri())
    chrome.execute_script("localStorage.clear(); location.reload()")
    box = chrome.execute_script("return document.querySelector('dialog').getBoundingClientRect().toJSON()")
    assert chrome.execute_script("return document.querySelector('dialog').open")
    assert box["left"] >= 0 and box["right"] <= PHONE["width"] and box["bottom"] <= PHONE["height"]
    buttons = chrome.execute_script(
        "return [...document.querySelectorAll('button')].map(b => b.getAttribute('aria-label') || b.textContent.trim())"
    )
    assert all(len(text) > 3 for text in buttons)
    assert len(chrome.find_elements("css selector", "#guidelines li")) == 2
