"""The site of docs/ builds without warnings, its links resolve, and its pages load nothing from other hosts."""

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests import rooms
from tests.site_picture import Arrows, find_arrows, layer_labels

REPO = Path(__file__).parent.parent
FETCHED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href", "object": "data"}
"""Tag -> attribute with a URL that a browser fetches without a click."""

NOT_PROSE = ("pre", "code", "script", "style", "nav", "h1", "h2", "h3")


def build_site(config: Path, site: Path) -> subprocess.CompletedProcess[str]:
    """Build the site of a configuration. Not with `--quiet`: MkDocs counts only the warnings that it prints."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", str(config), "-d", str(site)]
    return subprocess.run(command, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True, check=False)


@dataclass
class Page(HTMLParser):
    """Built page: its anchors, links, fetched URLs, and text outside code and headings."""

    text: str
    anchors: set[str] = field(default_factory=set)
    links: set[str] = field(default_factory=set)
    fetched: set[str] = field(default_factory=set)
    prose: list[str] = field(default_factory=list)
    inside: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()
        self.feed(self.text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value for name, value in attrs if value is not None}
        self.anchors |= {attributes[name] for name in ("id", "name") if name in attributes}
        self.links |= {attributes["href"]} if tag == "a" and "href" in attributes else set()
        self.fetched |= {attributes[FETCHED[tag]]} if attributes.get(FETCHED.get(tag, "")) else set()
        self.inside += [tag] if tag in NOT_PROSE else []

    def handle_endtag(self, tag: str) -> None:
        if self.inside and self.inside[-1] == tag:
            self.inside.pop()

    def handle_data(self, data: str) -> None:
        if not self.inside:
            self.prose.append(data)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the built site."""
    folder = tmp_path_factory.mktemp("site")
    result = build_site(REPO / "mkdocs.yml", folder)
    assert result.returncode == 0, result.stdout + result.stderr
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    """Pages of the built site."""
    return {path: Page(path.read_text(encoding="utf-8")) for path in site.rglob("*.html") if path.name != "404.html"}


def test_every_link_of_the_built_pages_resolves(site: Path, pages: dict[Path, Page]) -> None:
    assert {"index.html", "first-audit.html", "nightly.html", "glossary.html", "method.html"} <= {path.name for path in pages}
    for path, page in pages.items():
        for link in page.links | page.fetched:
            parts = urlsplit(link)
            if parts.scheme in ("http", "https", "mailto", "data"):
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            assert target.is_relative_to(site.resolve()) and target.is_file(), f"{path.name}: {link}"
            if parts.fragment and target.suffix == ".html":
                assert unquote(parts.fragment) in pages[target].anchors, f"{path.name}: {link}"


def test_nothing_is_fetched_from_other_hosts(site: Path, pages: dict[Path, Page]) -> None:
    for path, page in pages.items():
        assert page.fetched and not [name for name in page.fetched if urlsplit(name).netloc], path.name
    for sheet in site.rglob("*.css"):
        assert not re.search(r"(url\(|@import)\s*['\"]?(https?:)?//", sheet.read_text(encoding="utf-8")), sheet.name


def test_the_search_needs_no_server(site: Path, pages: dict[Path, Page]) -> None:
    index = (site / "search" / "search_index.js").read_text(encoding="utf-8")
    assert index.startswith("var __index = ") and '"location":"start/first-audit.html' in index.replace(" ", "")
    assert all(any("iframe-worker" in name for name in page.fetched) for page in pages.values())


@pytest.mark.slow
def test_the_search_finds_in_a_browser_without_a_server(site: Path, tmp_path: Path) -> None:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import WebDriverWait

    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not (chromium and driver):
        pytest.skip("chromium and chromedriver are not installed: `make browser`")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}"):
        options.add_argument(argument)
    with webdriver.Chrome(options=options, service=Service(driver)) as chrome:
        chrome.get((site / "index.html").as_uri())
        field = chrome.find_element(By.CSS_SELECTOR, "input.md-search__input")
        chrome.execute_script("arguments[0].focus()", field)
        field.send_keys("Clopper-Pearson")
        WebDriverWait(chrome, 30).until(lambda c: c.find_elements(By.CSS_SELECTOR, ".md-search-result__item"))
        results = [link.get_attribute("href") for link in chrome.find_elements(By.CSS_SELECTOR, "a.md-search-result__link")]
        assert (site / "background" / "method.html").as_uri() in {re.split(r"[?#]", str(link))[0] for link in results}
        loaded = chrome.execute_script("return performance.getEntriesByType('resource').map(entry => entry.name)")
        assert [name for name in loaded if urlsplit(name).scheme not in ("file", "data")] == []


def test_pages_have_no_unrendered_markdown(pages: dict[Path, Page]) -> None:
    for path, page in pages.items():
        markdown = re.findall(r"^ *(?:[-*] |\| |#+ |```|\d\. ).*|\*\*.*|\]\(.*", "".join(page.prose), re.MULTILINE)
        assert not markdown, f"{path.name}: unrendered Markdown (a list needs an empty line before it): {markdown[:3]}"


def assert_drawn(draw: str, arrows: Arrows) -> None:
    """Check that a picture has every box and arrow, and that arrows point down."""
    layer_numbers = {label: number for number, row in enumerate(layer_labels(arrows)) for label in row}
    assert arrows and all(layer_numbers[upper] < layer_numbers[lower] for upper, lower in arrows)
    assert draw.count('marker-end="url(#head)"') == len(arrows)
    assert all(f">{label}</text>" in draw for label in layer_numbers)


def test_the_flow_of_a_row_is_drawn(site: Path) -> None:
    page = (site / "background" / "architecture.html").read_text(encoding="utf-8")
    assert_drawn(page, find_arrows((REPO / "docs" / "background" / "architecture.md").read_text(encoding="utf-8")))
    assert "flowchart TD" not in page


def test_the_imports_are_drawn() -> None:
    assert_drawn(rooms.draw_picture(), rooms.list_imports())


def test_a_broken_link_fails_the_build(tmp_path: Path) -> None:
    (tmp_path / "docs" / "assets").mkdir(parents=True)
    (tmp_path / "docs" / "assets" / "iframe-worker.js").touch()
    (tmp_path / "docs" / "assets" / "site.css").touch()
    (tmp_path / "NOTE.md").write_text("# Note\n[back](docs/other.md#there)\n[data](DATA.yaml)\n")
    (tmp_path / "DATA.yaml").write_text("a: 1\n")
    (tmp_path / "docs" / "other.md").write_text("# Other\n## There\n[note](../NOTE.md#note)\n")
    config = tmp_path / "mkdocs.yml"
    hook = REPO / "tests" / "site_links.py"
    config.write_text(f"INHERIT: {REPO / 'mkdocs.yml'}\ndocs_dir: docs\nnav: [index.md, other.md]\nhooks: ['{hook}']\n")
    page = tmp_path / "docs" / "index.md"
    page.write_text("# Home\n[good](other.md#there)\n")
    result = build_site(config, tmp_path / "site")
    assert result.returncode == 0, result.stdout + result.stderr
    assert (tmp_path / "site" / "repo" / "DATA.yaml").read_text() == "a: 1\n"
    broken = ["nothing.md", "#nothing", "other.md#nowhere", "../ABSENT.md", "no.png"]
    page.write_text("# Home\n" + "\n".join(f"[a]({link})" for link in broken))
    (tmp_path / "NOTE.md").write_text("# Note\n[back](docs/other.md#away)\n")
    result = build_site(config, tmp_path / "site")
    assert result.returncode != 0
    for link in ["nothing.md", "#nothing", "other.md#nowhere", "ABSENT.md", "no.png", "other.md#away"]:
        assert link in result.stderr, link
