"""Expect a RagassayError by its code and fields."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from ragassay.pipeline.errors import Message, RagassayError

EXAMPLE = Message("test.example", "{text}")
"""Message of an error that only tests raise."""


@contextmanager
def raises(*codes: str, **fields: Any) -> Iterator[pytest.ExceptionInfo[RagassayError]]:
    """Check that a block raises a RagassayError.

    Args:
        codes: Accepted codes.
        fields: Expected values of some of its fields.

    Yields:
        The error, once it is raised.
    """
    with pytest.raises(RagassayError) as info:
        yield info
    error = info.value
    assert error.code in codes, f"{error.code}: {error}"
    assert {name: error.fields.get(name) for name in fields} == fields


@contextmanager
def refuses(fault: str) -> Iterator[pytest.ExceptionInfo[RagassayError]]:
    """Check that a block raises a RagassayError with a code or a fault.

    Args:
        fault: Code of the error; key of a fault in the job file, such as `members.slms.0.name`; or code of a fault of the logs.

    Yields:
        The error, once it is raised.
    """
    with pytest.raises(RagassayError) as info:
        yield info
    faults = info.value.fields.get("faults")
    listed = faults if isinstance(faults, list) else []
    codes = {info.value.code, *(entry.get("key") for entry in listed), *(entry["code"] for entry in listed)}
    assert fault in codes, f"{fault}: {codes}: {info.value}"


def fails(result: subprocess.CompletedProcess[str], code: str, *values: object) -> None:
    """Check that a command ended with a RagassayError.

    Args:
        result: Finished command.
        code: Code of the error.
        values: Values that its text must contain, such as those of its fields.
    """
    message = " ".join(result.stderr.split())
    assert result.returncode == 1 and f"error[{code}]: " in message, result.stdout + result.stderr
    assert [value for value in values if str(value) not in message] == [], message
