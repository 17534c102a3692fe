"""Addresses that may be shown and stored: without the credentials that open a store or a server."""

from urllib.parse import urlsplit

from pydantic_core import PydanticCustomError

from ragassay.pipeline.address import hide_secrets, is_ambiguous_uri, quote_path, strip_credentials

__all__ = ["format_server", "hide_secrets", "is_ambiguous_uri", "quote_path", "strip_credentials"]


def format_server(url: str) -> str:
    """Return the scheme, host and port of a server: the part of its address that may be shown.

    Args:
        url: The address.

    Raises:
        ValueError: The address is not that of an HTTP server, or is ambiguous; the message does not contain it.
    """
    try:
        parts = urlsplit(url.strip())
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not host or parts.scheme not in {"http", "https"} or is_ambiguous_uri(url.strip()):
        raise PydanticCustomError(
            "config.server-address", "is not the address of a server: set it to one such as http://localhost:5000"
        )
    name = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{name}" + (f":{port}" if port else "")
