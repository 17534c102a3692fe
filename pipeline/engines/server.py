"""A model behind an OpenAI-compatible endpoint: chats out, completions in, and what each kind of fault means.

Log text goes to `base_url` and nowhere else: proxies of the environment are not used, redirects are not followed. Unlike with
a model of our own, the server puts the chat template around the prompt, and may take a control token in a log text for one.
"""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeVar
from urllib.parse import urlsplit

from pydantic import Field, field_validator
from pydantic_core import PydanticCustomError

from ragassay.pipeline.address import without_secrets
from ragassay.pipeline.engines import errors
from ragassay.pipeline.engines.model import Model
from ragassay.pipeline.engines.settings import EngineSettings
from ragassay.pipeline.engines.text import Messages, TextEngine
from ragassay.pipeline.errors import ModelError

if TYPE_CHECKING:
    from openai import APIStatusError, OpenAI

ROW_FAULTS = {400, 413, 422}
"""HTTP statuses that are a prompt's own fault (too long, above all): it has no answer, the others go on."""

REQUEST_SETTINGS = {
    "model", "temperature", "logprobs", "top_logprobs", "max_tokens", "max_completion_tokens", "response_format",
}  # fmt: skip
"""Parameters that are the same in every request: a server that refuses one of them refuses every row."""

SAID = "; it said: "
"""Stands before what an error quotes of a server, which may echo a prompt: `drop_text` cuts errors here."""

Answer = TypeVar("Answer")


class Server(EngineSettings):
    """A server.

    Attributes:
        base_url: Where it is, usually up to /v1: http://host:8000/v1.
        api_key_env: Name of the environment variable that holds the key, on every node that asks; the key itself never
            stands in a config. None sends a dummy, for servers that want no key.
        concurrency: Requests in flight; of a member, of each of the two batches that a replica has under way.
        requests_per_minute: Requests that are begun in a minute at most, by each of those; None sets no limit.
        timeout_seconds: Wait for one request.
        retries: Tries after the first, where the server can't be reached, is busy (429) or has a fault (5xx). The wait between
            them is what its `Retry-After` says, else doubles from half a second, with jitter.
        top_logprobs: Alternatives of the token that are asked for; OpenAI gives at most 20, vLLM what `--max-logprobs` says.
            0 asks for none, for servers that give none: the word itself decides, and P(yes) is 0 or 1. A member needs some.
    """

    NOT_OF_SCORES: ClassVar[frozenset[str]] = EngineSettings.NOT_OF_SCORES | {
        "api_key_env", "concurrency", "requests_per_minute", "timeout_seconds", "retries",
    }  # fmt: skip
    SERVED: ClassVar[bool] = True

    kind: Literal["server"] = "server"
    base_url: str
    api_key_env: str | None = Field(None, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    concurrency: int = Field(8, ge=1)
    requests_per_minute: float | None = Field(None, gt=0)
    timeout_seconds: float = Field(60, gt=0)
    retries: int = Field(3, ge=0)
    top_logprobs: int = Field(20, ge=0)

    @field_validator("base_url")
    @classmethod
    def _is_http(cls, url: str) -> str:
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise PydanticCustomError("config.base-url", "must be an http or https address such as http://host:8000/v1")
        if "@" in parts.netloc or parts.query or parts.fragment:
            raise PydanticCustomError(
                "config.base-url-secret",
                "may hold no password, query or fragment: a key belongs in the variable that api_key_env names",
            )
        return url

    def fault(self, gpus: float) -> PydanticCustomError | None:
        """See `EngineSettings.fault`."""
        if self.top_logprobs:
            return None
        return PydanticCustomError(
            "config.no-logprobs", "a served member needs top_logprobs: without them its probabilities are 0 or 1"
        )

    def weights(self, model: Model) -> dict[str, Any]:
        """See `EngineSettings.weights`; of what is behind a server there is but the name."""
        return {"model": model.model}

    @property
    def computes_in(self) -> str:
        """See `EngineSettings.computes_in`."""
        return "the server's own type"

    def load_text(self, model: Model, *, gpus: float, threads: int) -> TextEngine:
        """See `EngineSettings.load_text`."""
        from ragassay.pipeline.engines.server_text import ServerText

        return ServerText(Caller(f"reasoner {model.name!r}", model.model, self))


@dataclass(frozen=True)
class Caller:
    """Who asks a server.

    Attributes:
        who: For messages, such as "judge 'gpt'".
        model: Name of the model at the server.
        server: The server.
    """

    who: str
    model: str
    server: Server

    @property
    def where(self) -> str:
        """Who and which server, for messages."""
        return f"{self.who}: {self.server.base_url}"


@dataclass(frozen=True)
class Form(Generic[Answer]):
    """What is asked for, and how what comes back becomes an answer.

    Attributes:
        settings: Parameters of every request.
        read: From a completion to an answer; may raise ModelError where every other will be as bad.
        refused: From what the server says to a prompt that it refuses.
        in_trouble: From what the server gave, however often it was asked: a timeout, a 429 or a 5xx.
    """

    settings: Mapping[str, Any]
    read: Callable[[Any], Answer]
    refused: Callable[[str], Answer]
    in_trouble: Callable[[str], Answer]


class _TroubleError(Exception):
    """A request got nothing but a timeout, a 429 or a 5xx, however often it was tried; its text says which."""


class _RefusedError(Exception):
    """The server refuses a prompt; its text says why."""


class _Pace:
    """Lets requests begin no faster than so many a minute."""

    def __init__(self, a_minute: float | None) -> None:
        self._gap = 60 / a_minute if a_minute else 0.0
        self._next, self._lock = 0.0, Lock()

    def wait(self) -> None:
        if self._gap:
            with self._lock:
                now = time.monotonic()
                mine = max(now, self._next)
                self._next = mine + self._gap
            time.sleep(max(0.0, mine - now))


def exchange(
    caller: Caller,
    chats: Sequence[Messages],
    form: Form[Answer],
    done: Callable[[int, Answer], None] = lambda _, __: None,
    skip: Callable[[int], Answer | None] = lambda _: None,
) -> list[Answer]:
    """Ask a server.

    A chat that the server refuses, or gives no usable answer to, has an answer that says why. A fault that is the server's or
    the config's ends it at once, before every chat is tried in vain.

    Args:
        caller: Who asks, and which server.
        chats: What.
        form: How.
        done: Told of every answer as it comes, in one of several threads.
        skip: Asked before each chat is sent; what it gives is the answer, and the chat is not sent.

    Returns:
        One answer a chat, in order.

    Raises:
        ModelError: The server can't be reached, refuses the key, has no such model, does not take the request's settings,
            or is in trouble (timeouts, 429, 5xx) for more than `concurrency` chats in succession.
    """
    key = api_key(caller)
    if not chats:
        return []
    from openai import DefaultHttpxClient, OpenAI

    server = caller.server
    answers: dict[int, Answer] = {}
    streak, patience = 0, min(server.concurrency + 1, max(len(chats), 2))
    pace, settings = _Pace(server.requests_per_minute), dict(form.settings)

    def one(i: int) -> tuple[Answer, str | None]:
        """An answer, and what the trouble was where the server had some."""
        answer, trouble = skip(i), None
        if answer is None:
            pace.wait()
            try:
                answer = form.read(_send(client, caller, settings, chats[i]))
            except _RefusedError as refusal:
                answer = form.refused(str(refusal))
            except _TroubleError as error:
                answer, trouble = form.in_trouble(str(error)), str(error)
            except ModelError as error:
                done(i, form.in_trouble(str(error)))  # who waits for this one must not wait for ever
                raise
        done(i, answer)  # here, so that what has come is told of even if another request ends it all
        return answer, trouble

    with (
        OpenAI(
            base_url=server.base_url,
            api_key=key,
            timeout=server.timeout_seconds,
            max_retries=server.retries,
            http_client=DefaultHttpxClient(trust_env=False, follow_redirects=False),
        ) as client,
        ThreadPoolExecutor(server.concurrency) as pool,
    ):
        futures = {pool.submit(one, i): i for i in range(len(chats))}
        try:
            for future in as_completed(futures):
                answers[futures[future]], trouble = future.result()
                streak = streak + 1 if trouble else 0
                if streak >= patience:
                    raise ModelError(
                        errors.IN_TROUBLE, where=caller.where, trouble=trouble, rows=streak, tries=server.retries + 1
                    )
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)  # what is not sent yet is not sent
            raise
    return [answers[i] for i in range(len(chats))]


def api_key(caller: Caller) -> str:
    """The key for a caller's server.

    Raises:
        ModelError: Its variable is not set.
    """
    name = caller.server.api_key_env
    if name is None:
        return "none"
    key = os.environ.get(name, "").strip()
    if not key:
        raise ModelError(errors.NO_KEY_VARIABLE, member=caller.who, variable=name, url=caller.server.base_url)
    return key


def _send(client: "OpenAI", caller: Caller, settings: dict[str, Any], chat: Messages) -> Any:
    """One request. `settings` are shared: the first row that learns of another name for max_tokens tells the others."""
    from openai import APIConnectionError, APIStatusError, APITimeoutError, OpenAIError

    sent = dict(settings)
    create: Any = client.chat.completions.create  # its types want literals
    try:
        completion = create(model=caller.model, temperature=0, messages=list(chat), **sent)
    except APIStatusError as error:
        if "max_tokens" in sent and error.param == "max_tokens" and error.code == "unsupported_parameter":
            settings["max_completion_tokens"] = sent[
                "max_tokens"
            ]  # before the other goes: a copy in between must not lack both
            settings.pop("max_tokens", None)
            return _send(client, caller, settings, chat)
        raise _fault_of(caller, error) from None
    except APIConnectionError as error:
        if isinstance(error, APITimeoutError) and type(error.__cause__).__name__ != "ConnectTimeout":
            raise _TroubleError(f"no answer within {caller.server.timeout_seconds:g} seconds") from None
        raise ModelError(errors.UNREACHABLE, where=caller.where, type=type(error.__cause__).__name__) from None
    except (OpenAIError, ValueError) as error:  # ValueError: what should be JSON is none
        raise ModelError(errors.NO_CHAT_API, where=caller.where, reason=type(error).__name__) from None
    if not hasattr(completion, "choices"):  # the client hands on what is no JSON as it came
        raise ModelError(errors.NO_CHAT_API, where=caller.where, reason="an answer without choices")
    return completion


def _fault_of(caller: Caller, error: "APIStatusError") -> Exception:
    """What an HTTP error means: for the row, or for all of them."""
    where, status = caller.where, error.status_code
    if status in ROW_FAULTS:
        said = error.body.get("message") if isinstance(error.body, dict) else error.message
        reason = without_secrets(" ".join(str(said).split()))[:300]
        if error.param in REQUEST_SETTINGS:
            way = ". Without structured output: structured: false" if error.param == "response_format" else ""
            return ModelError(
                errors.REFUSES_PARAMETER, where=where, parameter=error.param, status=status, reason=reason, advice=way
            )
        return _RefusedError(f"the server refuses the row (HTTP {status}){SAID}{reason}")
    if status in {408, 409, 429} or status >= 500:
        return _TroubleError(f"HTTP {status}{f' ({without_secrets(error.code)[:40]})' if error.code else ''}")
    if status in {401, 403}:
        name = caller.server.api_key_env
        place = f"in environment variable {name}" if name else "that api_key_env: names"
        return ModelError(errors.REFUSES_KEY, where=where, status=status, place=place)
    if status == 404:
        return ModelError(errors.NO_MODEL, where=where, model=caller.model, url=caller.server.base_url)
    return ModelError(errors.REFUSES_REQUESTS, where=where, status=status)
