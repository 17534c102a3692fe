"""Which files an input means, and what a file is called, however it is named."""

import io
import os
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

from ragassay.jobs.config.input import Columns
from ragassay.jobs.input import check_logs, find_logs
from ragassay.jobs.input.parquet import TAIL_BYTES, footer_bytes
from ragassay.jobs.input.walk import walk
from tests.conftest import example_rows, write_logs
from tests.raises import raises, refuses


def paths(uri: Path | str) -> list[str]:
    return [f.path for f in find_logs(str(uri)).files]


def test_a_link_to_a_folder_beside_it_counts_no_row_twice(tmp_path: Path) -> None:
    write_logs(tmp_path / "dt=1" / "a.parquet", example_rows(1))
    write_logs(tmp_path / "dt=2" / "a.parquet", example_rows(1))
    (tmp_path / "a-latest").symlink_to("dt=2")  # sorts before what it means
    (tmp_path / "dt=1" / "again.parquet").symlink_to("a.parquet")
    assert paths(tmp_path) == ["dt=1/a.parquet", "dt=2/a.parquet"]


def test_loops_of_links_end(tmp_path: Path) -> None:
    write_logs(tmp_path / "logs" / "x" / "a.parquet", example_rows(1))
    write_logs(tmp_path / "beside" / "b.parquet", example_rows(1))
    (tmp_path / "logs" / "x" / "loop").symlink_to("..")
    (tmp_path / "logs" / "self").symlink_to(".")
    (tmp_path / "logs" / "up").symlink_to(tmp_path)
    assert paths(tmp_path / "logs") == ["x/a.parquet"]


def test_links_to_elsewhere_are_followed_and_dead_ones_are_named(tmp_path: Path) -> None:
    write_logs(tmp_path / "far" / "deep" / "b.parquet", example_rows(1))
    write_logs(tmp_path / "other.parquet", example_rows(1))
    write_logs(tmp_path / "logs" / "a.parquet", example_rows(1))
    (tmp_path / "logs" / "far").symlink_to(tmp_path / "far")
    (tmp_path / "logs" / "file.parquet").symlink_to(tmp_path / "other.parquet")
    (tmp_path / "logs" / "gone.parquet").symlink_to(tmp_path / "gone.parquet")
    logs = find_logs(str(tmp_path / "logs"))
    assert [f.path for f in logs.files] == ["a.parquet", "far/deep/b.parquet", "file.parquet"]
    assert [f.path for f in logs.unreadable] == ["gone.parquet"]


def test_a_link_to_a_night_is_that_night(tmp_path: Path) -> None:
    write_logs(tmp_path / "dt=1" / "a.parquet", example_rows(1))
    (tmp_path / "latest").symlink_to("dt=1")
    assert paths(tmp_path / "latest") == paths(tmp_path / "dt=1") == ["dt=1/a.parquet"]


@pytest.mark.parametrize(
    ("glob", "expected"),
    [
        ("[!a]*.parquet", ["b.parquet", "x[1].parquet"]),
        ("[ab].parquet", ["a.parquet", "b.parquet"]),
        ("[!]].parquet", ["a.parquet", "b.parquet"]),
        ("x[[]1].parquet", ["x[1].parquet"]),
        ("x[1].parquet", ["x[1].parquet"]),
        ("[run]/c.parquet", ["c.parquet"]),
        ("[run]/?.parquet", ["c.parquet"]),
        ("[[]run]", ["[run]/c.parquet"]),
        ("[^a].parquet", ["a.parquet"]),
    ],
)
def test_globs(tmp_path: Path, glob: str, expected: list[str]) -> None:
    for name in ("a.parquet", "b.parquet", "x[1].parquet", "[run]/c.parquet"):
        write_logs(tmp_path / name, example_rows(1))
    assert paths(f"{tmp_path}/{glob}") == expected
    if "?" not in glob:  # a URI's query
        assert paths(f"file://{tmp_path}/{glob}") == expected


def test_a_glob_of_folders_means_what_lies_in_them(tmp_path: Path) -> None:
    for name in ("dt=1/a.parquet", "dt=2/x/b.parquet", "other/c.parquet"):
        write_logs(tmp_path / name, example_rows(1))
    assert paths(tmp_path / "dt=*") == ["dt=1/a.parquet", "dt=2/x/b.parquet"]


def test_a_glob_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    write_logs(tmp_path / "a.parquet", example_rows(1))
    with raises("input.glob-syntax", glob="[z-a].parquet"):
        find_logs(f"{tmp_path}/[z-a].parquet")


def test_a_uri_may_be_percent_encoded(tmp_path: Path) -> None:
    write_logs(tmp_path / "my logs" / "a.parquet", example_rows(1))
    assert paths(f"file://{tmp_path}/my%20logs") == paths(f"file://{tmp_path}/my%20logs/*.parquet") == ["a.parquet"]


def test_the_suffix_may_be_in_capitals(tmp_path: Path) -> None:
    write_logs(tmp_path / "UP.PARQUET", example_rows(1))
    write_logs(tmp_path / "down.parquet", example_rows(1))
    assert paths(tmp_path) == paths(tmp_path / "*") == ["UP.PARQUET", "down.parquet"]


def test_what_is_passed_over_is_named_where_there_is_nothing_else(tmp_path: Path) -> None:
    with raises("input.no-logs"):
        write_logs(tmp_path / "_x" / "a.parquet", example_rows(1))
        find_logs(str(tmp_path))
    for name in ("a.parq", "b.pq", "c.csv", "d.parquet.gz", "e.json", "f.tsv", "g.orc"):
        (tmp_path / name).touch()
    for place in (tmp_path, tmp_path / "*"):
        with raises("input.no-logs", suffix=".parquet") as error:
            find_logs(str(place))
        assert "'a.parq', 'b.pq'" in error.value.fields["others"] and "2 more" in error.value.fields["others"]


def test_a_file_of_any_name_can_be_given_itself(tmp_path: Path) -> None:
    assert paths(write_logs(tmp_path / "logs.pq", example_rows(1))) == ["logs.pq"]


def test_a_name_that_is_no_text_is_told(tmp_path: Path) -> None:
    write_logs(tmp_path / "a.parquet", example_rows(1))
    os.rename(tmp_path / "a.parquet", os.fsencode(tmp_path) + b"/a\xff.parquet")  # noqa: PTH104
    with raises("input.name-no-utf8"):
        find_logs(str(tmp_path))


def test_files_without_rows_lie_among_others(tmp_path: Path) -> None:
    write_logs(tmp_path / "a.parquet", example_rows(1))
    schema = pq.read_schema(tmp_path / "a.parquet")
    pq.write_table(schema.empty_table(), tmp_path / "b.parquet")
    pq.ParquetWriter(tmp_path / "c.parquet", schema).close()  # has no row group at all
    (tmp_path / "d.parquet").touch()
    logs = find_logs(str(tmp_path))
    assert [(f.path, f.rows) for f in logs.files] == [("a.parquet", 1), ("b.parquet", 0), ("c.parquet", 0)]
    assert [f.path for f in logs.unreadable] == ["d.parquet"]


def test_a_changed_file_of_the_same_size_has_another_digest(tmp_path: Path) -> None:
    def digest(answer: str) -> tuple[int, str | None]:
        path = write_logs(tmp_path / "a.parquet", [{"question": "q", "context": "c", "response": answer}])
        (file,) = find_logs(str(path)).files
        return file.size, file.digest

    first, same, other = digest("It opens at 8."), digest("It opens at 8."), digest("It opens at 9.")
    assert first == same and first[0] == other[0] and first[1] != other[1]


@pytest.mark.parametrize("value", ["", "__HIVE_DEFAULT_PARTITION__", "a%20b", "a%2Fb", "a=b", "50%25", "ü"])
def test_values_of_partitions_are_plain(tmp_path: Path, value: str) -> None:
    write_logs(tmp_path / f"my%20key={value}" / "a.parquet", example_rows(1))
    (file,) = find_logs(str(tmp_path)).files
    assert file.partition == (("my%20key", unquote(value)),)


def test_an_encrypted_file_is_unreadable(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"PARE" + b"\0" * 50 + (40).to_bytes(4, "little") + b"PARE")
    assert len(find_logs(str(tmp_path)).unreadable) == 1


def test_row_groups_of_one_file_may_be_many(tmp_path: Path) -> None:
    pq.write_table(pa.Table.from_pylist(example_rows(40)), tmp_path / "a.parquet", row_group_size=1)
    assert find_logs(str(tmp_path)).files[0].row_groups == 40


class Counted(io.BytesIO):
    """A file that counts what is read of it."""

    reads = 0
    count = 0

    def read(self, size: int | None = -1) -> bytes:
        data = super().read(size)
        self.reads, self.count = self.reads + 1, self.count + len(data)
        return data


def test_of_a_file_that_is_no_parquet_little_is_read() -> None:
    big = Counted(b"\xff" * 2_000_000)
    footer_bytes(pa.PythonFile(big, mode="r"))
    assert big.reads == 1 and big.count == TAIL_BYTES


@pytest.mark.parametrize("columns", [3, 3000])
def test_a_footer_is_read_once_however_long(tmp_path: Path, columns: int) -> None:
    table = pa.table({f"column {i}": ["x"] for i in range(columns)})
    pq.write_table(table, tmp_path / "a.parquet")
    file = Counted((tmp_path / "a.parquet").read_bytes())
    footer = footer_bytes(pa.PythonFile(file, mode="r"))
    assert file.reads == (1 if columns == 3 else 2)
    assert pq.read_schema(pa.BufferReader(footer)).equals(table.schema) and footer.endswith(b"PAR1")
    assert (len(footer) > TAIL_BYTES) == (columns == 3000)


@pytest.mark.parametrize("data", [b"", b"PAR1", b"x" * 12, b"PAR1\xff\xff\xff\xffPAR1", b"\0" * 99_999 + b"\xff\xff\xff\0PAR1"])
def test_what_only_looks_like_parquet_is_unreadable(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.parquet").write_bytes(data)
    (file,) = find_logs(str(tmp_path)).unreadable
    assert file.error and file.digest is None


@pytest.mark.parametrize("key", ["_dt", ".dt"])
def test_a_key_that_would_be_passed_over_is_refused(tmp_path: Path, key: str) -> None:
    write_logs(tmp_path / f"{key}=1" / "a.parquet", example_rows(1))
    logs = find_logs(str(tmp_path / f"{key}=1"))
    with refuses("input.hidden-key") as error:
        check_logs(logs, Columns(), question_needed=True)
    assert error.value.fields["faults"][0]["key"] == key


def test_a_key_with_the_name_that_a_column_gets_is_refused(tmp_path: Path) -> None:
    rows = [{"q": "q", "question": "mine", "context": "c", "response": "r"}]
    write_logs(tmp_path / "input_question=1" / "a.parquet", rows)
    with raises("input.key-is-column", key="input_question", column="question"):
        check_logs(find_logs(str(tmp_path)), Columns(question="q"), question_needed=True)


def test_a_glob_means_files_and_what_lies_below_folders(tmp_path: Path) -> None:
    write_logs(tmp_path / "g" / "dt=1" / "a.parquet", example_rows(1))
    write_logs(tmp_path / "g" / "dt=2" / "spark.parquet" / "part-0.parquet", example_rows(1))
    nights = ["dt=1/a.parquet", "dt=2/spark.parquet/part-0.parquet"]
    assert paths(tmp_path / "g" / "*") == paths(f"{tmp_path}/g/dt=*/") == nights
    assert paths(tmp_path / "g" / "dt=2" / "*.parquet") == nights[1:]
    (tmp_path / "g" / "README.md").touch()
    assert paths(tmp_path / "g" / "*") == nights
    write_logs(tmp_path / "g" / "extra.parquet", example_rows(1))
    assert paths(tmp_path / "g" / "*") == [*nights, "extra.parquet"]
    assert paths(tmp_path / "g" / "d*") == nights


@pytest.mark.parametrize("place", ["nosuch/*.parquet", "nosuch/*/x/*.parquet", "nosuch/deeper/**"])
def test_a_glob_in_a_folder_that_is_not_there(tmp_path: Path, place: str) -> None:
    with raises("input.no-folder"):
        find_logs(f"{tmp_path}/{place}")


def test_a_column_name_that_is_no_utf8_makes_a_file_unreadable(tmp_path: Path) -> None:
    data = write_logs(tmp_path / "a.parquet", [{"nameless": "q"}], store_schema=False).read_bytes()
    (tmp_path / "a.parquet").write_bytes(data.replace(b"nameless", b"name\xff\xffss"))
    (file,) = find_logs(str(tmp_path)).unreadable
    assert "utf-8" in (file.error or "")


def test_a_glob_passes_over_a_table_that_it_does_not_mean(tmp_path: Path) -> None:
    write_logs(tmp_path / "lake/a.parquet", example_rows(1))
    write_logs(tmp_path / "lake/t/part.parquet", example_rows(1))
    (tmp_path / "lake/t/_delta_log").mkdir()
    assert paths(tmp_path / "lake/*.parquet") == ["a.parquet"]
    for glob in ("lake/**/*.parquet", "lake/t/*.parquet", "lake/*", "lake"):
        with raises("input.holds-table"):
            paths(tmp_path / glob)


def test_hidden_tables_refuse_nothing_on_a_disk_or_elsewhere(tmp_path: Path) -> None:
    for folder in ("_verdicts/_delta_log", "t/_delta_log"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "0.json").touch()
    disk = fs.LocalFileSystem()
    assert walk(disk, str(tmp_path)).tables == [f"{tmp_path}/t"]
    assert walk(fs.SubTreeFileSystem(str(tmp_path.parent), disk), tmp_path.name).tables == [f"{tmp_path.name}/t"]
