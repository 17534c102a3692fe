"""Odd inputs: those that are scored ALONE, and those that are REFUSED before anything is scored, with a message."""

import os
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from tests.corpus.layouts import CARRIED, IDS, NULLS, Write, files, linked, named, one, put, raw, shop, whole

NO_JOB: dict[str, Any] = {}


class Alone(NamedTuple):
    """INPUT is the folder that `write` fills, or what lies `at` a place in it."""

    kind: str
    name: str
    write: Write
    rows: int = 3
    at: str = ""
    job: dict[str, Any] = NO_JOB


class Refused(NamedTuple):
    """`fault` is the code of the error or of a fault in it; `out` is OUTPUT, seen from the folder that `write` fills."""

    kind: str
    name: str
    write: Write
    fault: str
    at: str = ""
    job: dict[str, Any] = NO_JOB
    out: str = "../out"


def at(place: str, *, then: str | None = None, **tables: pa.Table) -> Write:
    """Files by name in a folder below."""

    def write(root: Path) -> None:
        files(**(tables or {"a": shop()}))(root / place)
        if then is not None:
            files(a=shop(3, 10))(root / then)

    return write


def through_link(root: Path) -> None:
    """The logs lie elsewhere, and a link leads to them."""
    put(root / "real" / "a.parquet")
    (root / "link").symlink_to("real")


def named_in_bytes(root: Path) -> None:
    """A file whose name is no UTF-8."""
    put(root / "a.parquet").rename(os.fsdecode(os.fsencode(root) + b"/\xff.parquet"))


BIG = pa.array([2**53 + 1, 2, 3])
STRUCT = CARRIED["struct"]
LONG = {"context": [[f"Fact {i} is {i * 7}. " * 10 for i in range(6000)]], "response": ["It is 1 of them. " * 2000]}
DOUBLE = shop(3, 10, n=pa.array([1.5, None, 2]))
SKIP = {"input": {"on_bad_file": "skip"}}
OURS = ("question", "context", "response")
MAPPED = {"input": {"columns": {"question": "q", "context": "c", "response": "r", "row_id": None}}}
SWAPPED = {"input": {"columns": {"question": "response", "response": "question"}}}


def with_names(*names: str) -> pa.Table:
    """Our three columns under other names, and ids under what is left of them."""
    return pa.table([*shop().columns, IDS, IDS][: len(names)], names)


ALONE = [
    Alone("keys of partitions", "nested", at("dt=1/tenant=a", then="dt=1/tenant=b"), 6),
    Alone("keys of partitions", "percent-encoded", at("k%20ey=a", then="k%20ey=b"), 6),
    Alone("keys of partitions", "unicode", at("\u5e97=a", then="\u5e97=\u00fc"), 6),
    Alone("keys of partitions", "spaces and signs", at("a b-c.d=1", then="a b-c.d=2"), 6),
    Alone("keys of partitions", "a column's own name", at("kind=1", a=shop(kind=IDS))),
    Alone("keys of partitions", "above the input", at("dt=1/x/y"), 3, "dt=1/x"),
    Alone("spellings of inputs", "a file", one(), 3, "a.parquet"),
    Alone("spellings of inputs", "a glob", named("a.parquet", "b.parquet", "c.txt"), 6, "*.parquet"),
    Alone("spellings of inputs", "a glob of many folders", at("x/y", then="x/z"), 6, "**/*.parquet"),
    Alone("spellings of inputs", "a glob that leaves out", named("a.parquet", "b.parquet", "c.parquet"), 6, "[!a]*.parquet"),
    Alone("spellings of inputs", "a glob of one letter", named("a.parquet", "ab.parquet"), 3, "?.parquet"),
    Alone("spellings of inputs", "a file with brackets", named("a[1].parquet", "a1.parquet"), 3, "a[[]1].parquet"),
    Alone("spellings of inputs", "a folder with brackets", at("logs[1]"), 3, "logs[1]"),
    Alone("spellings of inputs", "a link", through_link, 3, "link"),
    Alone("spellings of inputs", "two dots", at("x"), 3, "x/../x/."),
    Alone("spellings of inputs", "a trailing slash", at("x"), 3, "x/"),
    Alone("long rows", "2,000 sentences, 6,000 passages", one(shop(1, **{k: pa.array(v) for k, v in LONG.items()})), 1),
    Alone("names of columns", "ours under other names", one(with_names("q", "c", "r")), 3, "", MAPPED),
    Alone("names of columns", "swapped", one(shop(row_id=IDS)), 3, "", SWAPPED),
]  # fmt: skip

REFUSED = [
    Refused("nothing to read", "no such place", one(), "input.missing", "nowhere"),
    Refused("nothing to read", "an empty folder", lambda root: (root / "x").mkdir(parents=True), "input.no-logs", "x"),
    Refused("nothing to read", "only hidden files", named(".a.parquet", "_b/c.parquet"), "input.no-logs"),
    Refused("nothing to read", "a glob of nothing", one(), "input.no-logs", "z*.parquet"),
    Refused("nothing to read", "no rows", one(shop().slice(0, 0)), "input.no-rows"),
    Refused("nothing to read", "only broken files", raw("a.parquet", b""), "input.no-readable-file", "", SKIP),
    Refused("broken files", "no bytes", raw("b.parquet", b"", "a.parquet"), "input.unreadable-files"),
    Refused("broken files", "cut off", raw("b.parquet", whole()[:-9], "a.parquet"), "input.unreadable-files"),
    Refused("broken files", "no Parquet", raw("a.parquet", b"a,b\n1,2\n" * 9), "input.unreadable-files", "a.parquet"),
    Refused("columns", "none of ours", one(pa.table({"x": [1]})), "input.missing-column"),
    Refused("columns", "in capitals", one(with_names("QUESTION", "Context", "RESPONSE")), "input.missing-column"),
    Refused("columns", "two of one name", one(with_names(*OURS, "response")), "input.same-name"),
    Refused("columns", "two that are carried", one(with_names(*OURS, "twice", "twice")), "input.same-name"),
    Refused("columns", "score and input_score", one(shop(score=IDS, input_score=IDS)), "input.column-twice"),
    Refused("columns", "no such row_id", one(), "input.missing-column", "", {"input": {"columns": {"row_id": "id"}}}),
    Refused("types of texts", "numbers", one(shop(response=pa.array([1, 2, 3]))), "input.column-shape"),
    Refused("types of texts", "lists", one(shop(question=CARRIED["large"])), "input.column-shape"),
    Refused("types of contexts", "structs", one(shop(context=STRUCT)), "input.column-shape"),
    Refused("types of contexts", "a map", one(shop(context=CARRIED["map"])), "input.column-shape"),
    Refused("types of contexts", "numbers", one(shop(context=pa.array([[1], [2], []]))), "input.column-shape"),
    Refused("types of contexts", "lists of lists", one(shop(context=pa.array([[["a"]], [], None]))), "input.column-shape"),
    Refused("types that differ", "string and int", files(a=shop(n=IDS), b=shop(n=BIG)), "input.mixed-types"),
    Refused("types that differ", "struct and list", files(a=shop(n=STRUCT), b=shop(n=CARRIED["lists"])), "input.mixed-types"),
    Refused("types that differ", "large int and double", files(a=shop(n=BIG), b=DOUBLE), "input.values-too-wide"),
    Refused("row ids", "twice in a file", one(shop(row_id=pa.array(["a", "a", "b"]))), "input.repeated-ids"),
    Refused("row ids", "twice in two files", files(a=shop(row_id=IDS), b=shop(row_id=IDS)), "input.repeated-ids"),
    Refused("row ids", "some null", one(shop(row_id=pa.array(["a", None, "b"]))), "input.missing-ids"),
    Refused("row ids", "all null", one(shop(row_id=NULLS)), "input.missing-ids"),
    Refused("keys of partitions", "different", at("dt=1", then="day=1"), "input.several-keys"),
    Refused("keys of partitions", "only some", at("dt=1", then="x"), "input.several-keys"),
    Refused("keys of partitions", "ours", at("status=ok"), "input.key-is-ours"),
    Refused("keys of partitions", "twice", at("dt=1/dt=2"), "input.repeated-key"),
    Refused("names of files", "not UTF-8", named_in_bytes, "input.name-no-utf8"),
    Refused("places", "output is the input", one(), "input.holds-output", out="."),
    Refused("places", "output in the input", one(), "output.inside-input", out="out"),
    Refused("places", "output in a partition", at("dt=1"), "output.inside-input", out="dt=1/out"),
    Refused("places", "output in the input by a link", through_link, "output.inside-input", at="link", out="real/out"),
    Refused("places", "unknown scheme", one(), "path.not-openable", at="gopher://x"),
    Refused("places", "links to nowhere", linked(("x", "nowhere")), "input.missing", at="x"),
]  # fmt: skip
