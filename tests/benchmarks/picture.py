"""Make the README's picture of a report with headless Chromium: the top of the page with its first card.

python -m tests.benchmarks.picture out/demo/report.html docs/assets/report.png
"""

import base64
import io
import shutil
import sys
from pathlib import Path

WIDTH, MARGIN = 1000, 12
"""Width and bottom margin, in pixels."""

COLORS = 200
"""Number of colors; few keep the file small."""

SHOW_FIRST_CARD = """
const more = [...document.querySelectorAll("article")].slice(1);
for (const article of more) article.hidden = true;
return Math.ceil(document.querySelector("article").getBoundingClientRect().bottom + scrollY);
"""


def save_picture(page: Path, target: Path) -> None:
    """Write a picture of the top of a page, down to the end of its first card.

    Args:
        page: Page of `ragassay report`.
        target: PNG file to write.
    """
    from PIL import Image
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not (chromium and driver):
        raise SystemExit("chromium and chromedriver are not installed: `make browser`")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-background-networking"):
        options.add_argument(argument)
    with webdriver.Chrome(options=options, service=Service(driver)) as chrome:
        size = {"width": WIDTH, "height": 1000, "deviceScaleFactor": 1, "mobile": False}
        chrome.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        chrome.get(page.absolute().as_uri())
        clip = {"x": 0, "y": 0, "width": WIDTH, "height": chrome.execute_script(SHOW_FIRST_CARD) + MARGIN, "scale": 1}
        screenshot = chrome.execute_cdp_cmd(
            "Page.captureScreenshot", {"format": "png", "captureBeyondViewport": True, "clip": clip}
        )
    with Image.open(io.BytesIO(base64.b64decode(screenshot["data"]))) as image:
        image.quantize(COLORS).save(target, optimize=True)


if __name__ == "__main__":
    save_picture(Path(sys.argv[1]), Path(sys.argv[2]))
