"""A served judge: a chat model behind an OpenAI-compatible endpoint says Yes or No of a whole response.

This is the P(True) baseline of arXiv 2506.22486 (its ChatGPT row): one request a response, one token out, P(yes) of that
token. A server gives the probabilities of its likeliest tokens only, so P(yes) is the sum over the alternatives that came
back; what lies below them (less than the last of them, each) is missing from it.

Log text goes to `base_url` and nowhere else: proxies of the environment are not used, redirects are not followed. Unlike
with an SLM, the server puts the chat template around the prompt, and may take a control token in a log text for one.
"""

import math
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from ragassay.pipeline.errors import ModelError
from ragassay.pipeline.slm.config import Words
from ragassay.pipeline.slm.template import check_prompt, render

if TYPE_CHECKING:
    from openai import APIStatusError, OpenAI

DEFAULT_JUDGE_PROMPT = """\
You check whether a response is supported by a context. Reply with Yes or No only.

Context:
{% for passage in context %}{{ passage }}
{% endfor %}

Question: {{ question }}

Response: {{ response }}

Is everything in the response supported by the context? Reply Yes or No."""

ROW_FAULTS = {400, 413, 422}
"""HTTP statuses that are a row's own fault (too long, above all): the row has no value, the others go on."""

REQUEST_SETTINGS = {"model", "temperature", "logprobs", "top_logprobs", "max_tokens", "max_completion_tokens"}
"""Parameters that are the same in every request: a server that refuses one of them refuses every row."""


class Judge(BaseModel):
    """A judge behind an OpenAI-compatible chat endpoint.

    Attributes:
        name: Its name in the results.
        base_url: Where the server is, usually up to /v1: http://host:8000/v1.
        model: Name of the model at the server.
        api_key_env: Name of the environment variable that holds the key; the key itself never stands in a config. None
            sends a dummy, for servers that want no key.
        prompt: Jinja template (sandboxed) of the user message, with `context` (list of passages), `question` and
            `response`.
        supported: Words by which it says "supported"; spaces around a token don't count.
        unsupported: Words by which it says "not supported".
        concurrency: Requests in flight.
        timeout_seconds: Wait for one request.
        retries: Tries after the first, where the server can't be reached, is busy (429) or has a fault (5xx).
        top_logprobs: Alternatives of the token that are asked for; OpenAI gives at most 20, vLLM what `--max-logprobs` says.
            0 asks for none, for servers that give none: the word itself decides, and P(yes) is 0 or 1.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, protected_namespaces=())

    name: str = Field(min_length=1, pattern=r"^[A-Za-z0-9._-]+$")
    base_url: str
    model: str = Field(min_length=1)
    api_key_env: str | None = Field(None, pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")
    prompt: str = DEFAULT_JUDGE_PROMPT
    supported: Words = ("Yes", "YES", "yes")
    unsupported: Words = ("No", "NO", "no")
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

    @model_validator(mode="after")
    def _labels_differ(self) -> "Judge":
        both = set(self.supported) & set(self.unsupported)
        if both:
            raise ValueError(f"supported and unsupported share the words {sorted(both)}")
        return self


@dataclass(frozen=True)
class Answer:
    """What a judge says of one response.

    Attributes:
        value: P(supported), 0 to 1; None where it could not be had.
        error: Why there is no value.
        tokens: Tokens that the server counted, prompt and answer.
    """

    value: float | None
    error: str | None
    tokens: int


class _TroubleError(Exception):
    """A request got nothing but a timeout, a 429 or a 5xx, however often it was tried; its text says which."""


def check_judge(judge: Judge) -> None:
    """Check that a judge's prompt renders, and holds the response once and the other texts whole.

    Raises:
        ConfigError: It does not.
    """
    check_prompt(f"judge {judge.name!r}", judge.prompt, "response")


def ask(judge: Judge, rows: Sequence[tuple[str | None, list[str], str]]) -> list[Answer]:
    """Ask a judge about responses.

    A row that the server refuses, or gives no usable answer to, has no value, and an error that says why. A fault that is
    the server's or the config's ends it at once, before every row is tried in vain.

    Args:
        judge: The judge.
        rows: (question, passages of the context, response) of each.

    Returns:
        One answer a row, in order.

    Raises:
        ConfigError: The prompt is wrong.
        ModelError: The server can't be reached, refuses the key, has no such model, does not take the request's settings,
            or is in trouble (timeouts, 429, 5xx) for more than `concurrency` rows in succession.
    """
    check_judge(judge)
    key = _key(judge)
    prompts = [_render(judge, question or "", context, response) for question, context, response in rows]
    if not prompts:
        return []
    from openai import DefaultHttpxClient, OpenAI

    answers: dict[int, Answer] = {}
    streak, patience = 0, min(judge.concurrency + 1, max(len(prompts), 2))
    with (
        OpenAI(
            base_url=judge.base_url,
            api_key=key,
            timeout=judge.timeout_seconds,
            max_retries=judge.retries,
            http_client=DefaultHttpxClient(trust_env=False, follow_redirects=False),
        ) as client,
        ThreadPoolExecutor(judge.concurrency) as pool,
    ):
        request = _request(judge)
        futures = {pool.submit(_ask_one, client, judge, request, prompt): i for i, prompt in enumerate(prompts)}
        try:
            for future in as_completed(futures):
                try:
                    answers[futures[future]] = future.result()
                    streak = 0
                except _TroubleError as trouble:
                    streak += 1
                    if streak >= patience:
                        raise ModelError(
                            f"judge {judge.name!r}: {judge.base_url} gave {trouble} for {streak} rows in succession, "
                            f"{judge.retries + 1} tries each: look at the server and its quota, lower concurrency, or raise "
                            "timeout_seconds or retries"
                        ) from None
                    answers[futures[future]] = Answer(None, f"judge {judge.name!r}: the server gave {trouble}", 0)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)  # what is not sent yet is not sent
            raise
    return [answers[i] for i in range(len(prompts))]


def _key(judge: Judge) -> str:
    if judge.api_key_env is None:
        return "none"
    key = os.environ.get(judge.api_key_env, "").strip()
    if not key:
        raise ModelError(
            f"judge {judge.name!r}: environment variable {judge.api_key_env} is not set: put the key for {judge.base_url} there"
        )
    return key


def _render(judge: Judge, question: str, context: Sequence[str], response: str) -> str:
    return render(f"judge {judge.name!r}", judge.prompt, context, {"question": question, "response": response})


def _request(judge: Judge) -> dict[str, Any]:
    """What all requests share."""
    request: dict[str, Any] = {"model": judge.model, "max_tokens": 1, "temperature": 0}
    if judge.top_logprobs:
        request.update(logprobs=True, top_logprobs=judge.top_logprobs)
    return request


def _ask_one(client: "OpenAI", judge: Judge, request: dict[str, Any], prompt: str) -> Answer:
    """One row. `request` is shared: the first row that learns of another name for max_tokens tells the others."""
    from openai import APIConnectionError, APIStatusError, APITimeoutError, OpenAIError

    where = f"judge {judge.name!r}: {judge.base_url}"
    sent = dict(request)
    try:
        completion = client.chat.completions.create(messages=[{"role": "user", "content": prompt}], **sent)
    except APIStatusError as error:
        if "max_tokens" in sent and error.param == "max_tokens" and error.code == "unsupported_parameter":
            request["max_completion_tokens"] = 1  # before the other goes: a copy in between must not lack both
            request.pop("max_tokens", None)
            return _ask_one(client, judge, request, prompt)
        return _refusal(judge, error)
    except APIConnectionError as error:
        if isinstance(error, APITimeoutError) and type(error.__cause__).__name__ != "ConnectTimeout":
            raise _TroubleError(f"no answer within {judge.timeout_seconds:g} seconds") from None
        raise ModelError(
            f"{where} can't be reached ({type(error.__cause__).__name__}): start the server, or correct base_url "
            "(proxies of the environment are not used)"
        ) from None
    except (OpenAIError, ValueError) as error:  # ValueError: what should be JSON is none
        raise ModelError(f"{where} does not speak the chat API ({type(error).__name__}): correct base_url") from None
    return _read(judge, completion)


def _refusal(judge: Judge, error: "APIStatusError") -> Answer:
    """What an HTTP error means: for the row, or for all of them."""
    where, status = f"judge {judge.name!r}: {judge.base_url}", error.status_code
    if status in ROW_FAULTS:
        said = error.body.get("message") if isinstance(error.body, dict) else error.message
        reason = " ".join(str(said).split())[:300]
        if error.param in REQUEST_SETTINGS:
            raise ModelError(f"{where} does not take `{error.param}` (HTTP {status}): {reason}") from None
        return Answer(None, f"judge {judge.name!r}: the server refuses the row (HTTP {status}): {reason}", 0)
    if status in {408, 409, 429} or status >= 500:
        raise _TroubleError(f"HTTP {status}{f' ({error.code[:40]})' if error.code else ''}") from None
    if status in {401, 403}:
        place = f"in environment variable {judge.api_key_env}" if judge.api_key_env else "that api_key_env: names"
        raise ModelError(f"{where} refuses the key (HTTP {status}): it wants a valid one {place}") from None
    if status == 404:
        raise ModelError(
            f"{where} has no model {judge.model!r}, or no chat API at this address (HTTP 404): "
            f"{judge.base_url}/models lists its models; base_url usually ends in /v1"
        ) from None
    raise ModelError(f"{where} refuses requests (HTTP {status}): correct base_url, or look at the server") from None


def _read(judge: Judge, completion: Any) -> Answer:
    """P(supported) from a completion."""
    if not hasattr(completion, "choices"):  # the client hands on what is no JSON as it came
        raise ModelError(
            f"judge {judge.name!r}: {judge.base_url} does not speak the chat API: correct base_url, it usually ends in /v1"
        )
    tokens = (completion.usage.total_tokens if completion.usage else 0) or 0
    choice = completion.choices[0] if completion.choices else None
    word = (choice.message.content or "") if choice and choice.message else ""
    first = choice.logprobs.content[0] if choice and choice.logprobs and choice.logprobs.content else None
    if judge.top_logprobs and word and first is None:
        raise ModelError(
            f"judge {judge.name!r}: {judge.base_url} gives no logprobs: set top_logprobs: 0, and the word itself decides"
        )
    if judge.top_logprobs and first is not None:
        value, error = _by_chances(judge, first)
    elif word:
        value, error = _by_word(judge, word)
    else:
        reason = f"finish_reason {choice.finish_reason}" if choice else "no choices"
        value, error = None, f"the server gave no token ({reason})"
    return Answer(value, error and f"judge {judge.name!r}: {error}", tokens)


def _by_chances(judge: Judge, first: Any) -> tuple[float | None, str | None]:
    """Value or error from the first token's alternatives."""
    chances = [(a.token, a.logprob) for a in first.top_logprobs or ()]
    if first.token not in [token for token, _ in chances]:  # some servers list only what was not picked
        chances.append((first.token, first.logprob))
    yes = [logprob for token, logprob in chances if token.strip() in judge.supported]
    no = [logprob for token, logprob in chances if token.strip() in judge.unsupported]
    if not yes and not no:
        return None, (
            f"none of the {len(chances)} likeliest first tokens is a supported or unsupported word; "
            f"the likeliest is {first.token[:40]!r}"
        )
    if any(logprob is None or math.isnan(logprob) for logprob in [*yes, *no]):
        return None, "the server's log-probability is no number"
    return min(1.0, math.fsum(map(math.exp, yes))), None


def _by_word(judge: Judge, word: str) -> tuple[float | None, str | None]:
    """Value or error from the word alone."""
    if word.strip() in judge.supported:
        return 1.0, None
    if word.strip() in judge.unsupported:
        return 0.0, None
    return None, f"the answer {word[:40]!r} is neither a supported nor an unsupported word"
