"""From which version of a table on an output folder wants its rows: no row is scored twice, and none is left out."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from ragassay.jobs.config.input import InputConfig
from ragassay.jobs.display.address import strip_credentials
from ragassay.jobs.input.files import LogFile
from ragassay.jobs.input.tables import errors
from ragassay.pipeline.errors import InputError
from ragassay.schemas.manifest import Run

Runs = Callable[[], Sequence[Run]]
"""Gives the runs that an output folder knows, oldest first; called where the input is a table."""


@dataclass(frozen=True)
class Begin:
    """Where a run begins in a table.

    Attributes:
        whole: Version whose rows are all read; None reads none so.
        since: Version after which rows that came in are read.
        registered: Versions that runs have begun to score since, and not ended: their files are known to the output folder.
    """

    whole: int | None
    since: int
    registered: frozenset[int] = frozenset()


def begin_of(kind: str, table: str, version: int, source: InputConfig, runs: Runs) -> Begin:
    """Where a run over a table begins: behind the last version whose rows an earlier run has all scored.

    A run that broke off, or left rows out (unreadable files, a budget, partitions, a sample), is gone over again: what it has
    scored is known by its files.

    Args:
        kind: delta, iceberg or lance.
        table: Its name or place, as runs record it.
        version: Version that is to be read.
        source: The job's `input`; its `since` comes before what runs recorded.
        runs: Of the output folder.
    """
    if source.since is not None:
        return Begin(None, source.since)
    mine = [
        run
        for run in runs()
        if run.source is not None and (run.source.kind, strip_credentials(run.source.table)) == (kind, strip_credentials(table))
    ]
    done = [run.source for run in mine if run.source is not None and _took_all(run)]
    begun = frozenset(run.source.version for run in mine if run.source is not None and run.source.version is not None)
    if done and done[-1].version is not None:
        return Begin(None, done[-1].version, begun)
    first = next((run.source for run in mine if run.source is not None), None)
    if first is None or first.version is None:
        return Begin(version, version)
    return Begin(None, first.since, begun) if first.since is not None else Begin(first.version, first.version, begun)


def _took_all(run: Run) -> bool:
    """Whether a run ended, and left nothing of its input for a later one."""
    left_out = run.files_skipped or run.deferred is not None or run.skips.get("outside") or run.share < 1
    return bool(run.rows) and not left_out


AsOf = Callable[[LogFile], LogFile]
"""A file as some version has it: less what is deleted from it there."""


def _as_it_is(file: LogFile) -> LogFile:
    return file


class Growth:
    """The files that hold the rows which came into a table, version by version.

    A file that is replaced stays, if rows that are scored already went into what replaced it, or a run knows it; else what
    replaced it takes its place.
    """

    def __init__(self, table: str, kind: str) -> None:
        """Begin with none.

        Args:
            table: Its name or place, for messages.
            kind: Delta, Iceberg or Lance, likewise.
        """
        self._table, self._kind = table, kind
        self._kept: dict[str, LogFile] = {}
        self._fresh: dict[str, LogFile] = {}

    @property
    def files(self) -> list[LogFile]:
        """All of them, each once, sorted by path."""
        found = {**self._fresh, **self._kept}
        return [found[path] for path in sorted(found)]

    def keep(self, files: Iterable[LogFile] = (), as_of: AsOf = _as_it_is) -> None:
        """From here on what there is stays as it is.

        Args:
            files: Files that are added to it.
            as_of: A file as the version has it: what is fresh is taken so.
        """
        fresh = {path: as_of(file) for path, file in self._fresh.items()}
        self._kept |= fresh | {file.path: file for file in files}
        self._fresh = {}

    def step(
        self,
        version: int,
        what: str,
        added: Iterable[LogFile],
        removed: Collection[str],
        *,
        new_rows: bool,
        before: AsOf = _as_it_is,
    ) -> bool:
        """Take in a version.

        Args:
            version: Its number or id.
            what: Its operation, for messages.
            added: Files that it added.
            removed: Paths of those that it took away.
            new_rows: Whether its files may hold rows that none of those it took away held.
            before: A file as the version before has it.

        Returns:
            Whether its files are among those now; else they hold nothing that is not there already.

        Raises:
            InputError: They may, and rows that are scored already.
        """
        files = {file.path: file for file in added}
        gone = set(removed)
        if gone <= self._fresh.keys():
            for path in gone:
                del self._fresh[path]
            self._fresh |= files
            return True
        if new_rows and files:
            refuse_rewrite(self._table, self._kind, version, what)
        self._kept |= {path: before(self._fresh.pop(path)) for path in gone & self._fresh.keys()}
        return False


def refuse_rewrite(table: str, kind: str, version: int, what: str) -> None:
    """Refuse a version that replaced rows.

    Args:
        table: The table.
        kind: Its kind.
        version: The version.
        what: What it did, such as MERGE.

    Raises:
        InputError: Always.
    """
    feed = (
        "With delta.enableChangeDataFeed set before such a version, inserted rows are told apart. " if kind == "Delta" else ""
    )
    raise InputError(errors.REPLACED_FILES, kind=kind, table=table, version=version, reason=what, feed=feed)
