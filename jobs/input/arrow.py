"""Arrow files, as Hugging Face datasets save them: a stream of record batches, or a file of them with a footer."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import PurePosixPath

import pyarrow as pa
from pyarrow import fs as pafs

from ragassay.jobs.input import errors
from ragassay.jobs.input.files import Format, LogFile
from ragassay.pipeline.errors import InputError

_FILE_MAGIC = b"ARROW1"
_ENDS = 1 << 16  # bytes at either end that the digest is of, beside all places
_STATE = "state.json"
SPLITS = "dataset_dict.json"
"""File beside the folders of a dataset's splits: each is a partition, `split=train`."""

_INDICES = pa.schema([("indices", pa.uint64())])


@dataclass(frozen=True)
class Batches:
    """How an Arrow file is read.

    Attributes:
        offsets: Where each record batch of a stream begins; None for a file with a footer.
        sizes: Rows of each row group: of each record batch; of a stream with dictionaries, which has to be read from its
            beginning, of all.
    """

    offsets: tuple[int, ...] | None
    sizes: tuple[int, ...]

    @contextmanager
    def open(self, fs: pafs.FileSystem, path: str) -> Iterator["_Reader"]:
        """Open it."""
        with _source(fs, path) as source:
            yield _Reader(source, self)


class _Reader:
    def __init__(self, source: pa.NativeFile, found: Batches) -> None:
        self._source, self._found = source, found
        self.sizes = list(found.sizes)

    def batches(self, group: int, rows: int, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        for batch in self._whole(group):
            mine = batch if columns is None else batch.select([name for name in columns if name in batch.schema.names])
            for start in range(0, batch.num_rows, rows):
                yield mine.slice(start, rows)

    def _whole(self, group: int) -> Iterator[pa.RecordBatch]:
        offsets = self._found.offsets
        self._source.seek(0)
        if offsets is None:
            yield pa.ipc.open_file(self._source).get_batch(group)
        elif len(offsets) != len(self.sizes):  # a dictionary stands before the batches that use it
            yield from pa.ipc.open_stream(self._source)
        else:
            schema = pa.ipc.open_stream(self._source).schema
            self._source.seek(offsets[group])
            yield pa.ipc.read_record_batch(pa.ipc.read_message(self._source), schema)


@contextmanager
def _source(fs: pafs.FileSystem, path: str) -> Iterator[pa.NativeFile]:
    """On a disk only what is read of it comes into memory."""
    with pa.memory_map(path) if isinstance(fs, pafs.LocalFileSystem) else fs.open_input_file(path) as source:
        yield source


def _look(fs: pafs.FileSystem, file: LogFile) -> LogFile:
    digest = blake2b(digest_size=16)
    with _source(fs, file.fs_path) as source:
        size = source.size()
        digest.update(source.read_at(min(size, _ENDS), 0))
        digest.update(source.read_at(min(size, _ENDS), max(0, size - _ENDS)))
        source.seek(0)
        head = source.read(len(_FILE_MAGIC))
        source.seek(0)
        schema, view = _footed(source) if head == _FILE_MAGIC else _streamed(source)
    if schema.remove_metadata() == _INDICES:
        raise pa.ArrowInvalid(
            "it is an indices mapping of a Hugging Face dataset (of select, shuffle or filter), and no rows: save the dataset "
            "with `dataset.flatten_indices().save_to_disk(…)`, and name that folder"
        )
    digest.update(repr(view).encode())
    return replace(file, rows=sum(view.sizes), schema=schema, row_groups=len(view.sizes), digest=digest.hexdigest(), view=view)


def _footed(source: pa.NativeFile) -> tuple[pa.Schema, Batches]:
    reader = pa.ipc.open_file(source)
    return reader.schema, Batches(None, tuple(reader.get_batch(i).num_rows for i in range(reader.num_record_batches)))


def _streamed(source: pa.NativeFile) -> tuple[pa.Schema, Batches]:
    """A stream has no list of its batches: they are gone through, one after the other."""
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


ARROW = Format("Arrow, as Hugging Face datasets save it", ".arrow", _look)


def without_caches(fs: pafs.FileSystem, paths: Sequence[str], beside: Mapping[str, Collection[str]]) -> list[str]:
    """Files of logs, less Arrow files that hold no rows of a dataset: those that its `state.json` does not name; without one,
    caches of steps.

    Args:
        fs: File system.
        paths: Files.
        beside: Folder -> names of the JSON files in it.

    Raises:
        InputError: A dataset is a selection of its files' rows, by a mapping that is not applied.
    """
    named: dict[str, set[str] | None] = {}
    kept = []
    for path in paths:
        folder, _, name = path.rpartition("/")
        if not name.lower().endswith(".arrow"):
            kept.append(path)
            continue
        if folder not in named:
            named[folder] = _named(fs, folder) if _STATE in beside.get(folder, ()) else None
        mine = named[folder]
        if name in mine if mine is not None else not name.startswith(("cache-", "tmp", "indices")):
            kept.append(path)
    return kept


def _named(fs: pafs.FileSystem, folder: str) -> set[str] | None:
    """The files that a dataset's state names; None where it says nothing of files."""
    try:
        with fs.open_input_stream(f"{folder}/{_STATE}") as stream:
            state = json.loads(bytes(stream.read()))
        files = [PurePosixPath(entry["filename"]).name for entry in state["_data_files"]]
    except (OSError, ValueError, KeyError, TypeError):  # somebody else's state.json
        return None
    if state.get("_indices_data_files") or state.get("_indices_files"):
        raise InputError(errors.INDICES_MAPPING, folder=folder)
    return set(files)
