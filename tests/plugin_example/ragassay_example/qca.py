"""Format `.qca`: blocks of lines `Q: …`, `C: …` (each a passage) and `A: …`, with an empty line between blocks."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from hashlib import blake2b

import pyarrow as pa
from pyarrow import fs as pafs

from ragassay.jobs.input.files import FileFormat, LogFile

SCHEMA = pa.schema([("question", pa.string()), ("context", pa.list_(pa.string())), ("response", pa.string())])


class Reader:
    def __init__(self, text: str) -> None:
        blocks = [block.splitlines() for block in text.split("\n\n") if block.strip()]
        rows = [{mark: [line[3:] for line in block if line.startswith(f"{mark}: ")] for mark in "QCA"} for block in blocks]
        columns = {"question": [" ".join(r["Q"]) for r in rows], "context": [r["C"] for r in rows]}
        self.table = pa.table({**columns, "response": [" ".join(r["A"]) for r in rows]}, schema=SCHEMA)
        self.row_group_sizes = [len(rows)]

    def read_batches(self, row_group: int, max_rows: int, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        names = SCHEMA.names if columns is None else [name for name in columns if name in SCHEMA.names]
        yield from self.table.select(names).to_batches(max_chunksize=max_rows)


def read_bytes(fs: pafs.FileSystem, path: str) -> bytes:
    with fs.open_input_stream(path) as stream:
        content: bytes = stream.read()
        return content


@contextmanager
def open_qca(fs: pafs.FileSystem, path: str) -> Iterator[Reader]:
    yield Reader(read_bytes(fs, path).decode())


def inspect(fs: pafs.FileSystem, file: LogFile) -> LogFile:
    content = read_bytes(fs, file.fs_path)
    rows = Reader(content.decode()).row_group_sizes[0]
    return replace(file, rows=rows, schema=SCHEMA, row_groups=1, digest=blake2b(content, digest_size=16).hexdigest())


QCA = FileFormat("QCA", ".qca", inspect, open_qca)
