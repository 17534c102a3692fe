"""Headless Chromium with a folder for downloads, in which a review page is opened as a file."""

import json
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.jobs.evaluation.conftest import scored, scored_once  # noqa: F401


class Reader:
    """A person before a review page."""

    def __init__(self, chrome: Any, downloads: Path) -> None:
        self.chrome = chrome
        self.downloads = downloads

    def open(self, page: Path, name: str = "") -> None:
        self.chrome.get(page.as_uri())
        if name:
            self.press(f"{name}\n", into="#name")

    def press(self, keys: str, into: str = "body") -> None:
        self.chrome.find_element("css selector", into).send_keys(keys)

    def text(self, selector: str) -> str:
        return str(self.run("return document.querySelector(arguments[0]).textContent", selector))

    def run(self, script: str, *arguments: Any) -> Any:
        return self.chrome.execute_script(script, *arguments)

    def saved(self) -> list[dict[str, Any]]:
        """Lines of the file that has just been saved; it is taken out of the downloads."""
        path = self.file()
        found = [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]
        path.unlink()
        return found

    def file(self) -> Path:
        end = time.monotonic() + 20
        while not (found := list(self.downloads.glob("*.jsonl"))):
            assert time.monotonic() < end, "nothing was saved"
            time.sleep(0.05)
        return found[0]

    def asked(self) -> set[str]:
        """How the addresses begin that the page asked for."""
        events = [json.loads(entry["message"])["message"] for entry in self.chrome.get_log("performance")]
        sent = [event["params"] for event in events if event["method"] == "Network.requestWillBeSent"]
        return {one["request"]["url"].partition(":")[0] for one in sent if one["documentURL"].startswith("file:")}


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Callable[..., Reader]]:
    """Opens Chromium, each time with a profile of its own."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not (chromium and driver):
        pytest.skip("chromium and chromedriver are not installed: `make browser`")
    opened: list[Any] = []

    def new() -> Reader:
        options = webdriver.ChromeOptions()
        options.binary_location = chromium
        own = tmp_path / f"chromium{len(opened)}"
        downloads = own / "downloads"
        downloads.mkdir(parents=True)
        for argument in (
            "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
            "--disable-background-networking", "--disable-component-update", f"--user-data-dir={own / 'profile'}",
        ):  # fmt: skip
            options.add_argument(argument)
        options.add_experimental_option("prefs", {"download.default_directory": str(downloads)})
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        opened.append(webdriver.Chrome(options=options, service=Service(driver)))
        return Reader(opened[-1], downloads)

    yield new
    for chrome in opened:
        chrome.quit()
