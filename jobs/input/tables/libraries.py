"""Translate addresses and options for the libraries of table formats."""

import os
from urllib.parse import parse_qsl, unquote, urlsplit

from ragassay.jobs.storage.folder import Folder

_DELTA_AND_LANCE_OPTIONS = {"endpoint_override": "aws_endpoint", "region": "aws_region"}


def library_uri(folder: Folder) -> str:
    """Return the path or URI of a folder without credentials and without the options after `?`."""
    return folder.root if folder.is_local else folder.address


def storage_options(folder: Folder) -> dict[str, str]:
    """Return the options of a folder's URI with the names that the object stores of Delta and Lance use."""
    if folder.is_local:
        return {}
    address = urlsplit(folder.uri)
    query = dict(parse_qsl(address.query))
    options = {_DELTA_AND_LANCE_OPTIONS[key]: value for key, value in query.items() if key in _DELTA_AND_LANCE_OPTIONS}
    if address.scheme == "s3" and address.username:
        options["aws_access_key_id"] = unquote(address.username)
        options["aws_secret_access_key"] = unquote(address.password or "")
    if (scheme := query.get("scheme")) and "aws_endpoint" in options and "://" not in options["aws_endpoint"]:
        options["aws_endpoint"] = f"{scheme}://{options['aws_endpoint']}"
    endpoint = options.get("aws_endpoint", os.environ.get("AWS_ENDPOINT_URL", ""))
    if endpoint.startswith("http://"):
        options["allow_http"] = "true"
    return options


def iceberg_properties(query: str) -> dict[str, str]:
    """Return the options of a URI with the names that pyiceberg uses."""
    query_options = dict(parse_qsl(query))
    names = {"endpoint_override": "s3.endpoint", "region": "s3.region", "access_key": "s3.access-key-id",
             "secret_key": "s3.secret-access-key", "session_token": "s3.session-token"}  # fmt: skip
    return {names[key]: value for key, value in query_options.items() if key in names}
