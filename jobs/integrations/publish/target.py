"""What a tool is to `publish`, and how a batch is sent whose answer is of all of it."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from ragassay.jobs.integrations.publish import errors
from ragassay.jobs.integrations.publish.http import Answer, Connection, Http, checked_url
from ragassay.jobs.integrations.publish.verdict import Verdict
from ragassay.pipeline.errors import ConfigError, PublishError


class Fate(StrEnum):
    """What became of a verdict."""

    SENT = "sent"
    UNKNOWN = "unknown"
    REFUSED = "refused"


@dataclass(frozen=True)
class Outcome:
    """What became of a verdict, and why.

    Attributes:
        fate: What.
        reason: Why, in the tool's words; empty where it was sent.
        named: Whether it is this one; False where the tool only said how many of a batch.
    """

    fate: Fate
    reason: str = ""
    named: bool = True


SENT = Outcome(Fate.SENT)


@dataclass(frozen=True)
class Sending:
    """What all verdicts of a partition are sent with.

    Attributes:
        name: Name of the score.
        at: When these verdicts were given.
        moment: Time of this sending: later than that of every earlier one, on the day of the first.
    """

    name: str
    at: datetime
    moment: datetime


@dataclass(frozen=True)
class Target:
    """A tool.

    Attributes:
        name: As --tool names it.
        batch: Verdicts that are sent together at most.
        overwrites: Whether it takes what has an id that it knows as the same thing again. What does not is written down after
            every answer, so that little is sent twice where a run is killed.
        span_columns: Columns of a span's id, of which the first that is there is taken where none is named.
        connect: From --url, or None, to where it is; takes keys from the environment.
        example: What a verdict looks like when it is sent, as JSON.
        send: Sends verdicts, and says what became of each.
    """

    name: str
    batch: int
    overwrites: bool
    span_columns: tuple[str, ...]
    connect: Callable[[str | None], Connection]
    example: Callable[[Verdict, Sending], Any]
    send: Callable[[Http, Sequence[Verdict], Sending], list[Outcome]]


Post = Callable[[Sequence[Verdict]], Answer]
"""Sends a batch once, with `Http.once`."""

Read = Callable[[Answer, Sequence[Verdict]], list[Outcome] | None]
"""Reads an answer to a batch; None where the tool took nothing of it."""


def send_batch(http: Http, verdicts: Sequence[Verdict], post: Post, read: Read) -> list[Outcome]:
    """Send verdicts together; where the tool refuses them whole, in halves, until those are found that it refuses.

    Args:
        http: Where to.
        verdicts: What.
        post: Sends them once.
        read: Reads the answer.

    Returns:
        What became of each.
    """
    if not verdicts:
        return []
    answer = http.trying(lambda: post(verdicts))
    found = read(answer, verdicts)
    if found is not None:
        return found
    if len(verdicts) == 1:
        return [Outcome(Fate.REFUSED, answer.reason)]
    middle = len(verdicts) // 2
    return [outcome for half in (verdicts[:middle], verdicts[middle:]) for outcome in send_batch(http, half, post, read)]


def elsewhere(http: Http, answer: Answer) -> PublishError:
    """There is no such place at this address."""
    return PublishError(errors.NO_API, url=http.connection.url, reason=answer.reason)


def address(url: str | None, names: Sequence[str], default: str | None = None) -> str:
    """A tool's address: as named, or from the first of some environment variables.

    Raises:
        ConfigError: There is none, or it is no address.
    """
    found = url or next((value for name in names if (value := os.environ.get(name, "").strip())), default)
    if not found:
        raise ConfigError(errors.NO_ADDRESS, variable=names[0])
    return checked_url(found)


def key(name: str) -> str | None:
    """A key from the environment; None where it is not set."""
    return os.environ.get(name, "").strip() or None


def without_nulls(data: Mapping[str, Any]) -> dict[str, Any]:
    """What of a mapping has a value."""
    return {name: value for name, value in data.items() if value is not None}
