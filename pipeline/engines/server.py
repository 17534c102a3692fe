"""A chat model behind an OpenAI-compatible endpoint: prompts as text in, P(yes) and P(no) of one token out.

A server gives the probabilities of its likeliest tokens only, so P(yes) is the sum over the alternatives that came back; what
lies below them (less than the last of them, each) is missing from it.

Log text goes to `base_url` and nowhere else: proxies of the environment are not used, redirects are not followed. Unlike with
a model of our own, the server puts the chat template around the prompt, and may take a control token in a log text for one.
"""

import math
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal
from urllib.parse import urlsplit

from pydantic import Field, field_validator

from ragassay.pipeline.engines.model import Model
from ragassay.pipeline.engines.settings import EngineSettings
from ragassay.pipeline.errors import ModelError

if TYPE_CHECKING:
    from openai import APIStatusError, OpenAI

ROW_FAULTS = {400, 413, 422}
"""HTTP statuses that are a prompt's own fault (too long, above all): it has no answer, the others go on."""

REQUEST_SETTINGS = {"model", "temperature", "logprobs", "top_logprobs", "max_tokens", "max_completion_tokens"}
"""Parameters that are the same in every request: a server that refuses one of them refuses every row."""


class Server(EngineSettings):
    """A server.

    Attributes:
        base_url: Where it is, usually up to /v1: http://host:8000/v1.
        api_key_env: Name of the environment variable that holds the key, on every node that asks; the key itself never
            stands in a config. None sends a dummy, for servers that want no key.
        concurrency: Requests in flight; of a member, of each of the two batches that a replica has under way.
        timeout_seconds: Wait for one request.
        retries: Tries after the first, where the server can't be reached, is busy (429) or has a fault (5xx).
        top_logprobs: Alternatives of the token that are asked for; OpenAI gives at most 20, vLLM what `--max-logprobs` says.
            0 asks for none, for servers that give none: the word itself decides, and P(yes) is 0 or 1. A member needs some.
    """

    NOT_OF_SCORES: ClassVar[frozenset[str]] = EngineSettings.NOT_OF_SCORES | {
        "api_key_env", "concurrency", "timeout_seconds", "retries",
    }  # fmt: skip
    SERVED: ClassVar[bool] = True

    kind: Literal["server"] = "server"
    base_url: str
    api_key_env: str | None = Field(None, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    concurrency: int = Field(8, ge=1)
    timeout_seconds: float = Field(60, gt=0)
    retries: int = Field(3, ge=0)
    top_logprobs: int = Field(20, ge=0)

    @field_validator("base_url")
    @classmethod
    def _is_http(cls, url: str) -> str:
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ValueError("must be an http or https address such as http://host:8000/v1")
        if "@" in parts.netloc or parts.query or parts.fragment:
            raise ValueError("may hold no password, query or fragment: a key belongs in the variable that api_key_env names")
        return url

    def fault(self, gpus: float) -> str | None:
        """See `EngineSettings.fault`."""
        return None if self.top_logprobs else "a served member needs top_logprobs: without them its probabilities are 0 or 1"

    def weights(self, model: Model) -> dict[str, Any]:
        """See `EngineSettings.weights`; of what is behind a server there is but the name."""
        return {"model": model.model}

    @property
    def computes_in(self) -> str:
        """See `EngineSettings.computes_in`."""
        return "the server's own type"


@dataclass(frozen=True)
class Asker:
    """Who asks a server what.

    Attributes:
        who: For messages, such as "judge 'gpt'".
        model: Name of the model at the server.
        server: The server.
        supported: Words by which the model says "supported"; spaces around a token don't count.
        unsupported: Words by which it says "not supported".
        is_member: Whether its log-probabilities are wanted, so that a word alone won't do.
    """

    who: str
    model: str
    server: Server
    supported: tuple[str, ...]
    unsupported: tuple[str, ...]
    is_member: bool = False


@dataclass(frozen=True)
class Answer:
    """What a model says to one prompt.

    Attributes:
        log_p_yes: log of the sum over the alternatives that say supported, -inf without one; None where there is no answer.
        log_p_no: The same of those that say unsupported.
        unlisted: log of the most that a token can have which was not listed: no more than the least likely that was, and no
            more than all of them leave.
        error: Why there is no answer.
        tokens: Tokens that the server counted, prompt and answer.
        trouble: Whether there is none because the server was in trouble, which may pass.
    """

    log_p_yes: float | None
    log_p_no: float | None
    unlisted: float
    error: str | None
    tokens: int
    trouble: bool = False


class _TroubleError(Exception):
    """A request got nothing but a timeout, a 429 or a 5xx, however often it was tried; its text says which."""


def ask(asker: Asker, prompts: Sequence[str]) -> list[Answer]:
    """Ask a server.

    A prompt that the server refuses, or gives no usable answer to, has no value, and an error that says why. A fault that is
    the server's or the config's ends it at once, before every prompt is tried in vain.

    Args:
        asker: Who asks, and which server.
        prompts: User messages.

    Returns:
        One answer a prompt, in order.

    Raises:
        ModelError: The server can't be reached, refuses the key, has no such model, does not take the request's settings,
            or is in trouble (timeouts, 429, 5xx) for more than `concurrency` prompts in succession.
    """
    key = _key(asker)
    if not prompts:
        return []
    from openai import DefaultHttpxClient, OpenAI

    server = asker.server
    answers: dict[int, Answer] = {}
    streak, patience = 0, min(server.concurrency + 1, max(len(prompts), 2))
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
        request = _request(asker)
        futures = {pool.submit(_ask_one, client, asker, request, prompt): i for i, prompt in enumerate(prompts)}
        try:
            for future in as_completed(futures):
                try:
                    answers[futures[future]] = future.result()
                    streak = 0
                except _TroubleError as trouble:
                    streak += 1
                    if streak >= patience:
                        raise ModelError(
                            f"{asker.who}: {server.base_url} gave {trouble} for {streak} rows in succession, "
                            f"{server.retries + 1} tries each: look at the server and its quota, lower concurrency, or raise "
                            "timeout_seconds or retries"
                        ) from None
                    answers[futures[future]] = replace(_without(asker, f"the server gave {trouble}"), trouble=True)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)  # what is not sent yet is not sent
            raise
    return [answers[i] for i in range(len(prompts))]


def _key(asker: Asker) -> str:
    name = asker.server.api_key_env
    if name is None:
        return "none"
    key = os.environ.get(name, "").strip()
    if not key:
        raise ModelError(f"{asker.who}: environment variable {name} is not set: put the key for {asker.server.base_url} there")
    return key


def _request(asker: Asker) -> dict[str, Any]:
    """What all requests share."""
    request: dict[str, Any] = {"model": asker.model, "max_tokens": 1, "temperature": 0}
    if asker.server.top_logprobs:
        request.update(logprobs=True, top_logprobs=asker.server.top_logprobs)
    return request


def _ask_one(client: "OpenAI", asker: Asker, request: dict[str, Any], prompt: str) -> Answer:
    """One row. `request` is shared: the first row that learns of another name for max_tokens tells the others."""
    from openai import APIConnectionError, APIStatusError, APITimeoutError, OpenAIError

    where = f"{asker.who}: {asker.server.base_url}"
    sent = dict(request)
    try:
        completion = client.chat.completions.create(messages=[{"role": "user", "content": prompt}], **sent)
    except APIStatusError as error:
        if "max_tokens" in sent and error.param == "max_tokens" and error.code == "unsupported_parameter":
            request["max_completion_tokens"] = 1  # before the other goes: a copy in between must not lack both
            request.pop("max_tokens", None)
            return _ask_one(client, asker, request, prompt)
        return _refusal(asker, error)
    except APIConnectionError as error:
        if isinstance(error, APITimeoutError) and type(error.__cause__).__name__ != "ConnectTimeout":
            raise _TroubleError(f"no answer within {asker.server.timeout_seconds:g} seconds") from None
        raise ModelError(
            f"{where} can't be reached ({type(error.__cause__).__name__}): start the server, or correct base_url "
            "(proxies of the environment are not used)"
        ) from None
    except (OpenAIError, ValueError) as error:  # ValueError: what should be JSON is none
        raise ModelError(f"{where} does not speak the chat API ({type(error).__name__}): correct base_url") from None
    return _read(asker, completion)


def _refusal(asker: Asker, error: "APIStatusError") -> Answer:
    """What an HTTP error means: for the row, or for all of them."""
    where, status = f"{asker.who}: {asker.server.base_url}", error.status_code
    if status in ROW_FAULTS:
        said = error.body.get("message") if isinstance(error.body, dict) else error.message
        reason = " ".join(str(said).split())[:300]
        if error.param in REQUEST_SETTINGS:
            raise ModelError(f"{where} does not take `{error.param}` (HTTP {status}): {reason}") from None
        return _without(asker, f"the server refuses the row (HTTP {status}): {reason}")
    if status in {408, 409, 429} or status >= 500:
        raise _TroubleError(f"HTTP {status}{f' ({error.code[:40]})' if error.code else ''}") from None
    if status in {401, 403}:
        place = f"in environment variable {asker.server.api_key_env}" if asker.server.api_key_env else "that api_key_env: names"
        raise ModelError(f"{where} refuses the key (HTTP {status}): it wants a valid one {place}") from None
    if status == 404:
        raise ModelError(
            f"{where} has no model {asker.model!r}, or no chat API at this address (HTTP 404): "
            f"{asker.server.base_url}/models lists its models; base_url usually ends in /v1"
        ) from None
    raise ModelError(f"{where} refuses requests (HTTP {status}): correct base_url, or look at the server") from None


def _read(asker: Asker, completion: Any) -> Answer:
    """P(supported) from a completion."""
    if not hasattr(completion, "choices"):  # the client hands on what is no JSON as it came
        raise ModelError(
            f"{asker.who}: {asker.server.base_url} does not speak the chat API: correct base_url, it usually ends in /v1"
        )
    tokens = (completion.usage.total_tokens if completion.usage else 0) or 0
    choice = completion.choices[0] if completion.choices else None
    word = (choice.message.content or "") if choice and choice.message else ""
    first = choice.logprobs.content[0] if choice and choice.logprobs and choice.logprobs.content else None
    if asker.server.top_logprobs and word and first is None:
        way = (
            "take it as `judge`, with top_logprobs: 0"
            if asker.is_member
            else "set top_logprobs: 0, and the word itself decides"
        )
        raise ModelError(f"{asker.who}: {asker.server.base_url} gives no logprobs: {way}")
    if asker.server.top_logprobs and first is not None:
        return _by_chances(asker, first, tokens)
    if word:
        return _by_word(asker, word, tokens)
    reason = f"finish_reason {choice.finish_reason}" if choice else "no choices"
    return _without(asker, f"the server gave no token ({reason})", tokens)


def _by_chances(asker: Asker, first: Any, tokens: int) -> Answer:
    """By the first token's alternatives."""
    chances = [(a.token, a.logprob) for a in first.top_logprobs or ()]
    if first.token not in [token for token, _ in chances]:  # some servers list only what was not picked
        chances.append((first.token, first.logprob))
    yes = [logprob for token, logprob in chances if token.strip() in asker.supported]
    no = [logprob for token, logprob in chances if token.strip() in asker.unsupported]
    if not yes and not no:
        reason = f"none of the {len(chances)} likeliest first tokens is a supported or unsupported word"
        return _without(asker, f"{reason}; the likeliest is {first.token[:40]!r}", tokens)
    if any(logprob is None or math.isnan(logprob) for logprob in [*yes, *no]):
        return _without(asker, "the server's log-probability is no number", tokens)
    listed = [logprob for _, logprob in chances if logprob is not None and not math.isnan(logprob)]
    left = 1 - math.fsum(map(math.exp, listed))
    unlisted = min(*listed, math.log(left) if left > 0 else -math.inf)
    return Answer(_log_sum(yes), _log_sum(no), unlisted, None, tokens)


def _log_sum(logprobs: Sequence[float]) -> float:
    total = math.fsum(map(math.exp, logprobs))
    return math.log(min(1.0, total)) if total else -math.inf


def _by_word(asker: Asker, word: str, tokens: int) -> Answer:
    """By the word alone."""
    if word.strip() in asker.supported:
        return Answer(0.0, -math.inf, -math.inf, None, tokens)
    if word.strip() in asker.unsupported:
        return Answer(-math.inf, 0.0, -math.inf, None, tokens)
    return _without(asker, f"the answer {word[:40]!r} is neither a supported nor an unsupported word", tokens)


def _without(asker: Asker, error: str, tokens: int = 0) -> Answer:
    return Answer(None, None, -math.inf, f"{asker.who}: {error}", tokens)
