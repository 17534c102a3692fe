"""Odd inputs: those that are scored ALONE, and those that are REFUSED before anything is scored, with a message."""

import os
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from tests.corpus.layouts import (
    IDS,
    NULLS,
    PASSED_THROUGH,
    Write,
    bytes_file,
    file,
    file_links,
    files,
    logs,
    named_files,
    parquet_bytes,
    write_table,
)

NO_JOB: dict[str, Any] = {}


class Alone(NamedTuple):
    """An input that is scored: the folder that `write` fills, or the path `at` in it."""

    kind: str
    name: str
    write: Write
    rows: int = 3
    at: str = ""
    job: dict[str, Any] = NO_JOB


class Refused(NamedTuple):
    """A refused input. `fault` is the code of the error or of a fault; `out` is OUTPUT, relative to the folder of `write`."""

    kind: str
    name: str
    write: Write
    fault: str
    at: str = ""
    job: dict[str, Any] = NO_JOB
    out: str = "../out"


def files_below(path: str, *, then: str | None = None, **tables: pa.Table) -> Write:
    """Write a file per table into a subfolder, and another file into the subfolder `then`."""

    def write(root: Path) -> None:
        files(**(tables or {"a": logs()}))(root / path)
        if then is not None:
            files(a=logs(3, 10))(root / then)

    return write


def through_link(root: Path) -> None:
    """Write logs into a folder, and a link to the folder."""
    write_table(root / "real" / "a.parquet")
    (root / "link").symlink_to("real")


def named_in_bytes(root: Path) -> None:
    """Write a file whose name is not UTF-8."""
    write_table(root / "a.parquet").rename(os.fsdecode(os.fsencode(root) + b"/\xff.parquet"))


BIG = pa.array([2**53 + 1, 2, 3])
STRUCT, LISTS = PASSED_THROUGH["struct"], PASSED_THROUGH["lists"]
LONG = {"context": [[f"Fact {i} is {i * 7}. " * 10 for i in range(6000)]], "response": ["It is 1 of them. " * 2000]}
DOUBLE = logs(3, 10, n=pa.array([1.5, None, 2]))
SKIP = {"input": {"on_bad_file": "skip"}}
OURS = ("question", "context", "response")
MAPPED = {"input": {"columns": {"question": "q", "context": "c", "response": "r", "row_id": None}}}
SWAPPED = {"input": {"columns": {"question": "response", "response": "question"}}}


def with_names(*names: str) -> pa.Table:
    """Rename the three text columns; further names are columns of ids."""
    return pa.table([*logs().columns, IDS, IDS][: len(names)], names)


ALONE = [
    Alone("keys of partitions", "nested", files_below("dt=1/tenant=a", then="dt=1/tenant=b"), 6),
    Alone("keys of partitions", "percent-encoded", files_below("k%20ey=a", then="k%20ey=b"), 6),
    Alone("keys of partitions", "unicode", files_below("\u5e97=a", then="\u5e97=\u00fc"), 6),
    Alone("keys of partitions", "spaces and signs", files_below("a b-c.d=1", then="a b-c.d=2"), 6),
    Alone("keys of partitions", "a column's own name", files_below("kind=1", a=logs(kind=IDS))),
    Alone("keys of partitions", "above the input", files_below("dt=1/x/y"), 3, "dt=1/x"),
    Alone("spellings of inputs", "a file", file(), 3, "a.parquet"),
    Alone("spellings of inputs", "a glob", named_files("a.parquet", "b.parquet", "c.txt"), 6, "*.parquet"),
    Alone("spellings of inputs", "a glob of many folders", files_below("x/y", then="x/z"), 6, "**/*.parquet"),
    Alone("spellings of inputs", "an excluding glob", named_files("a.parquet", "b.parquet", "c.parquet"), 6, "[!a]*.parquet"),
    Alone("spellings of inputs", "a glob of one letter", named_files("a.parquet", "ab.parquet"), 3, "?.parquet"),
    Alone("spellings of inputs", "a file with brackets", named_files("a[1].parquet", "a1.parquet"), 3, "a[[]1].parquet"),
    Alone("spellings of inputs", "a folder with brackets", files_below("logs[1]"), 3, "logs[1]"),
    Alone("spellings of inputs", "a link", through_link, 3, "link"),
    Alone("spellings of inputs", "two dots", files_below("x"), 3, "x/../x/."),
    Alone("spellings of inputs", "a trailing slash", files_below("x"), 3, "x/"),
    Alone("long rows", "2,000 sentences, 6,000 passages", file(logs(1, **{k: pa.array(v) for k, v in LONG.items()})), 1),
    Alone("names of columns", "ours under other names", file(with_names("q", "c", "r")), 3, "", MAPPED),
    Alone("names of columns", "swapped", file(logs(row_id=IDS)), 3, "", SWAPPED),
]  # fmt: skip

REFUSED = [
    Refused("nothing to read", "no such place", file(), "input.missing", "nowhere"),
    Refused("nothing to read", "an empty folder", lambda root: (root / "x").mkdir(parents=True), "input.no-logs", "x"),
    Refused("nothing to read", "only hidden files", named_files(".a.parquet", "_b/c.parquet"), "input.no-logs"),
    Refused("nothing to read", "a glob of nothing", file(), "input.no-logs", "z*.parquet"),
    Refused("nothing to read", "no rows", file(logs().slice(0, 0)), "input.no-rows"),
    Refused("nothing to read", "only broken files", bytes_file("a.parquet", b""), "input.no-readable-file", "", SKIP),
    Refused("broken files", "no bytes", bytes_file("b.parquet", b"", "a.parquet"), "input.unreadable-files"),
    Refused("broken files", "cut off", bytes_file("b.parquet", parquet_bytes()[:-9], "a.parquet"), "input.unreadable-files"),
    Refused("broken files", "no Parquet", bytes_file("a.parquet", b"a,b\n1,2\n" * 9), "input.unreadable-files", "a.parquet"),
    Refused("columns", "none of ours", file(pa.table({"x": [1]})), "input.missing-column"),
    Refused("columns", "in capitals", file(with_names("QUESTION", "Context", "RESPONSE")), "input.missing-column"),
    Refused("columns", "two of one name", file(with_names(*OURS, "response")), "input.same-name"),
    Refused("columns", "two that are carried", file(with_names(*OURS, "twice", "twice")), "input.same-name"),
    Refused("columns", "score and input_score", file(logs(score=IDS, input_score=IDS)), "input.column-twice"),
    Refused("columns", "no such row_id", file(), "input.missing-column", "", {"input": {"columns": {"row_id": "id"}}}),
    Refused("types of texts", "numbers", file(logs(response=pa.array([1, 2, 3]))), "input.column-shape"),
    Refused("types of texts", "lists", file(logs(question=PASSED_THROUGH["large"])), "input.column-shape"),
    Refused("types of contexts", "structs", file(logs(context=STRUCT)), "input.column-shape"),
    Refused("types of contexts", "a map", file(logs(context=PASSED_THROUGH["map"])), "input.column-shape"),
    Refused("types of contexts", "numbers", file(logs(context=pa.array([[1], [2], []]))), "input.column-shape"),
    Refused("types of contexts", "lists of lists", file(logs(context=pa.array([[["a"]], [], None]))), "input.column-shape"),
    Refused("types that differ", "string and int", files(a=logs(n=IDS), b=logs(n=BIG)), "input.mixed-types"),
    Refused("types that differ", "struct and list", files(a=logs(n=STRUCT), b=logs(n=LISTS)), "input.mixed-types"),
    Refused("types that differ", "large int and double", files(a=logs(n=BIG), b=DOUBLE), "input.values-too-wide"),
    Refused("row ids", "twice in a file", file(logs(row_id=pa.array(["a", "a", "b"]))), "input.repeated-ids"),
    Refused("row ids", "twice in two files", files(a=logs(row_id=IDS), b=logs(row_id=IDS)), "input.repeated-ids"),
    Refused("row ids", "some null", file(logs(row_id=pa.array(["a", None, "b"]))), "input.missing-ids"),
    Refused("row ids", "all null", file(logs(row_id=NULLS)), "input.missing-ids"),
    Refused("keys of partitions", "different", files_below("dt=1", then="day=1"), "input.several-keys"),
    Refused("keys of partitions", "only some", files_below("dt=1", then="x"), "input.several-keys"),
    Refused("keys of partitions", "ours", files_below("status=ok"), "input.key-is-ours"),
    Refused("keys of partitions", "twice", files_below("dt=1/dt=2"), "input.repeated-key"),
    Refused("names of files", "not UTF-8", named_in_bytes, "input.name-no-utf8"),
    Refused("places", "output is the input", file(), "input.holds-output", out="."),
    Refused("places", "output in the input", file(), "output.inside-input", out="out"),
    Refused("places", "output in a partition", files_below("dt=1"), "output.inside-input", out="dt=1/out"),
    Refused("places", "output in the input by a link", through_link, "output.inside-input", at="link", out="real/out"),
    Refused("places", "unknown scheme", file(), "path.not-openable", at="gopher://x"),
    Refused("places", "links to nowhere", file_links(("x", "nowhere")), "input.missing", at="x"),
]  # fmt: skip
