"""A page that we write: one HTML file that opens from disk, and asks no network for anything."""

import base64
import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup


def fill_page(folder: Path, functions: Mapping[str, Callable[..., Any]] | None = None, **values: Any) -> str:
    """Make a page of a template, a style and one script.

    Log text is hostile, and so is what a model made of it: the template escapes everything, and a content-security-policy lets
    nothing run but the page's own script, by its hash.

    Args:
        folder: Where they stand: page.html, page.css and page.js.
        functions: More filters of the template, by name.
        values: What the template shows, beside `policy`, `style` and `script`.
    """
    environment = Environment(
        loader=FileSystemLoader(folder), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= functions or {}
    # What jinja's filter does not escape for HTML is escaped here: U+2028, and halves of surrogate pairs, which UTF-8 has not.
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
