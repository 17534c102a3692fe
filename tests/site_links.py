"""MkDocs hooks that add the repository files that pages link to, below `repo/`.

So links are the same on the site and in a checkout, and `--strict` checks them all.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#)[^)#\s]+")
"""Path of a link or picture to a file, without its anchor."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add every file outside docs/ that a page links to, directly or through added pages.

    Args:
        files: Files in docs/.
        config: Settings, with the place of mkdocs.yml.

    Returns:
        The same object, with the added files.
    """
    pending = list(files.documentation_pages())
    while pending:
        for path in _find_linked_paths(pending.pop(), config):
            name = _get_site_path(path, config)
            if path.is_file() and files.get_file_from_path(name) is None:
                files.append(added := File.generated(config, name, abs_src_path=str(path)))
                pending += [added] if added.is_documentation_page() else []
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Rewrite a page's links to files for the site.

    Args:
        markdown: Source of the page.
        page: The page.
        config: Settings.
        files: Unused; MkDocs itself reports missing files.

    Returns:
        The page with links relative to its place on the site.
    """
    folder = Path(page.file.src_uri).parent
    paths = _find_linked_paths(page.file, config, markdown)
    return LINK.sub(lambda _: Path(os.path.relpath(_get_site_path(next(paths), config), folder)).as_posix(), markdown)


def _find_linked_paths(file: File, config: MkDocsConfig, markdown: str | None = None) -> Iterator[Path]:
    """Resolve a page's links to paths in the repository, in order."""
    source = Path(str(file.abs_src_path))
    for link in LINK.findall(file.content_string if markdown is None else markdown):
        yield Path(os.path.normpath(source.parent / link))


def _get_site_path(path: Path, config: MkDocsConfig) -> str:
    """Return the path on the site of a file of the repository."""
    docs = Path(config.docs_dir)
    if path.is_relative_to(docs):
        return path.relative_to(docs).as_posix()
    return f"repo/{Path(os.path.relpath(path, Path(str(config.config_file_path)).parent)).as_posix()}"
