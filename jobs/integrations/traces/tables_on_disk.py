"""Keep tables on local disk by name, so that an export of any size needs bounded memory and few open files."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

_OPTIONS = pa.ipc.IpcWriteOptions(compression="zstd")


class TablesOnDisk:
    """Named sequences of rows in a folder. A file is open only during an append or a read."""

    def __init__(self, folder: Path) -> None:
        """Start without rows.

        Args:
            folder: An empty folder.
        """
        self._folder = folder
        self._files: dict[str, Path] = {}

    def append(self, name: str, rows: pa.Table) -> None:
        """Append rows to a sequence."""
        path = self._files.setdefault(name, self._folder / f"{len(self._files)}.arrow")
        with path.open("ab") as file, pa.ipc.new_stream(file, rows.schema, options=_OPTIONS) as stream:
            stream.write_table(rows)

    def names(self) -> list[str]:
        """Return all names, in the order of their first rows."""
        return list(self._files)

    def drain(self, name: str) -> Iterator[pa.RecordBatch]:
        """Read the rows of a sequence in order, then delete them."""
        path = self._files[name]
        end = path.stat().st_size
        with pa.OSFile(str(path)) as file:
            while file.tell() < end:
                with pa.ipc.open_stream(file) as stream:
                    yield from stream
        path.unlink()
