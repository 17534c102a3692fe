"""What of an address may be shown and stored."""

import pytest

from ragassay.jobs.address import address_of, server_of, without_secrets
from ragassay.jobs.config import make_job
from ragassay.pipeline.errors import ConfigError


def test_a_place_has_one_address_however_it_is_opened() -> None:
    place = "s3://bkt/a/b=%20@"
    for uri in (place, "s3://KEY:SEC%2FRET@bkt/a/b=%20@", "s3://KEY@bkt/a/b=%20@?region=eu&endpoint_override=h:9000"):
        assert address_of(uri) == place
    assert address_of("/a?b@c") == "/a?b@c" and address_of("file:///a") == "file:///a" and address_of("gs://bkt") == "gs://bkt"
    assert (
        address_of("abfss://data:SECRET@acc.dfs.core.windows.net/a?client_secret=x")
        == "abfss://data@acc.dfs.core.windows.net/a"
    )


def test_a_message_has_no_secrets() -> None:
    text = "input 's3://K:SECRET/1@bkt/a?region=eu&client_secret=SECRET': see http://u:SECRET@h:1/x?api_key=SECRET of m@x.org"
    assert without_secrets(text) == "input 's3://bkt/a?region=eu&client_secret=…': see http://h:1/x?api_key=… of m@x.org"
    assert without_secrets("at http://h:1/a: no, at http://b@c") == "at http://h:1/a: no, at http://b@c"


def test_a_server_is_scheme_host_and_port() -> None:
    assert server_of(" http://u:p@h:1/x?api_key=k#f") == "http://h:1" and server_of("https://[::1]/") == "https://[::1]"
    with pytest.raises(ValueError, match="is no address") as found:
        server_of("ftp://u:secret@h")
    assert "secret" not in str(found.value)
    with pytest.raises(ConfigError) as wrong:
        make_job({"openlineage": {"url": "ftp://u:secret@h"}})
    assert "secret" not in str(wrong.value)
