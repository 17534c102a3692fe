"""Requests to a tool: a few at once, no faster than allowed, and again where they fail for now.

Verdicts go to the address that was named and nowhere else: proxies of the environment are not used, redirects are not followed.
"""

import random
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

from ragassay.jobs.display.address import hide_secrets
from ragassay.jobs.integrations.publish import errors
from ragassay.pipeline.errors import ConfigError, PublishError

TIMEOUT = 60.0  # seconds, of one request
TRIES = 10
FIRST_WAIT, LONGEST_WAIT = 0.5, 60.0  # seconds between tries; what Retry-After says may be longer
PATIENCE = 900.0  # seconds that a tool may ask us to wait

TRIES_AT_500 = 4
"""A fault inside the tool is the fault of what it was sent, if it comes back so often."""

LATER = {408, 425, 429, 502, 503, 504}
REDIRECTS = {301, 302, 303, 307, 308}


@dataclass(frozen=True)
class Connection:
    """Where a tool is, and as whom it is asked.

    Attributes:
        url: Its address, without a slash at the end.
        headers: What every request bears, keys among it: never shown.
        keys: Names of the environment variables that hold them, for messages.
        account: Tells one account at the same address from another; no secret.
    """

    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    keys: str = ""
    account: str = ""


@dataclass(frozen=True)
class Answer:
    """What a tool says.

    Attributes:
        status: Of HTTP.
        body: JSON, or text where it is none.
    """

    status: int
    body: Any

    @property
    def ok(self) -> bool:
        """Whether it took what it was sent, or some of it."""
        return 200 <= self.status < 300

    @property
    def reason(self) -> str:
        """Why not, in a line: the tool's words without what it may quote of the request."""
        return hide_secrets(f"{self.status}: {words(self.body)}")[:300].rstrip(": ")


class TryAgainError(Exception):
    """It did not work now."""

    def __init__(self, why: str, after: float | None = None, answer: Answer | None = None) -> None:
        """Say why.

        Args:
            why: In words.
            after: Seconds that the tool asks us to wait; None where it does not say.
            answer: What is given in the end if it stays so; None makes it an error then.
        """
        super().__init__(why)
        self.after, self.answer = after, answer


class StoppedError(Exception):
    """Somebody else has ended it."""


def words(body: Any) -> str:
    """What a tool's answer says in words; lists of faults in the way that FastAPI writes them, without their `input`."""
    if isinstance(body, str):
        return " ".join(body.split())
    if isinstance(body, list):
        return "; ".join(filter(None, map(words, body[:3])))
    if isinstance(body, dict):
        if isinstance(body.get("loc"), list):
            return f"{'.'.join(map(str, body['loc']))}: {words(body.get('msg'))}"
        said = [words(body[key]) for key in ("error_code", "message", "error", "detail", "msg") if key in body]
        return ": ".join(dict.fromkeys(filter(None, said)))
    return ""


def checked_url(url: str) -> str:
    """An address of a tool.

    Raises:
        ConfigError: It is none, or holds more than a place: a password, a query, a fragment.
    """
    if "?" in url or "#" in url:
        raise ConfigError(errors.URL_WITH_QUERY)
    try:
        parts = urlsplit(url)
        _ = parts.port  # which may be no number
    except ValueError as error:
        raise ConfigError(errors.UNREADABLE_URL) from error
    if "@" in (parts.netloc or url):
        raise ConfigError(errors.URL_WITH_PASSWORD)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ConfigError(errors.NO_URL, url=url)
    return url.rstrip("/")


class Http:
    """The requests of one run of `publish`, by several threads.

    Attributes:
        requests: How many were sent.
    """

    def __init__(self, connection: Connection, per_second: float | None, say: Callable[[str], None] = lambda _: None) -> None:
        """Ready to ask.

        Args:
            connection: Whom.
            per_second: Requests begun in a second at most; None sets no limit.
            say: Told of waits.
        """
        import httpx2

        self._client = httpx2.Client(
            headers={"User-Agent": "ragassay", **connection.headers},
            timeout=TIMEOUT,
            trust_env=False,
            follow_redirects=False,
        )
        self.connection = connection
        self.requests = 0
        self._gap, self._next = (1 / per_second if per_second else 0.0), 0.0
        self._lock, self._stopping, self._say = threading.Lock(), threading.Event(), say

    def stop(self) -> None:
        """End all waits: what is being tried is given up."""
        self._stopping.set()

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def once(self, method: str, path: str, body: Any = None, params: Mapping[str, str] | None = None) -> Answer:
        """One request.

        Raises:
            TryAgainError: The tool can't be reached, does not answer, asks us to wait, or has a fault.
            PublishError: It refuses the key, or is elsewhere.
        """
        import httpx2

        self._pace()
        try:
            found = self._client.request(method, self.connection.url + path, json=body, params=params)
        except httpx2.TransportError as error:
            raise TryAgainError(type(error).__name__) from error
        try:
            said = found.json()
        except ValueError:
            said = found.text
        answer = Answer(found.status_code, said)
        if answer.status in LATER:
            raise TryAgainError(answer.reason, _after(found.headers.get("Retry-After")))
        if answer.status >= 500:
            raise TryAgainError(answer.reason, answer=answer)
        if answer.status in {401, 403}:
            raise PublishError(errors.KEY_REFUSED, url=self.connection.url, reason=answer.reason, keys=self.connection.keys)
        if answer.status in REDIRECTS:
            where = hide_secrets(str(found.headers.get("Location", "elsewhere")))
            raise PublishError(errors.REDIRECTED, url=self.connection.url, location=where[:200])
        if answer.ok and isinstance(said, str) and said.lstrip().startswith("<"):
            raise PublishError(errors.WEB_PAGE, url=self.connection.url, status=answer.status)
        return answer

    def trying(self, do: Callable[[], Answer]) -> Answer:
        """Do something until it works.

        Args:
            do: Asks, with `once`; it is done again from its begin, so it must not matter how far it came.

        Raises:
            PublishError: It does not work, however often it is tried.
            StoppedError: `stop` was called.
        """
        faults = 0
        for number in range(1, TRIES + 1):
            if self._stopping.is_set():
                raise StoppedError
            try:
                return do()
            except TryAgainError as error:
                faults += error.answer is not None
                if error.answer is not None and faults == TRIES_AT_500:
                    return error.answer
                if number == TRIES:
                    raise PublishError(errors.UNREACHABLE, url=self.connection.url, reason=error, tries=TRIES) from error
                wait = min(FIRST_WAIT * 2 ** (number - 1), LONGEST_WAIT) * random.uniform(0.5, 1.0)
                wait = max(wait, error.after or 0.0)
                if wait > PATIENCE:
                    raise PublishError(errors.WAIT_TOO_LONG, url=self.connection.url, seconds=wait) from error
                if wait > 5:
                    self._say(f"{error}: waiting {wait:.0f} s")
                self._stopping.wait(wait)
        raise AssertionError("the last try returns or raises")

    def _pace(self) -> None:
        with self._lock:
            self.requests += 1
            if not self._gap:
                return
            now = time.monotonic()
            mine = max(now, self._next)
            self._next = mine + self._gap
        self._stopping.wait(max(0.0, mine - now))


def _after(header: str | None) -> float | None:
    """Seconds that `Retry-After` asks for: a number, or a date."""
    if not header:
        return None
    try:
        return max(0.0, float(header))
    except ValueError:
        pass
    try:
        return max(0.0, (parsedate_to_datetime(header) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError):
        return None
