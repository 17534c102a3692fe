"""Render an HTML file that opens from disk and loads nothing from the network."""

import base64
import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup


def render_page(folder: Path, template_filters: Mapping[str, Callable[..., Any]] | None = None, **values: Any) -> str:
    """Render a page from a template, a style sheet and one script.

    Log texts and model outputs are untrusted: the template escapes everything, and a content security policy allows only the
    page's own script, by its hash.

    Args:
        folder: Folder of page.html, page.css and page.js.
        template_filters: More template filters, by name.
        values: Template values, in addition to `policy`, `style` and `script`.
    """
    environment = Environment(
        loader=FileSystemLoader(folder), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= template_filters or {}
    # Jinja's filter does not escape U+2028 and lone surrogates, which UTF-8 can't encode; ASCII output does.
    environment.policies["json.dumps_kwargs"] = {"ensure_ascii": True, "allow_nan": False}
    script = (folder / "page.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return environment.get_template("page.html").render(
        policy=Markup(
            f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
        ),
        style=Markup((folder / "page.css").read_text(encoding="utf-8")),
        script=Markup(script),
        **values,
    )
