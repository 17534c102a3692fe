"""Where a table lies, as the libraries of the formats want it said."""

import importlib
import os
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from ragassay.jobs.input.tables import errors
from ragassay.jobs.storage.folder import Folder
from ragassay.pipeline.errors import InputError

_OPTIONS = {"endpoint_override": "aws_endpoint", "region": "aws_region"}


def library(name: str, what: str) -> Any:
    """A library of a table format.

    Args:
        name: Its module.
        what: What is read or written with it, for the message.

    Raises:
        InputError: It is not installed.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise InputError(errors.LIBRARY_MISSING, need=what, library=error.name) from error


def location(folder: Folder) -> str:
    """Path or URI of a folder without the options behind a `?`, and without a key."""
    return folder.root if folder.is_local else folder.address


def storage_options(folder: Folder) -> dict[str, str]:
    """The options of a folder's URI under the names that the Rust object stores of Delta and Lance know them by."""
    if folder.is_local:
        return {}
    address = urlsplit(folder.uri)
    given = dict(parse_qsl(address.query))
    options = {_OPTIONS[key]: value for key, value in given.items() if key in _OPTIONS}
    if address.scheme == "s3" and address.username:
        options["aws_access_key_id"] = unquote(address.username)
        options["aws_secret_access_key"] = unquote(address.password or "")
    if (scheme := given.get("scheme")) and "aws_endpoint" in options and "://" not in options["aws_endpoint"]:
        options["aws_endpoint"] = f"{scheme}://{options['aws_endpoint']}"
    endpoint = options.get("aws_endpoint", os.environ.get("AWS_ENDPOINT_URL", ""))
    if endpoint.startswith("http://"):
        options["allow_http"] = "true"
    return options


def iceberg_properties(query: str) -> dict[str, str]:
    """The options of a URI under the names that pyiceberg knows them by."""
    given = dict(parse_qsl(query))
    names = {"endpoint_override": "s3.endpoint", "region": "s3.region", "access_key": "s3.access-key-id",
             "secret_key": "s3.secret-access-key", "session_token": "s3.session-token"}  # fmt: skip
    return {names[key]: value for key, value in given.items() if key in names}
