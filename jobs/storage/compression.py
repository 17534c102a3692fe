"""Compression of text files by their suffix."""

COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}
"""Suffix -> compression of a text file."""

BOM = b"\xef\xbb\xbf"
"""Byte order mark of UTF-8."""


def find_compression(path: str) -> str | None:
    """Return the compression of a text file by its suffix; None for plain text."""
    return next((name for suffix, name in COMPRESSIONS.items() if path.lower().endswith(suffix)), None)
