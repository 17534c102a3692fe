"""Render the review page (`ragassay review`): one HTML file for labeling that opens from disk and loads nothing from the
network.
"""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

from ragassay.jobs.report.html_page import render_page
from ragassay.jobs.report.review.rows import PageRow

FOLDER = Path(__file__).parent


def render_review(output: str, rows: Sequence[PageRow], level: str) -> str:
    """Render the review page.

    Log texts are untrusted: the page contains them only as JSON, escaped for HTML, and its script shows them as text; see
    `render_page`.

    Args:
        output: URI of the output folder. The browser keeps the labels under this URI and the sample's hash.
        rows: Rows of `read_page_rows`.
        level: Level to label first, sentences or responses; the reviewer can switch.
    """
    return render_page(
        FOLDER,
        output=output,
        data={"output": output, "sample": hash_sample(rows), "level": level, "rows": list(rows)},
    )


def hash_sample(rows: Sequence[PageRow]) -> str:
    """Hash a sample: its rows, their order, their sentences, and how they were drawn."""
    parts = [
        [
            row["row_id"], row["partition"], row["stratum"], row["inclusion_probability"],
            [(part["start"], part["end"]) for part in row["parts"] if not isinstance(part, str)],
        ]
        for row in rows
    ]  # fmt: skip
    return hashlib.blake2b(json.dumps(parts).encode(), digest_size=8).hexdigest()
