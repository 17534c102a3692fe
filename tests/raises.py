"""Expect an error of ours by its code and fields."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from ragassay.pipeline.errors import Message, RagassayError

EXAMPLE = Message("test.example", "{text}")
"""Message of an error that only a test raises."""


@contextmanager
def raises(*codes: str, **fields: Any) -> Iterator[pytest.ExceptionInfo[RagassayError]]:
    """Check that a block raises an error of ours.

    Args:
        codes: Its code, or each code that it may have.
        fields: Some of its fields, and their values.

    Yields:
        What pytest knows of the error, once it is raised.
    """
    with pytest.raises(RagassayError) as info:
        yield info
    error = info.value
    assert error.code in codes, f"{error.code}: {error}"
    assert {name: error.fields.get(name) for name in fields} == fields


@contextmanager
def refuses(fault: str) -> Iterator[pytest.ExceptionInfo[RagassayError]]:
    """Check that a block raises an error of ours by its code; or refuses a job file, or logs, for a fault.

    Args:
        fault: Code of the error; place of the fault in the job file, such as `slms.0.name`; or code of a fault of the logs.

    Yields:
        What pytest knows of the error, once it is raised.
    """
    with pytest.raises(RagassayError) as info:
        yield info
    faults = info.value.fields.get("faults")
    listed = faults if isinstance(faults, list) else []
    known = {info.value.code, *(one.get("place") for one in listed), *(one["code"] for one in listed)}
    assert fault in known, f"{fault}: {known}: {info.value}"


def fails(done: subprocess.CompletedProcess[str], code: str, *values: object) -> None:
    """Check that a command ended with an error of ours.

    Args:
        done: The command.
        code: Code of the error.
        values: What its text must name, such as values of its fields.
    """
    said = " ".join(done.stderr.split())
    assert done.returncode == 1 and f"error[{code}]: " in said, done.stdout + done.stderr
    assert [value for value in values if str(value) not in said] == [], said
