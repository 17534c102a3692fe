"""The parts of an address that may be shown and stored."""

from pathlib import Path

import pytest
from pyarrow import fs as pafs
from pydantic_core import PydanticCustomError

from ragassay.jobs.config.job import make_job
from ragassay.jobs.display.address import format_server, hide_secrets, strip_credentials
from ragassay.jobs.storage.folder import Folder, open_folder
from ragassay.pipeline.errors import ConfigError, InputError


def test_a_location_has_one_address_independent_of_its_credentials() -> None:
    address = "s3://bkt/a/b=%20@"
    for uri in (
        address,
        "s3://KEY:SEC%2FRET@bkt/a/b=%20@",
        "s3://KEY@bkt/a/b=%20@?region=eu&endpoint_override=h:9000",
        f"{address}#x",
    ):
        assert strip_credentials(uri) == address
    assert (
        strip_credentials("/a?b@c") == "/a?b@c"
        and strip_credentials("file:///a") == "file:///a"
        and strip_credentials("gs://bkt") == "gs://bkt"
    )
    assert (
        strip_credentials("abfss://data:SECRET@acc.dfs.core.windows.net/a?client_secret=x")
        == "abfss://data@acc.dfs.core.windows.net/a"
    )


def test_a_message_has_no_secrets() -> None:
    text = "input 's3://K:SECRET/1@bkt/a?region=eu&client_secret=SECRET': see http://u:SECRET@h:1/x?api_key=SECRET of m@x.org"
    assert hide_secrets(text) == "input 's3://bkt/a': see http://h:1/x of m@x.org"
    assert hide_secrets("at http://h:1/a: no, at http://b@c") == "at http://h:1/a: no, at http://c"


def test_a_key_may_contain_the_start_of_a_query_or_fragment() -> None:
    folder = Folder(pafs.LocalFileSystem(), "bkt/logs", "s3://bkt/logs?region=eu")
    assert (
        folder.format_address("a#1?.parquet")
        == "s3://bkt/logs/a%231%3F.parquet"
        == strip_credentials(folder.format_address("a#1?.parquet"))
    )
    assert Folder(pafs.LocalFileSystem(), "/logs", "/logs").format_address("a#1?.parquet") == "/logs/a#1?.parquet"


def test_attack_an_ambiguous_uri_is_not_opened(tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        open_folder("s3://KEY:p@SECRET/x@bkt/a?region=eu")
    assert "SECRET" not in str(error.value) and "s3://bkt/a" in str(error.value)
    assert open_folder(f"file://{tmp_path}#SECRET").uri == f"file://{tmp_path}"


def test_a_server_is_shown_as_scheme_host_and_port() -> None:
    assert format_server(" http://u:p@h:1/x?api_key=k#f") == "http://h:1" and format_server("https://[::1]/") == "https://[::1]"
    for wrong in ("ftp://u:secret@h", "http://u:p@secret/x@h"):
        with pytest.raises(PydanticCustomError) as error_info:
            format_server(wrong)
        assert error_info.value.type == "config.server-address" and "secret" not in str(error_info.value)
    with pytest.raises(ConfigError) as error:
        make_job({"integrations": {"openlineage": {"url": "ftp://u:secret@h"}}})
    assert "secret" not in str(error.value)
