"""Turn what the commands of a case left behind into a few texts that can be compared and read."""

import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from tests.golden.masks import Masks
from tests.golden.pages import page_text
from tests.golden.tables import LONG, Rows, digest_text, read_dataset, rows_text
from tests.golden.values import VOLATILE, compact, cut, plain, pretty

MANIFEST = "manifest.json"
INPUTS = ("logs", "job", "_")
"""How names in a case's folder begin that are inputs, or read by a step of the case itself."""

ADDRESS = re.compile(r"(?<=-)[0-9a-f]{8}(?=\.json$)")
"""Digest of an address, so of a port, in the name of a file of `publish`."""

ERROR = "error"
"""Column of prose: its texts stand in a file of their own, so that other wording changes no data."""


def normalize(folder: Path, masks: Masks) -> dict[str, str]:
    """Normalize all that a case has written.

    Args:
        folder: Folder of the case.
        masks: Its masks.

    Returns:
        Name of the expected file -> its text.
    """
    found: dict[str, str] = {}
    for path in sorted(folder.iterdir()):
        if path.name.startswith(INPUTS):
            continue
        if (path / MANIFEST).exists():
            found |= {f"{path.name}/{name}": text for name, text in _output(path, masks)}
        elif path.is_dir():
            found |= {f"{path.name}/{file.relative_to(path)}.txt": _file(file, masks) for file in _files(path)}
        else:
            found[f"{path.name}.txt"] = _file(path, masks)
    return {name: text for name, text in found.items() if text}


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _output(folder: Path, masks: Masks) -> Iterator[tuple[str, str]]:
    """An output folder: its datasets, records, other files, and the names of all."""
    errors: list[str] = []
    raw = read_dataset(folder / "raw")
    for place in sorted(path for path in folder.iterdir() if path.is_dir() and list(path.rglob("*.parquet"))):
        rows = raw if place.name == "raw" else read_dataset(place)
        if not rows.rows:
            continue
        base = raw if place.name == "scored" and raw.rows else None
        errors += _take_errors(rows, masks)
        yield f"{place.name}.txt", rows_text(rows, masks.value, base)
    yield "errors.txt", "".join(f"{line}\n" for line in dict.fromkeys(errors))
    stats = {str(path.relative_to(folder)): _json(path, masks) for path in sorted((folder / "stats").rglob("*.json"))}
    yield "stats.json", f"{pretty(stats)}\n" if stats else ""
    for path in _files(folder):
        name = ADDRESS.sub("address", str(path.relative_to(folder)))
        if path.suffix == ".parquet" and path.parent == folder:
            yield f"{name}.txt", _file(path, masks)
        elif path.suffix in {".json", ".html", ".jsonl"} and not name.startswith("stats/"):
            yield f"{name}.txt" if path.suffix != ".json" else name, _file(path, masks)
    yield "tree.txt", "".join(f"{name}\n" for name in _tree(folder, masks))


def _take_errors(rows: Rows, masks: Masks) -> list[str]:
    """Replace the texts of errors in rows, and return them as lines."""
    lines = []
    for row in rows.rows:
        if row.get(ERROR) is not None:
            lines.append(f"{row.get('row_id')} {row.get('status')}: {cut(masks.output(row[ERROR]).strip())}")
            row[ERROR] = "<in errors.txt>"
    return sorted(lines)


def _tree(folder: Path, masks: Masks) -> list[str]:
    """Names below an output folder; how many Parquet files a part has is left to Ray."""
    found = set()
    for path in _files(folder):
        name = path.relative_to(folder)
        shown = str(name.parent / "*.parquet" if path.suffix == ".parquet" else name)
        found.add(ADDRESS.sub("address", masks.record(shown)))
    return sorted(found)


def _json(path: Path, masks: Masks) -> Any:
    return plain(json.loads(path.read_text("utf-8")), masks.record, volatile=VOLATILE)


def _file(path: Path, masks: Masks) -> str:
    """One file by its kind."""
    if path.suffix == ".parquet":
        rows = Rows()
        rows.add(pq.read_table(path, partitioning=None))
        return digest_text(rows, masks.value) if len(rows.rows) > LONG else rows_text(rows, masks.value)
    data = path.read_bytes()
    text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8")
    if path.suffix == ".html":
        return page_text(text, masks.value, lambda line: masks.output(line).strip())
    if path.suffix == ".json":
        return f"{pretty(plain(json.loads(text), masks.record, volatile=VOLATILE))}\n"
    if path.suffix == ".yaml":  # comments are wrapped, and the lengths of paths differ
        text = re.sub(r"(?<=\S)\n# (?=\S)", " ", text)
    if path.suffix in {".jsonl", ".ndjson"}:
        return "".join(f"{compact(plain(json.loads(line), masks.record, volatile=VOLATILE))}\n" for line in text.splitlines())
    return masks.output(text)
