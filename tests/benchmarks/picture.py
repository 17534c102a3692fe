"""Make a picture of a page with headless Chromium: a report down to the end of its first card, or a review page.

python -m tests.benchmarks.picture out/demo/report.html docs/assets/report.png
python -m tests.benchmarks.picture out/demo/review.html docs/assets/review.png
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

SHOW_FIRST_SENTENCE = """
document.querySelector("dialog input").value = "Ana";
document.querySelector("dialog button").click();
document.dispatchEvent(new KeyboardEvent("keydown", {key: "p", bubbles: true}));
return 750;
"""

SCRIPTS = {"report": SHOW_FIRST_CARD, "review": SHOW_FIRST_SENTENCE}
"""Name of the page -> script that prepares it and returns the height of the picture."""


def save_picture(page: Path, target: Path) -> None:
    """Write a picture of the top of a page.

    Args:
        page: Page of `ragassay report` or `ragassay review`.
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
        size = {"width": WIDTH, "height": 760, "deviceScaleFactor": 1, "mobile": False}
        chrome.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        chrome.get(page.absolute().as_uri())
        clip = {"x": 0, "y": 0, "width": WIDTH, "height": chrome.execute_script(SCRIPTS[page.stem]) + MARGIN, "scale": 1}
        screenshot = chrome.execute_cdp_cmd(
            "Page.captureScreenshot", {"format": "png", "captureBeyondViewport": True, "clip": clip}
        )
    with Image.open(io.BytesIO(base64.b64decode(screenshot["data"]))) as image:
        image.quantize(COLORS).save(target, optimize=True)


if __name__ == "__main__":
    save_picture(Path(sys.argv[1]), Path(sys.argv[2]))
