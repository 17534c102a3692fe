"""Start headless Chromium, and check the accessibility of a page with axe-core."""

import importlib.util
import shutil
from pathlib import Path
from typing import Any

import pytest

ARGUMENTS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update",
)  # fmt: skip
PHONE = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
SCREEN = {"width": 1280, "height": 900, "deviceScaleFactor": 1, "mobile": False}


def start_chromium(profile: Path, *, is_dark: bool = False, downloads: Path | None = None) -> Any:
    """Start Chromium with a new profile; the test is skipped if it is not installed."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not (chromium and driver):
        pytest.skip("chromium and chromedriver are not installed: `make browser`")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for argument in (*ARGUMENTS, f"--user-data-dir={profile}"):
        options.add_argument(argument)
    if is_dark:
        options.add_argument("--blink-settings=preferredColorScheme=0")
    if downloads is not None:
        options.add_experimental_option("prefs", {"download.default_directory": str(downloads)})
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return webdriver.Chrome(options=options, service=Service(driver))


def resize(chrome: Any, screen: dict[str, Any]) -> None:
    """Set the size of the window: SCREEN or PHONE."""
    chrome.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)


def find_violations(chrome: Any) -> list[tuple[str, str, str]]:
    """Check the open page with axe-core: return (impact, rule, element) of each violation. Nothing is fetched."""
    package = importlib.util.find_spec("axe_playwright_python")
    assert package is not None and package.submodule_search_locations, "axe-playwright-python is missing: `make setup`"
    chrome.execute_script((Path(package.submodule_search_locations[0]) / "axe.min.js").read_text(encoding="utf-8"))
    result = chrome.execute_async_script("axe.run(document).then(arguments[arguments.length - 1])")
    return [
        (violation["impact"], violation["id"], node["html"][:200])
        for violation in result["violations"]
        for node in violation["nodes"]
    ]
