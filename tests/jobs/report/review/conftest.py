"""Headless Chromium with a download folder, which opens a review page as a file."""

import json
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest


class Reader:
    """A person who uses a review page."""

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
        """Return the lines of the file that has just been saved, and remove the file."""
        path = self.file()
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]
        path.unlink()
        return lines

    def file(self) -> Path:
        deadline = time.monotonic() + 20
        while not (files := list(self.downloads.glob("*.jsonl"))):
            assert time.monotonic() < deadline, "nothing was saved"
            time.sleep(0.05)
        return files[0]

    def requested_schemes(self) -> set[str]:
        """Return the URL schemes that the page requested."""
        events = [json.loads(entry["message"])["message"] for entry in self.chrome.get_log("performance")]
        sent = [event["params"] for event in events if event["method"] == "Network.requestWillBeSent"]
        return {request["request"]["url"].partition(":")[0] for request in sent if request["documentURL"].startswith("file:")}


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Callable[..., Reader]]:
    """Opens Chromium, each time with a new profile."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not (chromium and driver):
        pytest.skip("chromium and chromedriver are not installed: `make browser`")
    browsers: list[Any] = []

    def open_browser() -> Reader:
        options = webdriver.ChromeOptions()
        options.binary_location = chromium
        profile = tmp_path / f"chromium{len(browsers)}"
        downloads = profile / "downloads"
        downloads.mkdir(parents=True)
        for argument in (
            "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
            "--disable-background-networking", "--disable-component-update", f"--user-data-dir={profile / 'profile'}",
        ):  # fmt: skip
            options.add_argument(argument)
        options.add_experimental_option("prefs", {"download.default_directory": str(downloads)})
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        browsers.append(webdriver.Chrome(options=options, service=Service(driver)))
        return Reader(browsers[-1], downloads)

    yield open_browser
    for chrome in browsers:
        chrome.quit()
