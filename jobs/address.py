"""Addresses as they may be shown and stored: without what a store or a server is opened with."""

import re
from urllib.parse import urlsplit

_WHO = re.compile(r"(?<=://)[^\s'\"@]*:[^\s'\"@]*@")
_SECRET = re.compile(r"([?&](?:\w*secret\w*|\w*token|\w*password|\w*key)=)[^&\s'\"]+", re.IGNORECASE)
_CONTAINERS = {"abfs", "abfss", "wasb", "wasbs"}
"""Schemes in which a name before the @ is part of the place."""


def address_of(uri: str) -> str:
    """A path as it is; a URI without user, password and query: the same for one place, however its store is opened.

    Args:
        uri: A path or URI.
    """
    scheme, sign, rest = uri.partition("://")
    if not sign:
        return uri
    place, slash, path = rest.partition("?")[0].partition("/")
    who, _, host = place.rpartition("@")
    container = who.partition(":")[0] if scheme in _CONTAINERS else ""
    return f"{scheme}://{container}{'@' if container else ''}{host}{slash}{path}"


def without_secrets(text: str) -> str:
    """A message without the passwords and keys in the URIs that it names.

    Args:
        text: Any.
    """
    return _SECRET.sub(r"\1…", _WHO.sub("", text))


def server_of(url: str) -> str:
    """Scheme, host and port of a server: what of its address may be shown.

    Args:
        url: Its address.

    Raises:
        ValueError: It is no address of an HTTP server; the message does not hold it.
    """
    try:
        parts = urlsplit(url.strip())
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not host or parts.scheme not in {"http", "https"}:
        raise ValueError("is no address of a server: give one such as http://localhost:5000")
    shown = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{shown}" + (f":{port}" if port else "")
