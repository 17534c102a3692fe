"""Make a picture of the top of a page of `report` or `review` with headless Chromium, for docs/assets.

python -m tests.benchmarks.picture audit/report.html docs/assets/report.png
python -m tests.benchmarks.picture audit/report/index.html docs/assets/report-phone.png phone
python -m tests.benchmarks.picture audit/report/2026-11-19.html docs/assets/report-dark.png dark
python -m tests.benchmarks.picture audit/review.html docs/assets/review.png
"""

import base64
import io
import sys
import tempfile
from pathlib import Path

from tests.browser import PHONE, SCREEN, resize, start_chromium

HEIGHT, REVIEW_HEIGHT = 1330, 800
"""Heights of the pictures, in pixels."""

COLORS = 128
"""Number of colors; few keep the file small."""

SHOW_NEAREST_PASSAGE = """
document.querySelector("dialog input").value = "Ana";
document.querySelector("dialog button").click();
document.dispatchEvent(new KeyboardEvent("keydown", {key: "p", bubbles: true}));
"""


def save_picture(page: Path, target: Path, style: str = "") -> None:
    """Write a picture of the top of a page.

    Args:
        page: The page.
        target: PNG file to write.
        style: phone, dark, or empty.
    """
    from PIL import Image

    screen = PHONE if style == "phone" else SCREEN
    is_review = page.stem == "review"
    with tempfile.TemporaryDirectory() as profile:
        chrome = start_chromium(Path(profile), is_dark=style == "dark")
        try:
            resize(chrome, screen)
            chrome.get(page.absolute().as_uri())
            if is_review:
                chrome.execute_script(SHOW_NEAREST_PASSAGE)
            clip = {"x": 0, "y": 0, "width": screen["width"], "height": REVIEW_HEIGHT if is_review else HEIGHT, "scale": 1}
            settings = {"format": "png", "captureBeyondViewport": not is_review, "clip": clip}
            screenshot = chrome.execute_cdp_cmd("Page.captureScreenshot", settings)
        finally:
            chrome.quit()
    with Image.open(io.BytesIO(base64.b64decode(screenshot["data"]))) as image:
        image.quantize(COLORS).save(target, optimize=True)


if __name__ == "__main__":
    save_picture(Path(sys.argv[1]), Path(sys.argv[2]), *sys.argv[3:])
