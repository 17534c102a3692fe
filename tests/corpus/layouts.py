"""Odd layouts of files and folders by class.

Those that stand BESIDE each other in one input, each in its own partition. `tests.corpus.inputs` has those that are an input
of their own.
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


class Beside(NamedTuple):
    """A partition of one input: `layout=place`, as it is called on disk."""

    kind: str
    place: str
    write: Write
    rows: int = 3
    scored: int | None = None
    """Rows scored; None is all."""

    @property
    def value(self) -> str:
        """The partition's value, as it comes out."""
        return unquote(self.place)


def shop(count: int = 3, start: int = 0, **columns: Any) -> pa.Table:
    """Rows that can be scored, with columns added or put in the place of others (None drops one)."""
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


def put(path: Path, table: pa.Table | None = None, **options: Any) -> Path:
    """Write a Parquet file; folders are made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(shop() if table is None else table, path, **options)
    return path


def files(**tables: pa.Table) -> Write:
    """Files by name, in one folder."""
    return lambda at: [put(at / f"{name}.parquet", table) for name, table in tables.items()]


def named(*names: str) -> Write:
    """Files of three rows each, under names as they are."""
    return lambda at: [put(at / name, shop(3, 10 * i)) for i, name in enumerate(names)]


def one(table: pa.Table | None = None, **options: Any) -> Write:
    """One file."""
    return lambda at: put(at / "a.parquet", table, **options)


def raw(name: str, data: bytes, *others: str) -> Write:
    """Bytes in the place of a file, beside files that can be read."""

    def write(at: Path) -> None:
        named(*others)(at)
        at.mkdir(parents=True, exist_ok=True)
        (at / name).write_bytes(data)

    return write


def cast(name: str, kind: pa.DataType) -> Write:
    """One file in which a column has another type."""
    return one(shop(**{name: shop()[name].combine_chunks().cast(kind)}))


def whole(count: int = 3) -> bytes:
    """A Parquet file as bytes."""
    sink = pa.BufferOutputStream()
    pq.write_table(shop(count), sink, compression="none", write_page_checksum=True)
    return bytes(sink.getvalue())


def _damaged() -> bytes:
    """A file with a good footer and a damaged page of responses."""
    data = bytearray(whole(300))
    column = pq.ParquetFile(pa.BufferReader(bytes(data))).metadata.row_group(0).column(2)
    middle = (column.dictionary_page_offset or column.data_page_offset) + column.total_compressed_size // 2
    data[middle : middle + 8] = b"\xff" * 8
    return bytes(data)


def linked(*pairs: tuple[str, str]) -> Write:
    """A file `real/a.parquet`, and links (name, target)."""

    def write(at: Path) -> None:
        put(at / "real" / "a.parquet")
        for name, target in pairs:
            (at / name).parent.mkdir(parents=True, exist_ok=True)
            (at / name).symlink_to(target)

    return write


def with_pipe(at: Path) -> None:
    """A named pipe that nobody writes into: reading it would wait for ever."""
    put(at / "a.parquet")
    os.mkfifo(at / "b.parquet")


PLACES = pa.array([["one", "two"], ["three", "four"], ["five", "six"]])
NULLS = pa.nulls(3)
NO_CONTEXT = pa.array([[], None, [""]], pa.list_(pa.string()))
IDS = pa.array(["x", "y", "z"])
WHEN = dt.datetime(2026, 11, 20, 9, 30, tzinfo=dt.UTC)

CARRIED = {
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
    "half": pa.array([1.5, None, float("nan")], pa.float16()),
    "floats": pa.array([float("nan"), float("inf"), float("-inf")]),
    "bools": pa.array([True, None, False]),
    "nothing": NULLS,
    "view": pa.array(["a", None, "b"], pa.string_view()),
    "large": pa.array([["a"], None, []], pa.large_list(pa.large_string())),
}
"""Columns that are ours to carry only, each of another type."""

DIFFER = {
    "int32 then int64": (pa.array([1, 2, 3], pa.int32()), pa.array([2**53 + 1, 2, 3], pa.int64())),
    "small int then double": (pa.array([1, 2, 3]), pa.array([1.5, None, 2.5])),
    "null then string": (NULLS, IDS),
    "string then dictionary": (IDS, IDS.dictionary_encode()),
    "string then large string": (IDS, IDS.cast(pa.large_string())),
    "seconds then microseconds": (pa.array([1, 2, 3], pa.timestamp("s")), pa.array([1, 2, 3], pa.timestamp("us"))),
    "narrow then wide decimal": (CARRIED["decimal"].cast(pa.decimal128(20, 2)), CARRIED["decimal"]),
    "list of null then of int": (pa.array([[], None, []], pa.list_(pa.null())), pa.array([[1], None, []])),
    "struct then more fields": (pa.array([{"a": 1}] * 3), pa.array([{"a": 1, "b": "x"}] * 3)),
    "float then double": (pa.array([0.1, None, 1], pa.float32()), pa.array([0.1, None, 1e300])),
}
"""A column's type in one file and in the next, where both fit into one."""

CODECS = ["none", "snappy", "gzip", "brotli", "lz4", "zstd"]

BESIDE = [
    *(
        Beside("types of texts", f"{c} {k}", cast(c, k))
        for c in ("question", "response")
        for k in (pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary())
    ),
    Beside(
        "types of texts", "dictionary of texts", one(shop(response=shop()["response"].combine_chunks().dictionary_encode()))
    ),
    Beside("types of texts", "null question", one(shop(question=NULLS))),  # detectors need none
    Beside("types of texts", "null response", one(shop(response=NULLS)), scored=0),
    Beside("types of contexts", "string", one(shop(context=pa.array(["one", "", None]))), scored=1),
    Beside("types of contexts", "large string", one(shop(context=pa.array(["one", "two", "three"], pa.large_string())))),
    Beside("types of contexts", "dictionary", one(shop(context=pa.array(["one", "two", None]).dictionary_encode())), scored=2),
    Beside("types of contexts", "large list", cast("context", pa.large_list(pa.string()))),
    Beside("types of contexts", "list of large", cast("context", pa.list_(pa.large_string()))),
    Beside("types of contexts", "list of views", one(shop(context=PLACES.cast(pa.list_(pa.string_view()))))),
    Beside("types of contexts", "fixed size", one(shop(context=PLACES.cast(pa.list_(pa.string(), 2))))),
    Beside(
        "types of contexts",
        "fixed size with null",
        one(shop(context=pa.array([["a", None], None, ["b", "c"]], pa.list_(pa.string(), 2)))),
        scored=2,
    ),
    Beside("types of contexts", "nulls", one(shop(context=NULLS)), scored=0),
    Beside("types of contexts", "list of null", one(shop(context=pa.array([[None], [], None], pa.list_(pa.null())))), scored=0),
    Beside("types of contexts", "null and list", files(a=shop(context=NULLS), b=shop(3, 10)), 6, 3),
    *(Beside("columns carried", name, one(shop(**{f"carried {name}": values}))) for name, values in CARRIED.items()),
    *(
        Beside("types that differ", name, files(a=shop(**{name: a}), b=shop(3, 10, **{name: b})), 6)
        for name, (a, b) in DIFFER.items()
    ),
    Beside(
        "names of columns",
        "ours",
        one(shop(**{n: IDS for n in ("score", "status", "sentences", "verdict", "run_id", "row_key", "error")})),
    ),
    Beside("names of columns", "input_ours", one(shop(input_members=IDS))),
    Beside(
        "names of columns",
        "odd columns",
        one(shop(**{n: IDS for n in (" ", "a.b", "a/b", "a=b", "\x1b[31mred", "[bold]x", "Q\u00fc", "x" * 300, "Question")})),
    ),
    Beside("names of columns", "three hundred", one(shop(**{f"c{i}": IDS for i in range(300)}))),
    Beside("names of columns", "partition key in file", one(shop(layout=pa.array(["other"] * 3)))),
    *(
        Beside("values of partitions", value, one())
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
    Beside(
        "names of files",
        "odd names",
        named("a b.parquet", "a[1].parquet", "a*?.parquet", "\u00fc\u5e97.parquet", "#%20.parquet", "{a,b}.parquet"),
        18,
    ),
    Beside("names of files", "escapes", named("\x1b[31mred.parquet", "new\nline.parquet", "[bold]x[/].parquet"), 9),
    Beside("names of files", "capitals", named("UP.PARQUET", "Mixed.Parquet"), 6),
    Beside("names of files", "long", named("x" * 240 + ".parquet")),
    Beside("names of files", "hidden", named("a.parquet", ".b.parquet", "_c.parquet", "_d/e.parquet", ".f/g.parquet"), 3),
    Beside("names of files", "not parquet", raw("readme.txt", b"x", "a.parquet")),
    Beside("names of files", "parquet folder", named("a.parquet/part-0.parquet", "a.parquet/part-1.parquet"), 6),
    Beside("names of files", "deep", named("/".join("abcdefghij" * 3) + "/a.parquet")),
    Beside("names of files", "a named pipe", with_pipe),
    Beside("links", "to a file", linked(("b.parquet", "real/a.parquet"))),
    Beside("links", "to a sibling folder", linked(("again", "real"))),
    Beside("links", "loop", linked(("real/loop", "."))),
    Beside("links", "to nowhere", linked(("gone.parquet", "nowhere.parquet"))),
    Beside("empty files", "no rows", files(a=shop().slice(0, 0), b=shop())),
    Beside(
        "empty files",
        "no row groups",
        lambda at: [pq.ParquetWriter(put(at / "a.parquet"), shop().schema).close(), put(at / "b.parquet")],
    ),
    Beside("empty files", "no rows alone", one(shop().slice(0, 0)), 0),
    Beside("broken files, skipped", "no bytes", raw("b.parquet", b"", "a.parquet")),
    Beside("broken files, skipped", "cut off", raw("b.parquet", whole()[:-100], "a.parquet")),
    Beside("broken files, skipped", "no Parquet", raw("b.parquet", b"PAR1 not really PAR1", "a.parquet")),
    Beside("broken files, skipped", "footer too long", raw("b.parquet", b"PAR1" + b"\xff\xff\xff\x7fPAR1", "a.parquet")),
    Beside("broken files, skipped", "encrypted", raw("b.parquet", b"PARE" + b"\x00" * 40 + b"PARE", "a.parquet")),
    Beside("broken files, skipped", "alone", raw("b.parquet", b"PAR1"), 0),
    Beside("broken files, skipped", "one page", raw("b.parquet", _damaged()), 300, 0),
    Beside("row groups", "of one row", one(shop(40), row_group_size=1), 40),
    Beside("row groups", "of many rows", one(shop(600)), 600),
    Beside("row groups", "with empty ones", lambda at: _with_empty_groups(at / "a.parquet"), 6),
    *(Beside("compression", f"codec {codec}", one(compression=codec)) for codec in CODECS),
    Beside("pages", "no statistics", one(write_statistics=False)),
    Beside("pages", "second version", one(data_page_version="2.0", version="2.6")),
    Beside("pages", "first version", one(version="1.0", use_dictionary=False)),
    Beside("pages", "small pages", one(shop(40), data_page_size=1, write_page_index=True), 40),
    Beside("pages", "no Arrow schema", one(store_schema=False)),
    Beside("pages", "checksums", one(write_page_checksum=True)),
    Beside("pages", "old times", one(shop(t96=CARRIED["times"]), use_deprecated_int96_timestamps=True)),
    Beside("row ids", "numbers", one(shop(row_id=pa.array([1, 2, 3])))),
    Beside("row ids", "odd strings", one(shop(row_id=pa.array(["", " ", "\x1b[31m\n"])))),
    Beside("row ids", "no ids", one()),
    Beside("row ids", "dictionary of ids", one(shop(row_id=pa.array(["p", "q", "r"]).dictionary_encode()))),
    Beside("rows that all fail", "of a file", files(a=shop(context=NO_CONTEXT), b=shop()), 6, 3),
    Beside("rows that all fail", "of a night", one(shop(context=NO_CONTEXT)), scored=0),
    Beside("rows that all fail", "of a night of 300", one(shop(300, response=pa.array([""] * 300))), 300, 0),
]


def _with_empty_groups(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with pq.ParquetWriter(path, shop().schema) as writer:
        for part in (shop(), shop().slice(0, 0), shop(3, 10)):
            writer.write_table(part)
