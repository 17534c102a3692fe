"""Headless Chromium with a download folder, which opens a review page as a file."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser import start_chromium


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
    browsers: list[Any] = []

    def open_browser() -> Reader:
        profile = tmp_path / f"chromium{len(browsers)}"
        downloads = profile / "downloads"
        downloads.mkdir(parents=True)
        browsers.append(start_chromium(profile / "profile", downloads=downloads))
        return Reader(browsers[-1], downloads)

    yield open_browser
    for chrome in browsers:
        chrome.quit()
