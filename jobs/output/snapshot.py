"""Read an output folder while a run may write into it.

Readers take no lock. A writer replaces each file of `scored/` whole and in place, and writes the manifest last. Each of these
files carries the id of its verdicts in its footer, and the manifest names for each partition the id that may be read
(`Manifest.verdict_files`). A reader:

1. reads the manifest, lists `scored/`, and compares the ids. A partition that the manifest does not name belongs to a run that
   has not finished, and is left out.
2. reads. Moments in `stats/` must be of as many rows as the partition has in `scored/`; what is being added to `explanations/`
   and `escalated/` is left out until it is committed.
3. lists `scored/` again before it shows or writes anything. Size and time of every file must be what they were.

If an id or a file differs, the reader starts again, once. If they differ again, it raises OutputRewritten: a run is replacing
partitions one after the other, or broke off while it did. So old and new verdicts are never mixed.
"""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import pyarrow as pa
from pyarrow import fs as pafs
from pyarrow import parquet as pq

from ragassay.jobs.output import errors
from ragassay.jobs.output.manifest import MANIFEST, read_manifest
from ragassay.jobs.output.partitions import hive_path
from ragassay.jobs.runtime.endings import is_disk_full
from ragassay.jobs.storage.folder import READERS, Folder
from ragassay.pipeline.errors import OutputRewritten
from ragassay.schemas.manifest import Manifest

VERDICTS_ID = b"ragassay.verdicts"
"""Key of the footer of a file of `scored/`."""

JUDGED = "+judge"

PAUSE_SECONDS = 2.0
"""Before the second attempt: a run that has replaced its last partition writes the manifest within this time."""

UNCOMMITTED = {"explanations": "_explaining", "escalated": "_escalating"}
"""Dataset that Ray Data adds to -> folder in which it commits what it added."""

Result = TypeVar("Result")


def with_verdicts_id(schema: pa.Schema, verdicts_id: str) -> pa.Schema:
    """A schema of `scored/` for a file with these verdicts."""
    return schema.with_metadata({**(schema.metadata or {}), VERDICTS_ID: verdicts_id.encode()})


def judged_id(run_id: str) -> str:
    """Id of the verdicts of a run after its judge has decided some of them."""
    return run_id + JUDGED


@dataclass(frozen=True)
class Footer:
    """What the footer of a file of `raw/` or `scored/` says.

    Attributes:
        verdicts_id: Id of its verdicts; None where it has none.
        rows: How many rows it has.
        schema: Its columns.
        first_key: Its lowest `row_key`, by its statistics; 0 without any.
    """

    verdicts_id: str | None
    rows: int
    schema: pa.Schema
    first_key: int


@dataclass(frozen=True)
class _File:
    """A file of `scored/`.

    Attributes:
        place: Partition, as on disk.
        info: Its path, size and time.
        footer: Its footer; None if it can't be read.
    """

    place: str
    info: pafs.FileInfo
    footer: Footer | None

    @property
    def state(self) -> tuple[str, int, int]:
        """What changes when it is replaced."""
        return _state(self.info)


@dataclass(frozen=True)
class Snapshot(Folder):
    """An output folder as a reader sees it. What is written into it is kept until the snapshot has been checked.

    Attributes:
        manifest_text: The manifest that was read.
        files: Files of `scored/` that the manifest names.
        kept: File -> text that is to be written.
    """

    manifest_text: str | None = None
    files: tuple[_File, ...] = ()
    kept: dict[str, str] = field(default_factory=dict)

    @property
    def itself(self) -> Folder:
        """The output folder."""
        return Folder(self.fs, self.root, self.uri)

    def read(self, relative: str) -> str | None:
        """See `Folder.read`; the manifest is always that of the snapshot."""
        return self.manifest_text if relative == MANIFEST else super().read(relative)

    def write(self, relative: str, text: str) -> None:
        """Keep a text file until the snapshot has been checked."""
        self.kept[relative] = text

    def check(self, place: str | None = None) -> None:
        """Check that the files of `scored/` are still those that the manifest names.

        Args:
            place: Partition, as on disk; None checks all.

        Raises:
            OutputRewritten: One was replaced.
        """
        below = "scored" if place is None else "/".join(filter(None, ["scored", place]))
        now = set(map(_state, self.itself.list(below, ".parquet")))
        for file in self.files:
            if file.state not in now and place in (None, file.place):
                raise rewritten(self.address, hive_path(file.place))

    def check_rows(self, place: str, rows: int) -> None:
        """Check that statistics are of the rows that a partition has in `scored/`.

        Args:
            place: Partition, as on disk.
            rows: Rows of the statistics.

        Raises:
            OutputRewritten: They are of other rows: a run has written new ones.
        """
        footers = [file.footer for file in self.files if file.place == place]
        if None not in footers and sum(footer.rows for footer in footers if footer) != rows:
            raise rewritten(self.address, hive_path(place))

    def list(self, relative: str, suffix: str) -> list[pafs.FileInfo]:
        """See `Folder.list`; of `scored/` the files that the manifest names, of other datasets what is committed."""
        if relative == "scored":
            return [file.info for file in self.files if file.info.path.endswith(suffix)]
        infos = super().list(relative, suffix)
        checkpoint = UNCOMMITTED.get(relative.partition("/")[0])
        if checkpoint is None:
            return infos
        pending = tuple(
            info.base_name.removesuffix(".pending.parquet") + "-" for info in super().list(checkpoint, ".pending.parquet")
        )
        return [info for info in infos if not info.base_name.startswith(pending)]


def read_snapshot(
    output: Folder,
    work: Callable[[Snapshot, Manifest], Result],
    say: Callable[[str], Any] = lambda _: None,
    *,
    whole: bool = True,
) -> Result:
    """Do something with a snapshot of an output folder; once more, if the snapshot was replaced meanwhile.

    Args:
        output: The output folder.
        work: What to do. It may be done twice; what it writes into the snapshot is written when it is known to be right.
        say: Told of a file that can't be written because the output folder can't.
        whole: Check all partitions at the end; else `work` checks each when it has read it.

    Returns:
        What `work` returned.

    Raises:
        OutputRewritten: A run replaces partitions, or broke off while it did.
        RagassayError: `work` raised it.
    """
    for is_last in (False, True):
        try:
            snapshot, manifest = take_snapshot(output)
            result = _worked(snapshot, manifest, work)
            if whole:
                snapshot.check()
            break
        except OutputRewritten:
            if is_last:
                raise
        time.sleep(PAUSE_SECONDS)
    for name, text in snapshot.kept.items():
        try:
            output.write(name, text)
        except OSError as error:
            if is_disk_full(error):
                raise
            say(f"{output.format_address(name)} was not written: {error}")
    return result


def take_snapshot(output: Folder) -> tuple[Snapshot, Manifest]:
    """Read the manifest of an output folder, and find the files that it names.

    Returns:
        The snapshot; and the manifest, without what runs that have not finished say of verdicts that can't be read yet.

    Raises:
        OutputRewritten: A file holds other verdicts than the manifest says.
    """
    pinned = Snapshot(output.fs, output.root, output.uri, output.read(MANIFEST))
    manifest = _without_unfinished(read_manifest(pinned))
    infos = output.list("scored", ".parquet")
    base = len(output.path("scored")) + 1
    files = []
    schemas: dict[pa.Schema, pa.Schema] = {}
    with ThreadPoolExecutor(READERS) as readers:
        footers = readers.map(lambda info: _footer(output.fs, info.path), infos)
        for info, footer in zip(infos, footers, strict=True):
            place = info.path[base:].rpartition("/")[0]
            named = manifest.verdict_files.get(hive_path(place))
            if footer is None:  # of one that can't be read, whoever reads it says so
                files.append(_File(place, info, None))
            elif footer.verdicts_id == named:
                # Most files have the same columns: one copy is kept.
                files.append(_File(place, info, replace(footer, schema=schemas.setdefault(footer.schema, footer.schema))))
            elif named is not None:
                raise rewritten(output.address, hive_path(place))
    return replace(pinned, files=tuple(files)), manifest


def read_footer(fs: pafs.FileSystem, path: str) -> Footer:
    """The footer of a file of `raw/` or `scored/`.

    Raises:
        OSError, pa.ArrowException: It can't be read.
    """
    metadata = pq.read_metadata(path, filesystem=fs)
    found = (metadata.metadata or {}).get(VERDICTS_ID)
    schema = metadata.schema.to_arrow_schema().remove_metadata()
    return Footer(found and found.decode(), metadata.num_rows, schema, _first_key(metadata))


def _first_key(metadata: pq.FileMetaData) -> int:
    keys = [number for number in range(metadata.num_columns) if metadata.schema.column(number).path == "row_key"]
    groups = map(metadata.row_group, range(metadata.num_row_groups))
    return min((int(group.column(keys[0]).statistics.min) for group in groups if keys), default=0)


def read_verdicts(output: Folder) -> Manifest:
    """The manifest of an output folder, as of the verdicts that can be read: a run that has not finished says nothing yet."""
    return _without_unfinished(read_manifest(output))


def rewritten(output: str, partition: str) -> OutputRewritten:
    """The error for a partition, by its Hive path, that is replaced while it is read."""
    where = f"partition {partition!r} of output {output}" if partition else f"output {output}"
    return OutputRewritten(errors.REWRITTEN, output=output, partition=partition, where=where)


def unchanged(output: Folder) -> Iterator[Any]:
    """Yield nothing; but at the end of rows that go into a file, check that all were of one snapshot, so that none is written.

    Raises:
        OutputRewritten: They were not.
    """
    check_place(output)
    yield from ()


def check_place(output: Folder, place: str | None = None) -> None:
    """`Snapshot.check`, where a folder is one."""
    if isinstance(output, Snapshot):
        output.check(place)


def check_rows(output: Folder, place: str, rows: int) -> None:
    """`Snapshot.check_rows`, where a folder is one."""
    if isinstance(output, Snapshot):
        output.check_rows(place, rows)


def _worked(snapshot: Snapshot, manifest: Manifest, work: Callable[[Snapshot, Manifest], Result]) -> Result:
    """What `work` returns; what it raises because it read replaced files becomes OutputRewritten."""
    try:
        return work(snapshot, manifest)
    except Exception:
        with suppress(OSError):  # a store that gave way is the first error's cause as well
            snapshot.check()
        raise


def _footer(fs: pafs.FileSystem, path: str) -> Footer | None:
    try:
        return read_footer(fs, path)
    except (OSError, pa.ArrowException):
        return None


def _without_unfinished(manifest: Manifest) -> Manifest:
    """The manifest without the fit and the threshold of runs whose verdicts can't be read yet."""
    read = {verdicts_id.removesuffix(JUDGED) for verdicts_id in manifest.verdict_files.values()}
    return replace(
        manifest,
        runs=[
            run if run.finished is not None or run.run_id in read else replace(run, fit=None, threshold=None, drift=None)
            for run in manifest.runs
        ],
    )


def _state(info: pafs.FileInfo) -> tuple[str, int, int]:
    return info.path, info.size, info.mtime_ns
