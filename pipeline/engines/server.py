"""A model behind an OpenAI-compatible endpoint: chats out, completions in, and the meaning of each kind of fault.

Log text is sent to `base_url` only: proxies in the environment are not used, and redirects are not followed. Unlike with a
local model, the server applies the chat template, and it may read a control token in log text as a control token.
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
"""HTTP statuses for a faulty prompt (usually too long): it gets no answer, and the other prompts continue."""

REQUEST_SETTINGS = {
    "model", "temperature", "logprobs", "top_logprobs", "max_tokens", "max_completion_tokens", "response_format",
}  # fmt: skip
"""Parameters with the same value in every request: a server that refuses one of them refuses every row."""

SAID = "; server message: "
"""Start of a server's message in an error. The message may quote a prompt, so `drop_text` cuts errors here."""

Answer = TypeVar("Answer")


class Server(EngineSettings):
    """Settings of a server.

    Attributes:
        base_url: Address, usually up to /v1: http://host:8000/v1.
        api_key_env: Environment variable with the key, on every node that sends requests; the key itself is never in a job
            file. None sends a dummy key, for servers without keys.
        concurrency: Maximum number of concurrent requests; for a member, of each of the two batches in progress per replica.
        requests_per_minute: Maximum number of requests started per minute, per batch for a member; None sets no limit.
        timeout_seconds: Timeout of one request.
        retries: Further tries if the server can't be reached, is busy (429) or fails (5xx). The wait before a try follows
            `Retry-After`, else it doubles from half a second, with jitter.
        top_logprobs: Requested alternatives of the token; OpenAI returns at most 20, vLLM as many as `--max-logprobs`. 0
            requests none, for servers without logprobs: then the word itself decides, and P(yes) is 0 or 1. A member needs at
            least 1.
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
                "must not contain a password, query or fragment: put a key in the variable that api_key_env names",
            )
        return url

    def fault(self, gpus: float) -> PydanticCustomError | None:
        """See `EngineSettings.find_fault`."""
        if self.top_logprobs:
            return None
        return PydanticCustomError(
            "config.no-logprobs", "a served member needs top_logprobs of at least 1: without logprobs its probabilities are 0 or 1"
        )

    def weights(self, model: Model) -> dict[str, Any]:
        """See `EngineSettings.identify_weights`; of a served model only the name is known."""
        return {"model": model.model}

    @property
    def computes_in(self) -> str:
        """See `EngineSettings.compute_dtype`."""
        return "dtype of the server"

    def load_text(self, model: Model, *, gpus: float, threads: int) -> TextEngine:
        """See `EngineSettings.load_text_engine`."""
        from ragassay.pipeline.engines.server_text import ServerText

        return ServerText(Caller(f"reasoner {model.name!r}", model.model, self))


@dataclass(frozen=True)
class Caller:
    """A model at a server.

    Attributes:
        owner: Member or judge that uses the model, for messages, such as "judge 'gpt'".
        model: Name of the model at the server.
        server: Settings of the server.
    """

    who: str
    model: str
    server: Server

    @property
    def where(self) -> str:
        """Owner and URL of the server, for messages."""
        return f"{self.who}: {self.server.base_url}"


@dataclass(frozen=True)
class Form(Generic[Answer]):
    """Parameters of the requests, and how replies become answers.

    Attributes:
        parameters: Parameters of every request.
        parse: Converts a completion to an answer; may raise ModelError if every other completion would fail too.
        on_refusal: Converts the server's message for a refused prompt to an answer.
        on_failure: Converts a server failure that all tries had (a timeout, a 429 or a 5xx) to an answer.
    """

    settings: Mapping[str, Any]
    read: Callable[[Any], Answer]
    refused: Callable[[str], Answer]
    in_trouble: Callable[[str], Answer]


class _TroubleError(Exception):
    """All tries of a request ended with a timeout, a 429 or a 5xx; the text describes it."""


class _RefusedError(Exception):
    """The server refuses a prompt; the text states why."""


class _Pace:
    """Limits the number of requests started per minute."""

    def __init__(self, requests_per_minute: float | None) -> None:
        self._gap = 60 / requests_per_minute if requests_per_minute else 0.0
        self._next, self._lock = 0.0, Lock()

    def wait(self) -> None:
        if self._gap:
            with self._lock:
                now = time.monotonic()
                start = max(now, self._next)
                self._next = start + self._gap
            time.sleep(max(0.0, start - now))


def exchange(
    caller: Caller,
    chats: Sequence[Messages],
    form: Form[Answer],
    done: Callable[[int, Answer], None] = lambda _, __: None,
    skip: Callable[[int], Answer | None] = lambda _: None,
) -> list[Answer]:
    """Send chats to a server.

    A chat that is refused, or has no usable answer, gets an answer that states why. A fault of the server or the settings
    raises at once, before all chats are tried.

    Args:
        endpoint: Model and server.
        chats: The chats.
        task: Parameters and converters.
        on_answer: Called with the number of the chat and its answer, as soon as it is ready, on one of several threads.
        find_answer: Called before each chat is sent; if it returns an answer, the chat is not sent.

    Returns:
        One answer per chat, in order.

    Raises:
        ModelError: The server can't be reached, refuses the key, has no such model, does not accept the parameters, or fails
            (timeouts, 429, 5xx) for more than `concurrency` consecutive chats.
    """
    key = api_key(caller)
    if not chats:
        return []
    from openai import DefaultHttpxClient, OpenAI

    server = caller.server
    answers: dict[int, Answer] = {}
    streak, max_streak = 0, min(server.concurrency + 1, max(len(chats), 2))
    rate_limiter, parameters = _Pace(server.requests_per_minute), dict(form.settings)

    def answer_chat(i: int) -> tuple[Answer, str | None]:
        """Return an answer, and the failure of the server if there was one."""
        answer, failure = skip(i), None
        if answer is None:
            rate_limiter.wait()
            try:
                answer = form.read(_send(client, caller, parameters, chats[i]))
            except _RefusedError as refusal:
                answer = form.refused(str(refusal))
            except _TroubleError as error:
                answer, failure = form.in_trouble(str(error)), str(error)
            except ModelError as error:
                done(i, form.in_trouble(str(error)))  # a waiting caller must not wait forever
                raise
        done(i, answer)  # report now, because another request may end the call
        return answer, failure

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
        futures = {pool.submit(answer_chat, i): i for i in range(len(chats))}
        try:
            for future in as_completed(futures):
                answers[futures[future]], failure = future.result()
                streak = streak + 1 if failure else 0
                if streak >= max_streak:
                    raise ModelError(
                        errors.IN_TROUBLE, where=caller.where, failure=failure, rows=streak, tries=server.retries + 1
                    )
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)  # cancel the chats that are not sent
            raise
    return [answers[i] for i in range(len(chats))]


def api_key(caller: Caller) -> str:
    """Return the key for an endpoint's server.

    Raises:
        ModelError: Its environment variable is not set.
    """
    name = caller.server.api_key_env
    if name is None:
        return "none"
    key = os.environ.get(name, "").strip()
    if not key:
        raise ModelError(errors.NO_KEY_VARIABLE, member=caller.who, variable=name, url=caller.server.base_url)
    return key


def _send(client: "OpenAI", endpoint: Caller, parameters: dict[str, Any], chat: Messages) -> Any:
    """Send one request. All requests share `parameters`: the first one that learns another name of max_tokens changes it for
    all."""
    from openai import APIConnectionError, APIStatusError, APITimeoutError, OpenAIError

    sent = dict(parameters)
    create: Any = client.chat.completions.create  # the client's types require literals
    try:
        completion = create(model=endpoint.model, temperature=0, messages=list(chat), **sent)
    except APIStatusError as error:
        if "max_tokens" in sent and error.param == "max_tokens" and error.code == "unsupported_parameter":
            parameters["max_completion_tokens"] = sent[
                "max_tokens"
            ]  # first, so that a concurrent copy never lacks both
            parameters.pop("max_tokens", None)
            return _send(client, endpoint, parameters, chat)
        raise _fault_of(endpoint, error) from None
    except APIConnectionError as error:
        if isinstance(error, APITimeoutError) and type(error.__cause__).__name__ != "ConnectTimeout":
            raise _TroubleError(f"no answer within {endpoint.server.timeout_seconds:g} seconds") from None
        raise ModelError(errors.UNREACHABLE, where=endpoint.where, type=type(error.__cause__).__name__) from None
    except (OpenAIError, ValueError) as error:  # ValueError: the reply is not JSON
        raise ModelError(errors.NO_CHAT_API, where=endpoint.where, reason=type(error).__name__) from None
    if not hasattr(completion, "choices"):  # the client returns a reply that is not JSON unchanged
        raise ModelError(errors.NO_CHAT_API, where=endpoint.where, reason="an answer without choices")
    return completion


def _fault_of(endpoint: Caller, error: "APIStatusError") -> Exception:
    """Classify an HTTP error: a fault of the prompt, a server failure, or an error of all requests."""
    where, status = endpoint.where, error.status_code
    if status in ROW_FAULTS:
        message = error.body.get("message") if isinstance(error.body, dict) else error.message
        reason = without_secrets(" ".join(str(message).split()))[:300]
        if error.param in REQUEST_SETTINGS:
            advice = ". To turn off structured output, set structured: false" if error.param == "response_format" else ""
            return ModelError(
                errors.REFUSES_PARAMETER, where=where, parameter=error.param, status=status, reason=reason, advice=advice
            )
        return _RefusedError(f"the server refuses the row (HTTP {status}){SAID}{reason}")
    if status in {408, 409, 429} or status >= 500:
        return _TroubleError(f"HTTP {status}{f' ({without_secrets(error.code)[:40]})' if error.code else ''}")
    if status in {401, 403}:
        name = endpoint.server.api_key_env
        advice = f"set a valid key in environment variable {name}" if name else "set api_key_env to the variable with a valid key"
        return ModelError(errors.REFUSES_KEY, where=where, status=status, advice=advice)
    if status == 404:
        return ModelError(errors.NO_MODEL, where=where, model=endpoint.model, url=endpoint.server.base_url)
    return ModelError(errors.REFUSES_REQUESTS, where=where, status=status)
