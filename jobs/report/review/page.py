"""`review`: one HTML file in which a person labels; it opens from disk and asks no network for anything."""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

from ragassay.jobs.report.html_page import fill_page
from ragassay.jobs.report.review.rows import Shown

HERE = Path(__file__).parent


def render(output: str, rows: Sequence[Shown], level: str) -> str:
    """The page.

    Log text is hostile: it stands in the page as JSON alone, in which nothing looks like HTML, and the page's script shows it
    as text; see `fill_page`.

    Args:
        output: URI of the output folder. Under it, and what the sample is, the browser keeps the labels.
        rows: What `shown_rows` makes of the sample.
        level: What is labelled first, sentences or responses; the page turns to the other on a key.
    """
    return fill_page(
        HERE,
        output=output,
        data={"output": output, "sample": sample_id(rows), "level": level, "rows": list(rows)},
    )


def sample_id(rows: Sequence[Shown]) -> str:
    """What tells a sample from others: its rows, their order, their sentences, and how they were drawn."""
    parts = [
        [
            row["row_id"], row["partition"], row["stratum"], row["inclusion_probability"],
            [(part["start"], part["end"]) for part in row["parts"] if not isinstance(part, str)],
        ]
        for row in rows
    ]  # fmt: skip
    return hashlib.blake2b(json.dumps(parts).encode(), digest_size=8).hexdigest()
