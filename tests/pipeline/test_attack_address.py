"""A URI shows its scheme, host and path, wherever it contains a secret and however a text wraps it."""

import json
import pickle
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragassay.jobs.output import errors
from ragassay.jobs.output.snapshot import rewritten_error
from ragassay.pipeline.address import hide_secrets, is_ambiguous_uri, strip_credentials
from ragassay.pipeline.errors import InputError, Message, OutputInUse
from tests.pipeline.test_linear_time import is_linear
from tests.uris import SECRET, SecretUri, uris

FORMS = {
    "azure sas": ("https://acc.blob.core.windows.net/c/x?sv=1&se=2026&sig=KEY%2F=", "https://acc.blob.core.windows.net/c/x"),
    "raw at": ("s3://K:p@KEY@bkt/a/b", "s3://bkt/a/b"),
    "raw slash": ("s3://K:p/KEY@bkt/a", "s3://bkt/a"),
    "raw at and slash": ("s3://K:p@s/KEY@bkt/a", "s3://bkt/a"),
    "raw question mark": ("s3://K:p?KEY@bkt/a?region=eu", "s3://bkt/a"),
    "raw hash": ("s3://K:p#KEY@bkt/a", "s3://bkt/a"),
    "sign in a password": ("s3://K:a://KEY@bkt/a", "s3://bkt/a"),
    "quote in a password": ("https://'ab:KEY@host/p", "https://host/p"),
    "token of https": ("https://KEY@host/a", "https://host/a"),
    "token of gs": ("gs://KEY@bucket/a", "gs://bucket/a"),
    "amazon": ("https://b.s3.amazonaws.com/k?X-Amz-Credential=KEY&X-Amz-Security-Token=KEY&X-Amz-Signature=KEY",
               "https://b.s3.amazonaws.com/k"),
    "google": ("https://storage.googleapis.com/b/k?X-Goog-Signature=KEY", "https://storage.googleapis.com/b/k"),
    "dash": ("http://h:1/x?access-key=KEY", "http://h:1/x"),
    "one word": ("http://h:1/x?apikey=KEY", "http://h:1/x"),
    "fragment": ("https://h/x#access_token=KEY", "https://h/x"),
    "container with a password": ("abfss://data:KEY@acc.dfs.core.windows.net/a?sig=KEY", "abfss://data@acc.dfs.core.windows.net/a"),
    "container": ("abfss://data@acc.dfs.core.windows.net/a?sig=KEY", "abfss://data@acc.dfs.core.windows.net/a"),
    "token as container": ("wasbs://KEY@acc/a", "wasbs://acc/a"),
    "quoted user": ("https://u%3AKEY%40h/x", "https://h/x"),
}  # fmt: skip

TEXTS = {
    "in quotes": ("'https://h/x?sig=KEY' failed", "'https://h/x' failed"),
    "quote in a query": ("'https://h/x?sig=a'KEY': no", "'https://h/x': no"),
    "in parentheses": ("get (https://h/x?sig=KEY), twice", "get (https://h/x), twice"),
    "in angle brackets": ("<https://u:KEY@h/x?sig=KEY>;", "<https://h/x>;"),
    "at the end of a line": ("at https://h/x?sig=KEY\nnext", "at https://h/x\nnext"),
    "behind a colon": ("https://h/x?sig=KEY: 403", "https://h/x: 403"),
    "two in a word": ("http://a/x,http://u:KEY@b/y", "http://a/x,http://b/y"),
    "in a path": ("https://proxy/get/https://u:KEY@h/x", "https://proxy/get/https://h/x"),
    "in a query": ("https://proxy/get?u=https://u:KEY@h/x", "https://proxy/get"),
    "url-quoted": ("u=https%3A%2F%2Fu%3AKEY%40h%2Fx%3Fsig%3DKEY", "u=https%3A%2F%2Fh%2Fx"),
    "url-quoted, slashes not": ("https%3A//u%3AKEY%40h/x%3Fsig%3DKEY.", "https%3A//h/x."),
    "url-quoted twice": ("https%253A%252F%252Fu%253AKEY%2540h%252Fx", "https%253A%252F%252Fh%252Fx"),
    "escaped": (r'{"url":"https:\/\/u:KEY@h\/x?sig=KEY"}', r'{"url":"https:\/\/h\/x"}'),
    "query alone": ("Max retries exceeded with url: /x?sig=KEY (Caused by", "Max retries exceeded with url: /x (Caused by"),
    "connection string": ("AccountName=a;AccountKey=KEY;End=b", "AccountName=a"),
    "bearer": ("got Authorization: Bearer KEY of us", "got Authorization: … of us"),
    "basic": ("authorization:Basic KEY==", "authorization:…"),
    "of a dict": ("{'Authorization': 'Bearer KEY', 'Accept': '*/*'}", "{'Authorization': '…', 'Accept': '*/*'}"),
    "of json": ('{"authorization":"Basic KEY","a":1}', '{"authorization":"…","a":1}'),
    "of json in json": (r'"{\"Authorization\": \"Bearer KEY\"}"', r'"{\"Authorization\": \"…\"}"'),
    "of pairs": ("[(b'authorization', b'Bearer KEY')]", "[(b'authorization', b'…')]"),
    "signature": ("Authorization: AWS4-HMAC-SHA256 Credential=KEY/x, Signature=KEY\nHost: h", "Authorization: …\nHost: h"),
    "token alone": ("it refuses Bearer eyJKEY1.x_y of us", "it refuses Bearer … of us"),
    "header of a key": ("x-api-key: KEY, apikey=KEY", "x-api-key: … apikey=…"),
}
UNCHANGED = [
    "/data/x?y#z@w", "logs/dt=2026-11-0?/part-?.parquet", "at http://h:1/a: no, of m@x.org", "s3://bkt/a/b=%20@/c", "file:///a@b/c",
    "http://HOST:PORT/v1", "give one such as http://localhost:5000", "http://[::1]:80/a@b", 'x.partition("://")[2].rpartition("@")',
    "basic information", "abfss://d@acc/mail=m@y.org/z", "why? a=b & c=d", "the bearer of it", "author: nobody",
]  # fmt: skip


@pytest.mark.parametrize("name", FORMS)
def test_attack_a_uri_shows_its_scheme_host_and_path(name: str) -> None:
    uri, shown = (text.replace("KEY", SECRET) for text in FORMS[name])
    assert strip_credentials(uri) == hide_secrets(uri) == shown
    assert hide_secrets(f'input "{uri}" failed: {uri}, again') == f'input "{shown}" failed: {shown}, again'


@pytest.mark.parametrize("name", TEXTS)
def test_attack_a_uri_is_cleaned_wherever_a_text_contains_it(name: str) -> None:
    text, shown = (text.replace("KEY", SECRET) for text in TEXTS[name])
    assert hide_secrets(text) == shown


@pytest.mark.parametrize("text", UNCHANGED)
def test_text_without_a_secret_is_unchanged(text: str) -> None:
    assert hide_secrets(text) == text


@given(
    uris, st.sampled_from(["{}", "'{}'", '"{}"', "({})", "<{}>", "at {}: no", "u={}", "[{}]", "{}.", "see {}\nnext", " {}; x"])
)
def test_attack_no_text_shows_a_secret(uri: SecretUri, wrapping: str) -> None:
    forms = [uri.text, repr(uri.text), json.dumps(uri.text)]
    quoted = [quote(uri.text, safe=""), quote(uri.text), json.dumps(uri.text).replace("/", "\\/")]
    assert SECRET not in strip_credentials(uri.text)
    for text in map(wrapping.format, [*forms, *quoted]):
        shown = hide_secrets(text)
        assert SECRET not in shown
        assert hide_secrets(shown) == shown
    if uri.is_plain:
        assert strip_credentials(uri.text) == uri.shown
        assert all(uri.shown in hide_secrets(wrapping.format(text)) for text in forms)


@given(st.text("ab:/@?#%2F3A=&'\"()\\ \n;"))
def test_cleaning_is_idempotent_for_any_text(text: str) -> None:
    shown = hide_secrets(text)
    assert hide_secrets(shown) == shown and "://" in f"{strip_credentials(text)}://"


def test_an_at_in_the_user_part_and_in_the_path_is_ambiguous() -> None:
    assert is_ambiguous_uri("s3://K:p@s/w@bkt/a") and is_ambiguous_uri("s3://K:S@bkt/a@b?x")
    assert (
        not is_ambiguous_uri("s3://bkt/a@b") and not is_ambiguous_uri("s3://K:S@bkt/a%40b") and not is_ambiguous_uri("/a@b/c@d")
    )
    assert not is_ambiguous_uri("abfss://data@acc/a@b") and is_ambiguous_uri("abfss://data:S@acc/a@b")


@given(uris)
def test_attack_errors_contain_no_secret(uri: SecretUri) -> None:
    cause = OSError(f"opening '{uri.text}'")
    for error in (
        InputError(Message("input.example", "input {uri!r} can't be read: {cause}"), uri=uri.text, cause=cause, all=[uri.text]),
        OutputInUse(errors.LOCKED, output=uri.text, holder=f" (of {uri.text})", lease=""),
        rewritten_error(uri.text, "dt=1"),
    ):
        unpickled = pickle.loads(pickle.dumps(error))
        assert str(unpickled) == str(error) and unpickled.args == error.args and vars(unpickled) == vars(error)
        assert SECRET not in f"{error} {error!r} {vars(error)}" and SECRET.encode() not in pickle.dumps(error)


SHAPES = [
    "a://", "a://b:c@", "a://b/", "K:a://", "'a://", "(a://)", '"://"', "a://u@h/@h", "a://u@h/@$", "a://b:c?d@", "@",
    "https:\\/\\/", "%3A%2F%2F", "%253A%252F%252F", "a%3A%2F%2Fb://", "?a=", 'authorization:"', "authorization ", "cookie:'",
    "Bearer ", "a ", "a.", "\\",
]  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("begin", ["", "http://u:p@h", "'http://K:x"])
def test_time_is_linear_in_the_length(shape: str, begin: str) -> None:
    short, long = (begin + shape * (size // len(shape)) + "$" for size in (10_000, 40_000))
    assert is_linear(hide_secrets, short, long)


@pytest.mark.parametrize("shape", ["a://u@h/@$", "'a://", "a://b:c@"])
def test_a_mebibyte_is_cleaned_in_linear_time(shape: str) -> None:
    short, long = (shape * (size // len(shape)) for size in (1 << 18, 1 << 20))
    assert is_linear(hide_secrets, short, long)
