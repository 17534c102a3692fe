"""URIs with a secret, for tests that no output shows it."""

from dataclasses import dataclass

from hypothesis import strategies as st

SECRET = "hUsH7xq"
"""Part of every secret generated here, and of nothing else."""

_ODD = "abZ09@/:?#&=%+.,;'\"()[]{}<>\\|^~!$*`_-"
_OF_USER = "abZ09%+.,;'\"()[]{}<>|^~!$*`_-=&"
_odd = st.text(_ODD, max_size=8)

passwords = _odd.map(lambda more: f"user:{SECRET}{more}@")
"""Passwords with any characters except spaces, including raw @, / and ?."""

tokens = st.text(_OF_USER, max_size=8).map(lambda more: f"{SECRET}{more}@")
queries = st.builds(lambda a, b: f"?{a}{SECRET}{b}", st.one_of(_odd, st.just("sv=1&sig=")), _odd)
fragments = st.builds(lambda a, b: f"#{a}{SECRET}{b}", _odd, _odd)


@dataclass(frozen=True)
class SecretUri:
    """URI with a secret.

    Attributes:
        text: Whole URI.
        shown: Scheme, host and path, which may be shown.
        is_plain: Whether the user part has no character that could end it, so that every parser reads it in the same way.
    """

    text: str
    shown: str
    is_plain: bool


def _uri(scheme: str, user: str, host: str, path: str, behind: tuple[str, str]) -> SecretUri:
    user = user if user or any(behind) else f"user:{SECRET}@"
    return SecretUri(
        f"{scheme}://{user}{host}{path}{''.join(behind)}", f"{scheme}://{host}{path}", not set(user[:-1]) & set("/?#\\")
    )


uris = st.builds(
    _uri,
    st.sampled_from(["s3", "gs", "https", "postgresql+psycopg2", "HTTP"]),
    st.one_of(st.just(""), tokens, passwords),
    st.sampled_from(["bkt", "acc.blob.core.windows.net", "h:9000", "[::1]:80"]),
    st.sampled_from(["", "/", "/a/b.parquet", "/dt=2026-11-01/a%20b"]),
    st.tuples(st.one_of(st.just(""), queries), st.one_of(st.just(""), fragments)),
)
"""URIs with a secret in the user, the password, the query or the fragment, or in several of them."""
