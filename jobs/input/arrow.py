"""Read Arrow files, as Hugging Face datasets save them: a stream of record batches, or a file of them with a footer."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import PurePosixPath

import pyarrow as pa
from pyarrow import fs as pafs

from ragassay.jobs.input import errors
from ragassay.jobs.input.files import FileFormat, LogFile
from ragassay.pipeline.errors import InputError

_FILE_MAGIC = b"ARROW1"
_END_BYTES = 1 << 16  # bytes of each end that the digest covers, in addition to the layout
_STATE_FILE = "state.json"
SPLITS_FILE = "dataset_dict.json"
"""File in the parent folder of a dataset's splits. Each split is a partition, such as `split=train`."""

_INDICES_SCHEMA = pa.schema([("indices", pa.uint64())])


@dataclass(frozen=True)
class Batches:
    """How to read an Arrow file.

    Attributes:
        offsets: Offset of each record batch of a stream; None for a file with a footer.
        sizes: Number of rows of each row group. A row group is a record batch; a stream with dictionaries has one row group,
            because it must be read from its beginning.
    """

    offsets: tuple[int, ...] | None
    sizes: tuple[int, ...]

    @contextmanager
    def open(self, fs: pafs.FileSystem, path: str) -> Iterator["_ArrowReader"]:
        """Open the file."""
        with _open_source(fs, path) as source:
            yield _ArrowReader(source, self)


class _ArrowReader:
    def __init__(self, source: pa.NativeFile, view: Batches) -> None:
        self._source, self._view = source, view
        self.row_group_sizes = list(view.sizes)

    def read_batches(self, row_group: int, max_rows: int, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        for batch in self._read_row_group(row_group):
            selected = batch if columns is None else batch.select([name for name in columns if name in batch.schema.names])
            for start in range(0, batch.num_rows, max_rows):
                yield selected.slice(start, max_rows)

    def _read_row_group(self, row_group: int) -> Iterator[pa.RecordBatch]:
        offsets = self._view.offsets
        self._source.seek(0)
        if offsets is None:
            yield pa.ipc.open_file(self._source).get_batch(row_group)
        elif len(offsets) != len(self.row_group_sizes):  # dictionaries precede the batches that use them
            yield from pa.ipc.open_stream(self._source)
        else:
            schema = pa.ipc.open_stream(self._source).schema
            self._source.seek(offsets[row_group])
            yield pa.ipc.read_record_batch(pa.ipc.read_message(self._source), schema)


@contextmanager
def _open_source(fs: pafs.FileSystem, path: str) -> Iterator[pa.NativeFile]:
    """Open a file. A local file is memory-mapped, so only the parts that are read are loaded."""
    with pa.memory_map(path) if isinstance(fs, pafs.LocalFileSystem) else fs.open_input_file(path) as source:
        yield source


def _inspect(fs: pafs.FileSystem, file: LogFile) -> LogFile:
    digest = blake2b(digest_size=16)
    with _open_source(fs, file.fs_path) as source:
        size = source.size()
        digest.update(source.read_at(min(size, _END_BYTES), 0))
        digest.update(source.read_at(min(size, _END_BYTES), max(0, size - _END_BYTES)))
        source.seek(0)
        head = source.read(len(_FILE_MAGIC))
        source.seek(0)
        schema, view = _read_file_layout(source) if head == _FILE_MAGIC else _read_stream_layout(source)
    if schema.remove_metadata() == _INDICES_SCHEMA:
        raise pa.ArrowInvalid(
            "it is an indices mapping of a Hugging Face dataset (after select, shuffle or filter) and has no rows: save the "
            "dataset with `dataset.flatten_indices().save_to_disk(…)`, and use that folder"
        )
    digest.update(repr(view).encode())
    return replace(file, rows=sum(view.sizes), schema=schema, row_groups=len(view.sizes), digest=digest.hexdigest(), view=view)


def _read_file_layout(source: pa.NativeFile) -> tuple[pa.Schema, Batches]:
    reader = pa.ipc.open_file(source)
    return reader.schema, Batches(None, tuple(reader.get_batch(i).num_rows for i in range(reader.num_record_batches)))


def _read_stream_layout(source: pa.NativeFile) -> tuple[pa.Schema, Batches]:
    """Read all batches of a stream in order, because a stream has no index of them."""
    offsets, sizes = [], []
    with pa.ipc.open_stream(source) as reader:
        while True:
            offsets.append(source.tell())
            try:
                sizes.append(reader.read_next_batch().num_rows)
            except StopIteration:
                break
        schema, dictionaries = reader.schema, reader.stats.num_dictionary_batches
    if dictionaries:
        return schema, Batches((), (sum(sizes),) if sizes else ())
    return schema, Batches(tuple(offsets[:-1]), tuple(sizes))


ARROW = FileFormat("Arrow, as Hugging Face datasets save it", ".arrow", _inspect)


def drop_cache_files(fs: pafs.FileSystem, paths: Sequence[str], json_names: Mapping[str, Collection[str]]) -> list[str]:
    """Remove Arrow files that contain no rows of a dataset.

    These are the files that `state.json` does not list; in a folder without it, the caches of processing steps.

    Args:
        fs: File system.
        paths: Paths of files.
        json_names: Folder -> names of the JSON files in it.

    Raises:
        InputError: The dataset selects rows by an indices mapping, which is not supported.
    """
    data_files: dict[str, set[str] | None] = {}
    kept = []
    for path in paths:
        folder, _, name = path.rpartition("/")
        if not name.lower().endswith(".arrow"):
            kept.append(path)
            continue
        if folder not in data_files:
            data_files[folder] = _read_data_files(fs, folder) if _STATE_FILE in json_names.get(folder, ()) else None
        listed = data_files[folder]
        if name in listed if listed is not None else not name.startswith(("cache-", "tmp", "indices")):
            kept.append(path)
    return kept


def _read_data_files(fs: pafs.FileSystem, folder: str) -> set[str] | None:
    """Return the names of the files that a dataset's state lists; None if the file lists none."""
    try:
        with fs.open_input_stream(f"{folder}/{_STATE_FILE}") as stream:
            state = json.loads(bytes(stream.read()))
        files = [PurePosixPath(entry["filename"]).name for entry in state["_data_files"]]
    except (OSError, ValueError, KeyError, TypeError):  # a state.json of another program
        return None
    if state.get("_indices_data_files") or state.get("_indices_files"):
        raise InputError(errors.INDICES_MAPPING, folder=folder)
    return set(files)
