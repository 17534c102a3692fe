"""Recognize an output folder of RAGAssay by its manifest."""

import json

from pyarrow import fs as pafs

MANIFEST = "manifest.json"

_KEYS = {"fingerprint", "files", "runs"}
"""Keys of a manifest that other files of this name do not have together."""


def is_output_folder(fs: pafs.FileSystem, folder: str) -> bool:
    """Return whether a folder contains a manifest of RAGAssay, of any version.

    Args:
        fs: File system.
        folder: Path of the folder.
    """
    path = f"{folder.rstrip('/')}/{MANIFEST}"
    if fs.get_file_info(path).type != pafs.FileType.File:
        return False
    try:
        with fs.open_input_stream(path) as stream:
            data = json.loads(stream.read())
    except (OSError, ValueError):
        return False
    return isinstance(data, dict) and data.keys() >= _KEYS
