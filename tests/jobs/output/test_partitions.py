"""A partition has the same name in the input, in the manifest, and below `raw/`."""

import tempfile
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pyarrow.dataset as ds
from hypothesis import given
from hypothesis import strategies as st

from ragassay.jobs.input import find_logs
from ragassay.jobs.output.partitions import hive_keys, hive_path, list_partition_files
from ragassay.jobs.storage.folder import open_folder
from tests.conftest import example_rows, write_logs

letters = st.characters(codec="utf-8", exclude_characters="/=\0", exclude_categories=["Cs"])
names = st.text(letters, min_size=1, max_size=8).filter(lambda name: name[0] not in "._")
values = st.text(st.characters(codec="utf-8", exclude_characters="\0", exclude_categories=["Cs"]), max_size=8)


@given(names, names.map(lambda name: quote(name, safe="")), values)
def test_a_partition_name_is_the_same_in_the_input_and_in_raw(plain: str, encoded: str, value: str) -> None:
    for key in {plain, encoded}:
        with tempfile.TemporaryDirectory() as root:
            write_logs(Path(root) / "logs" / f"{key}={quote(value, safe=' ')}" / "a.parquet", example_rows(1))
            (file,) = find_logs(f"{root}/logs").files
            assert file.partition == ((key, value),)
            table = pa.table({"n": [1], key: [value]})
            ds.write_dataset(
                [table], f"{root}/out/raw", format="parquet", partitioning=[key], partitioning_flavor="hive",
                basename_template="x-{i}.parquet",
            )  # fmt: skip
            (folder,) = list_partition_files(open_folder(f"{root}/out"), "raw")
            assert hive_path(folder) == file.partition_path and hive_keys(folder) == {key: value}
