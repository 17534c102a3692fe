"""Find the files, or the table, that an input names, and what they hold."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from urllib.parse import unquote

from pyarrow import fs as pafs

from ragassay.jobs.config.input import InputConfig
from ragassay.jobs.display.address import quote_path, strip_credentials
from ragassay.jobs.input import errors
from ragassay.jobs.input.arrow import SPLITS, without_caches
from ragassay.jobs.input.files import LogFile, Logs
from ragassay.jobs.input.formats import FORMATS, look_at
from ragassay.jobs.input.glob import WILDCARD, glob_pattern, split_glob
from ragassay.jobs.input.jsonl import agreed
from ragassay.jobs.input.tables.kinds import find_table
from ragassay.jobs.input.tables.since import Runs
from ragassay.jobs.input.walk import walk
from ragassay.jobs.storage.folder import open_folder, real_path
from ragassay.pipeline.errors import InputError

_HIVE = re.compile(r"^([^=/]+)=([^/]*)$")
_NAMED = 5  # files that a message names


def find_files(uri: str, suffixes: tuple[str, ...], advice: str) -> Logs:
    """Find the files that an input names, whatever is in them.

    Args:
        uri: A file, a folder (searched below), a glob, on a disk or an object store.
        suffixes: Ends of the names of those that are meant, in small letters; a file that is named itself always is.
        advice: What to say where there are others alone.

    Returns:
        The files, none of which was opened.

    Raises:
        InputError: There is nothing, or no such file, at that place, or it can't be read.
    """
    try:
        return _find(uri, suffixes, advice)
    except OSError as error:
        raise InputError(errors.UNREADABLE, uri=uri, reason=error) from error


def find_logs(uri: str, source: InputConfig = InputConfig(), runs: Runs = tuple) -> Logs:  # noqa: B008
    """Find the files of an input, and look at each: rows, columns.

    Args:
        uri: A file, a folder (searched below), a glob, on a disk or an object store; or a table (`tables`).
        source: The job's `input`.
        runs: Gives the runs that OUTPUT knows: of a table, what came in behind them is read.

    Returns:
        The files, readable or not; columns are not checked yet.

    Raises:
        InputError: There is nothing, or no file of logs, at that place, or it can't be read.
    """
    try:
        table = find_table(uri, source, runs)
    except OSError as error:
        raise InputError(errors.UNREADABLE, uri=uri, reason=error) from error
    if table is not None:
        return table
    suffixes = tuple(kind.suffix for kind in FORMATS)
    kinds = " or ".join(dict.fromkeys(kind.name for kind in FORMATS))
    names = " or ".join(suffixes)
    advice = f"write logs as {kinds}, and let their names end in {names}; traces want a preset (docs/how-to/inputs.md)"
    found = find_files(uri, suffixes, advice)
    files = agreed(look_at(found.fs, found.files))
    readable = [f for f in files if f.error is None]
    return replace(found, files=readable, unreadable=[f for f in files if f.error is not None])


def _find(uri: str, suffixes: tuple[str, ...], advice: str) -> Logs:
    path, mark, options = uri.partition("?") if "://" in uri else (uri, "", "")
    start, rest = split_glob(path, lambda place: _exists(_uri(place) + mark + options))
    folder = open_folder(_uri(start) + mark + options)
    fs, base = folder.fs, folder.root
    pattern, any_name = _patterns(base, (unquote(rest) if "://" in uri else rest).rstrip("/")) if rest else (None, None)
    folders: dict[str, str] = {}
    named = fs.get_file_info(base)
    mine: list[pafs.FileInfo] = []
    beside: dict[str, set[str]] = {}
    if named.type == pafs.FileType.File:
        mine, base = [named], base.rpartition("/")[0]
    elif named.type == pafs.FileType.Directory:
        below = walk(fs, base)
        folders = below.folders
        beside = _json_names(below.files)
        mine = [info for info in below.files if pattern is None or pattern.fullmatch(info.path)]
        meant = [t for t in below.tables if pattern is None or any(info.path.startswith(f"{t}/") for info in mine)]
        _refuse_tables(uri, meant)
    else:
        raise InputError(errors.NO_FOLDER, uri=uri, folder=base) if rest else InputError(errors.MISSING, uri=uri)
    found = mine if named.type == pafs.FileType.File else [info for info in mine if info.path.lower().endswith(suffixes)]
    if not found:
        raise InputError(
            errors.NO_LOGS,
            uri=uri,
            suffix=suffixes[0],
            suffixes=", ".join(suffixes[1:]),
            others=_others([info.path for info in mine], advice),
        )
    roots = [base, real_path(fs, base)]
    rows = set(without_caches(fs, [info.path for info in found], beside)) if beside else {info.path for info in found}
    files = [_log_file(info, roots, uri, beside) for info in found if info.path in rows]
    return Logs(strip_credentials(uri), fs, files, [], folders, pattern, any_name)


def _patterns(base: str, glob: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """What a glob below a folder means: the files that match it, and all that lies below folders that do. And what it would
    mean by other names of its last part: a `**` anything."""
    exact = glob_pattern(base, glob)
    above, slash, last = glob.rpartition("/")
    wide = "**" if "**" in glob else above + slash + "*" if WILDCARD.search(last) else glob
    return re.compile(f"(?:{exact.pattern})(?:/.*)?"), glob_pattern(base, wide)


def _uri(path: str) -> str:
    """A path as it is; a URI with brackets encoded, which people write as they are and URIs can't have."""
    scheme, sign, address = path.partition("://")
    host, slash, place = address.partition("/")
    return scheme + sign + host + slash + place.replace("[", "%5B").replace("]", "%5D") if sign else path


def _exists(uri: str) -> bool:
    try:
        folder = open_folder(uri)
        return bool(folder.fs.get_file_info(folder.root).type != pafs.FileType.NotFound)
    except (InputError, OSError):  # a bucket can't be called `logs-*`
        return False


def _others(names: Sequence[str], advice: str) -> str:
    """What to say of files that are passed over for their names."""
    if not names:
        return "; files and folders whose names begin with _ or a dot are passed over"
    shown = ", ".join(repr(PurePosixPath(name).name) for name in names[:_NAMED])
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"; it holds {shown}{more}: {advice}"


def _refuse_tables(uri: str, tables: Sequence[str]) -> None:
    """A table's folder holds files that are no longer part of it: as files they are not its rows."""
    if tables:
        more = f" and {len(tables) - 1} more" if len(tables) > 1 else ""
        raise InputError(errors.HOLDS_TABLE, uri=uri, table=tables[0], more=more)


def _json_names(files: Sequence[pafs.FileInfo]) -> dict[str, set[str]]:
    """Folder -> the JSON files in it, by which Hugging Face datasets are known."""
    found: dict[str, set[str]] = {}
    for info in files:
        folder, _, name = info.path.rpartition("/")
        if name.endswith(".json"):
            found.setdefault(folder, set()).add(name)
    return found


def _log_file(info: pafs.FileInfo, roots: Sequence[str], uri: str, beside: Mapping[str, Collection[str]]) -> LogFile:
    """A file, before its footer is read."""
    path = _stable_path(info.path, roots)
    hive = [match.groups() for match in map(_HIVE.match, path.split("/")[:-1]) if match]
    # A file of this machine has one address, whether its folder was named by a path or by a URI.
    scheme = uri.partition("://")[0] + "://" if "://" in uri and not uri.startswith("file://") else ""
    size = info.size if info.type == pafs.FileType.File else 0  # a link can lead nowhere
    # A key stays as it is written: so it is written and read below OUTPUT too, where values alone are encoded.
    partition = tuple((key, unquote(value)) for key, value in hive)
    above, _, folder = info.path.rpartition("/")[0].rpartition("/")
    if SPLITS in beside.get(above, ()):
        partition = (*partition, ("split", folder))
    address = scheme + quote_path(info.path) if scheme else info.path
    return LogFile(path, address, info.path, size, partition, mtime=info.mtime_ns)


def _stable_path(path: str, roots: Sequence[str]) -> str:
    """Path of a file below the input's root. Hive folders above the place the user named count too, and those that it links
    to, so that `logs/`, `logs/dt=1/` and a link to it give a file the same path, and its rows the same ids.

    Args:
        path: The file's path.
        roots: The input's root, as it was named and as it is.
    """
    below = path[len(roots[0]) :].strip("/")
    for above in roots:
        parts = above.split("/")
        first_hive = next((i for i, part in enumerate(parts) if _HIVE.match(part)), None)
        if first_hive is not None:
            return "/".join([*parts[first_hive:], below])
    return below
