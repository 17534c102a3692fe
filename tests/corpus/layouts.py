"""Odd layouts of files and folders by class, each in one partition of a common input.

`tests.corpus.inputs` has those that are an input by themselves.
"""

import datetime as dt
import decimal
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from tests.conftest import example_rows

Write = Callable[[Path], Any]


class Layout(NamedTuple):
    """Partition `layout=NAME` of an input; the name is encoded as on disk."""

    kind: str
    name: str
    write: Write
    rows: int = 3
    scored: int | None = None
    """Scored rows; None means all."""

    @property
    def value(self) -> str:
        """Decoded value of the partition key."""
        return unquote(self.name)


def logs(count: int = 3, start: int = 0, **columns: Any) -> pa.Table:
    """Make rows that can be scored; add or replace columns, or drop those that are None."""
    rows = [{k: v for k, v in row.items() if k != "tenant"} for row in example_rows(count, start)]
    table = pa.Table.from_pylist(rows)
    for name, values in columns.items():
        at = table.schema.get_field_index(name)
        if values is None:
            table = table.drop_columns([name])
        elif at < 0:
            table = table.append_column(name, values)
        else:
            table = table.set_column(at, name, values)
    return table


def write_table(path: Path, table: pa.Table | None = None, **options: Any) -> Path:
    """Write a Parquet file, and create its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(logs() if table is None else table, path, **options)
    return path


def files(**tables: pa.Table) -> Write:
    """Write a file per table into one folder."""
    return lambda at: [write_table(at / f"{name}.parquet", table) for name, table in tables.items()]


def named_files(*names: str) -> Write:
    """Write files with these names, with three rows each."""
    return lambda at: [write_table(at / name, logs(3, 10 * i)) for i, name in enumerate(names)]


def file(table: pa.Table | None = None, **options: Any) -> Write:
    """Write one file."""
    return lambda at: write_table(at / "a.parquet", table, **options)


def bytes_file(name: str, data: bytes, *others: str) -> Write:
    """Write a file of these bytes, next to readable files with other names."""

    def write(at: Path) -> None:
        named_files(*others)(at)
        at.mkdir(parents=True, exist_ok=True)
        (at / name).write_bytes(data)

    return write


def cast_column(name: str, kind: pa.DataType) -> Write:
    """Write one file in which a column has another type."""
    return file(logs(**{name: logs()[name].combine_chunks().cast(kind)}))


def parquet_bytes(count: int = 3) -> bytes:
    """Return a Parquet file as bytes."""
    sink = pa.BufferOutputStream()
    pq.write_table(logs(count), sink, compression="none", write_page_checksum=True)
    return bytes(sink.getvalue())


def _damaged() -> bytes:
    """Return a file with a valid footer and a damaged page of responses."""
    data = bytearray(parquet_bytes(300))
    column = pq.ParquetFile(pa.BufferReader(bytes(data))).metadata.row_group(0).column(2)
    middle = (column.dictionary_page_offset or column.data_page_offset) + column.total_compressed_size // 2
    data[middle : middle + 8] = b"\xff" * 8
    return bytes(data)


def file_links(*pairs: tuple[str, str]) -> Write:
    """Write a file `real/a.parquet`, and links (name, target)."""

    def write(at: Path) -> None:
        write_table(at / "real" / "a.parquet")
        for name, target in pairs:
            (at / name).parent.mkdir(parents=True, exist_ok=True)
            (at / name).symlink_to(target)

    return write


def named_pipe(at: Path) -> None:
    """Create a named pipe without a writer: a read would never end."""
    write_table(at / "a.parquet")
    os.mkfifo(at / "b.parquet")


CONTEXTS = pa.array([["one", "two"], ["three", "four"], ["five", "six"]])
NULLS = pa.nulls(3)
NO_CONTEXT = pa.array([[], None, [""]], pa.list_(pa.string()))
IDS = pa.array(["x", "y", "z"])
WHEN = dt.datetime(2026, 11, 20, 9, 30, tzinfo=dt.UTC)

PASSED_THROUGH = {
    "struct": pa.array([{"a": 1, "b": {"c": ["d"]}}, None, {"a": None, "b": None}]),
    "map": pa.array([[("k", 1)], [], None], pa.map_(pa.string(), pa.int64())),
    "lists": pa.array([[[1.5]], [], None], pa.list_(pa.list_(pa.float32()))),
    "decimal": pa.array([decimal.Decimal("1.10"), None, decimal.Decimal(-1)], pa.decimal128(38, 10)),
    "times": pa.array([WHEN, None, WHEN], pa.timestamp("ns", "Europe/Vienna")),
    "days": pa.array([WHEN.date(), None, WHEN.date()], pa.date32()),
    "clock": pa.array([dt.time(9), None, dt.time(0)], pa.time64("us")),
    "duration": pa.array([1, None, -1], pa.duration("ms")),
    "bytes": pa.array([b"\xff", None, b""], pa.binary()),
    "fixed": pa.array([b"\xff\x00", None, b"ab"], pa.binary(2)),
    "words": pa.array(["red", None, "red"]).dictionary_encode(),
    "unsigned": pa.array([2**64 - 1, None, 0], pa.uint64()),
    "half": pa.array([1.5, None, float("nan")], pa.float32()).cast(pa.float16()),
    "floats": pa.array([float("nan"), float("inf"), float("-inf")]),
    "bools": pa.array([True, None, False]),
    "nothing": NULLS,
    "view": pa.array(["a", None, "b"], pa.string_view()),
    "large": pa.array([["a"], None, []], pa.large_list(pa.large_string())),
}
"""Pass-through columns, each of another type."""

DIFFER = {
    "int32 then int64": (pa.array([1, 2, 3], pa.int32()), pa.array([2**53 + 1, 2, 3], pa.int64())),
    "small int then double": (pa.array([1, 2, 3]), pa.array([1.5, None, 2.5])),
    "null then string": (NULLS, IDS),
    "string then dictionary": (IDS, IDS.dictionary_encode()),
    "string then large string": (IDS, IDS.cast(pa.large_string())),
    "seconds then microseconds": (pa.array([1, 2, 3], pa.timestamp("s")), pa.array([1, 2, 3], pa.timestamp("us"))),
    "narrow then wide decimal": (PASSED_THROUGH["decimal"].cast(pa.decimal128(20, 2)), PASSED_THROUGH["decimal"]),
    "list of null then of int": (pa.array([[], None, []], pa.list_(pa.null())), pa.array([[1], None, []])),
    "struct then more fields": (pa.array([{"a": 1}] * 3), pa.array([{"a": 1, "b": "x"}] * 3)),
    "float then double": (pa.array([0.1, None, 1], pa.float32()), pa.array([0.1, None, 1e300])),
}
"""Types of a column in two files that have a common type."""

CODECS = ["none", "snappy", "gzip", "brotli", "lz4", "zstd"]

LAYOUTS = [
    *(
        Layout("types of texts", f"{c} {k}", cast_column(c, k))
        for c in ("question", "response")
        for k in (pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary())
    ),
    Layout(
        "types of texts",
        "dictionary of texts",
        file(logs(response=logs()["response"].combine_chunks().dictionary_encode())),
    ),
    Layout("types of texts", "null question", file(logs(question=NULLS))),  # detectors need none
    Layout("types of texts", "null response", file(logs(response=NULLS)), scored=0),
    Layout("types of contexts", "string", file(logs(context=pa.array(["one", "", None]))), scored=1),
    Layout(
        "types of contexts",
        "large string",
        file(logs(context=pa.array(["one", "two", "three"], pa.large_string()))),
    ),
    Layout(
        "types of contexts",
        "dictionary",
        file(logs(context=pa.array(["one", "two", None]).dictionary_encode())),
        scored=2,
    ),
    Layout("types of contexts", "large list", cast_column("context", pa.large_list(pa.string()))),
    Layout("types of contexts", "list of large", cast_column("context", pa.list_(pa.large_string()))),
    Layout("types of contexts", "list of views", file(logs(context=CONTEXTS.cast(pa.list_(pa.string_view()))))),
    Layout("types of contexts", "fixed size", file(logs(context=CONTEXTS.cast(pa.list_(pa.string(), 2))))),
    Layout(
        "types of contexts",
        "fixed size with null",
        file(logs(context=pa.array([["a", None], None, ["b", "c"]], pa.list_(pa.string(), 2)))),
        scored=2,
    ),
    Layout("types of contexts", "nulls", file(logs(context=NULLS)), scored=0),
    Layout(
        "types of contexts",
        "list of null",
        file(logs(context=pa.array([[None], [], None], pa.list_(pa.null())))),
        scored=0,
    ),
    Layout("types of contexts", "null and list", files(a=logs(context=NULLS), b=logs(3, 10)), 6, 3),
    *(Layout("columns carried", name, file(logs(**{f"carried {name}": values}))) for name, values in PASSED_THROUGH.items()),
    *(
        Layout("types that differ", name, files(a=logs(**{name: a}), b=logs(3, 10, **{name: b})), 6)
        for name, (a, b) in DIFFER.items()
    ),
    Layout(
        "names of columns",
        "ours",
        file(logs(**{n: IDS for n in ("score", "status", "sentences", "verdict", "run_id", "row_key", "error")})),
    ),
    Layout("names of columns", "input_ours", file(logs(input_members=IDS))),
    Layout(
        "names of columns",
        "odd columns",
        file(logs(**{n: IDS for n in (" ", "a.b", "a/b", "a=b", "\x1b[31mred", "[bold]x", "Q\u00fc", "x" * 300, "Question")})),
    ),
    Layout("names of columns", "three hundred", file(logs(**{f"c{i}": IDS for i in range(300)}))),
    Layout("names of columns", "partition key in file", file(logs(layout=pa.array(["other"] * 3)))),
    *(
        Layout("values of partitions", value, file())
        for value in (
            "null",
            "__HIVE_DEFAULT_PARTITION__",
            "",
            " ",
            "a=b",
            "a%20b",
            "a%2Fb",
            "%",
            "100%",
            "\u00fc\u5e97",
            "2026-11-20",
            "x" * 200,
            "'\"",
            "a;b|c",
            "[1]",
            "None",
        )
    ),
    Layout(
        "names of files",
        "odd names",
        named_files("a b.parquet", "a[1].parquet", "a*?.parquet", "\u00fc\u5e97.parquet", "#%20.parquet", "{a,b}.parquet"),
        18,
    ),
    Layout("names of files", "escapes", named_files("\x1b[31mred.parquet", "new\nline.parquet", "[bold]x[/].parquet"), 9),
    Layout("names of files", "capitals", named_files("UP.PARQUET", "Mixed.Parquet"), 6),
    Layout("names of files", "long", named_files("x" * 240 + ".parquet")),
    Layout("names of files", "hidden", named_files("a.parquet", ".b.parquet", "_c.parquet", "_d/e.parquet", ".f/g.parquet"), 3),
    Layout("names of files", "not parquet", bytes_file("readme.txt", b"x", "a.parquet")),
    Layout("names of files", "parquet folder", named_files("a.parquet/part-0.parquet", "a.parquet/part-1.parquet"), 6),
    Layout("names of files", "deep", named_files("/".join("abcdefghij" * 3) + "/a.parquet")),
    Layout("names of files", "a named pipe", named_pipe),
    Layout("links", "to a file", file_links(("b.parquet", "real/a.parquet"))),
    Layout("links", "to a sibling folder", file_links(("again", "real"))),
    Layout("links", "loop", file_links(("real/loop", "."))),
    Layout("links", "to nowhere", file_links(("gone.parquet", "nowhere.parquet"))),
    Layout("empty files", "no rows", files(a=logs().slice(0, 0), b=logs())),
    Layout(
        "empty files",
        "no row groups",
        lambda at: [
            pq.ParquetWriter(write_table(at / "a.parquet"), logs().schema).close(),
            write_table(at / "b.parquet"),
        ],
    ),
    Layout("empty files", "no rows alone", file(logs().slice(0, 0)), 0),
    Layout("broken files, skipped", "no bytes", bytes_file("b.parquet", b"", "a.parquet")),
    Layout("broken files, skipped", "cut off", bytes_file("b.parquet", parquet_bytes()[:-100], "a.parquet")),
    Layout("broken files, skipped", "no Parquet", bytes_file("b.parquet", b"PAR1 not really PAR1", "a.parquet")),
    Layout("broken files, skipped", "footer too long", bytes_file("b.parquet", b"PAR1" + b"\xff\xff\xff\x7fPAR1", "a.parquet")),
    Layout("broken files, skipped", "encrypted", bytes_file("b.parquet", b"PARE" + b"\x00" * 40 + b"PARE", "a.parquet")),
    Layout("broken files, skipped", "alone", bytes_file("b.parquet", b"PAR1"), 0),
    Layout("broken files, skipped", "one page", bytes_file("b.parquet", _damaged()), 300, 0),
    Layout("row groups", "of one row", file(logs(40), row_group_size=1), 40),
    Layout("row groups", "of many rows", file(logs(600)), 600),
    Layout("row groups", "with empty ones", lambda at: _with_empty_groups(at / "a.parquet"), 6),
    *(Layout("compression", f"codec {codec}", file(compression=codec)) for codec in CODECS),
    Layout("pages", "no statistics", file(write_statistics=False)),
    Layout("pages", "second version", file(data_page_version="2.0", version="2.6")),
    Layout("pages", "first version", file(version="1.0", use_dictionary=False)),
    Layout("pages", "small pages", file(logs(40), data_page_size=1, write_page_index=True), 40),
    Layout("pages", "no Arrow schema", file(store_schema=False)),
    Layout("pages", "checksums", file(write_page_checksum=True)),
    Layout("pages", "old times", file(logs(t96=PASSED_THROUGH["times"]), use_deprecated_int96_timestamps=True)),
    Layout("row ids", "numbers", file(logs(row_id=pa.array([1, 2, 3])))),
    Layout("row ids", "odd strings", file(logs(row_id=pa.array(["", " ", "\x1b[31m\n"])))),
    Layout("row ids", "no ids", file()),
    Layout("row ids", "dictionary of ids", file(logs(row_id=pa.array(["p", "q", "r"]).dictionary_encode()))),
    Layout("rows that all fail", "of a file", files(a=logs(context=NO_CONTEXT), b=logs()), 6, 3),
    Layout("rows that all fail", "of a partition", file(logs(context=NO_CONTEXT)), scored=0),
    Layout("rows that all fail", "of a partition of 300", file(logs(300, response=pa.array([""] * 300))), 300, 0),
]


def _with_empty_groups(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with pq.ParquetWriter(path, logs().schema) as writer:
        for part in (logs(), logs().slice(0, 0), logs(3, 10)):
            writer.write_table(part)
