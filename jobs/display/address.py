"""Addresses as they may be shown and stored: without what a store or a server is opened with."""

from urllib.parse import urlsplit

from pydantic_core import PydanticCustomError

from ragassay.pipeline.address import address_of, is_ambiguous, path_in_uri, without_secrets

__all__ = ["address_of", "is_ambiguous", "path_in_uri", "server_of", "without_secrets"]


def server_of(url: str) -> str:
    """Scheme, host and port of a server: what of its address may be shown.

    Args:
        url: Its address.

    Raises:
        ValueError: It is no address of an HTTP server, or one that can be read in two ways; the message does not hold it.
    """
    try:
        parts = urlsplit(url.strip())
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not host or parts.scheme not in {"http", "https"} or is_ambiguous(url.strip()):
        raise PydanticCustomError("config.server-address", "is no address of a server: give one such as http://localhost:5000")
    shown = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{shown}" + (f":{port}" if port else "")
