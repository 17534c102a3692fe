"""What MkDocs calls while it builds the site: files of the repository that pages link to come along, below `repo/`.

So a link is the same on the site as in a checkout, and `--strict` checks them all.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#)[^)#\s]+")
"""The path of a link or picture to a file, less its anchor."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add every file outside docs/ that a page links to, and what those link to in turn.

    Args:
        files: What lies in docs/.
        config: The settings, for where mkdocs.yml lies.

    Returns:
        The same files and those added.
    """
    left = list(files.documentation_pages())
    while left:
        for path in _linked(left.pop(), config):
            name = _name(path, config)
            if path.is_file() and files.get_file_from_path(name) is None:
                files.append(added := File.generated(config, name, abs_src_path=str(path)))
                left += [added] if added.is_documentation_page() else []
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn a page's links to files into those of the site.

    Args:
        markdown: The page as it is written.
        page: Where it lies.
        config: The settings.
        files: Not looked at: MkDocs itself says what is not there.

    Returns:
        The page with links that start from its place on the site.
    """
    here = Path(page.file.src_uri).parent
    paths = _linked(page.file, config, markdown)
    return LINK.sub(lambda _: Path(os.path.relpath(_name(next(paths), config), here)).as_posix(), markdown)


def _linked(file: File, config: MkDocsConfig, markdown: str | None = None) -> Iterator[Path]:
    """Where a page's links lead in the repository, in their order."""
    source = Path(str(file.abs_src_path))
    for link in LINK.findall(file.content_string if markdown is None else markdown):
        yield Path(os.path.normpath(source.parent / link))


def _name(path: Path, config: MkDocsConfig) -> str:
    """The path of a file of the repository on the site."""
    docs = Path(config.docs_dir)
    if path.is_relative_to(docs):
        return path.relative_to(docs).as_posix()
    return f"repo/{Path(os.path.relpath(path, Path(str(config.config_file_path)).parent)).as_posix()}"
