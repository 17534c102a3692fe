"""Tables on this machine's disk, appended to by name: an export of any size takes bounded memory and few open files."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

_OPTIONS = pa.ipc.IpcWriteOptions(compression="zstd")


class Spill:
    """Named sequences of rows in a folder. A file is open only while it is appended to or read."""

    def __init__(self, folder: Path) -> None:
        """Begin without rows.

        Args:
            folder: An empty folder.
        """
        self._folder = folder
        self._files: dict[str, Path] = {}

    def append(self, name: str, rows: pa.Table) -> None:
        """Add rows behind those of this name."""
        path = self._files.setdefault(name, self._folder / f"{len(self._files)}.arrow")
        with path.open("ab") as file, pa.ipc.new_stream(file, rows.schema, options=_OPTIONS) as stream:
            stream.write_table(rows)

    def names(self) -> list[str]:
        """All names, in the order of their first rows."""
        return list(self._files)

    def batches(self, name: str) -> Iterator[pa.RecordBatch]:
        """The rows of a name, in order; they are deleted when they have been read."""
        path = self._files[name]
        end = path.stat().st_size
        with pa.OSFile(str(path)) as file:
            while file.tell() < end:
                with pa.ipc.open_stream(file) as stream:
                    yield from stream
        path.unlink()
