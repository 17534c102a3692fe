"""A served model as a judge: prompts as text in, P(yes) and P(no) of one token out.

A server returns the probabilities of its likeliest tokens only, so P(yes) is the sum over the listed alternatives; it lacks
unlisted tokens, each of which is less likely than the last listed one.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ragassay.pipeline.address import without_secrets
from ragassay.pipeline.engines import errors
from ragassay.pipeline.engines.server import SAID, Caller, Form, exchange
from ragassay.pipeline.errors import ModelError
from ragassay.pipeline.listener import answered


@dataclass(frozen=True)
class Asker(Caller):
    """A model at a server that answers with label words.

    Attributes:
        supported: Words that mean "supported"; spaces around a token are ignored.
        unsupported: Words that mean "not supported".
        needs_logprobs: Whether logprobs are required; the word alone is not enough for a member.
    """

    supported: tuple[str, ...] = ()
    unsupported: tuple[str, ...] = ()
    is_member: bool = False


@dataclass(frozen=True)
class Answer:
    """A model's answer to one prompt.

    Attributes:
        log_p_yes: Log of the summed probabilities of supported words, -inf if none is listed; None without an answer.
        log_p_no: Log of the summed probabilities of unsupported words, -inf if none is listed; None without an answer.
        max_unlisted: Maximum logprob of an unlisted token: at most that of the least likely listed token, and at most the log
            of the probability that the listed tokens leave.
        error: Why there is no answer.
        tokens: Tokens counted by the server, prompt and answer.
        is_server_failure: Whether a server failure, which may be transient, prevented the answer.
    """

    log_p_yes: float | None
    log_p_no: float | None
    unlisted: float
    error: str | None
    tokens: int
    trouble: bool = False


def ask(asker: Asker, prompts: Sequence[str]) -> list[Answer]:
    """Request the labels' logprobs for prompts from a server; see `engines.server.send_chats`.

    Args:
        endpoint: Model and server.
        prompts: User messages.

    Returns:
        One answer per prompt, in order.

    Raises:
        ModelError: The server can't be used.
    """
    top_logprobs = asker.server.top_logprobs
    task = Form(
        settings={"max_tokens": 1, **({"logprobs": True, "top_logprobs": top_logprobs} if top_logprobs else {})},
        read=partial(_read, asker),
        refused=partial(_without, asker),
        in_trouble=lambda failure: replace(_without(asker, f"server failure: {failure}"), trouble=True),
    )
    chats = [[{"role": "user", "content": prompt}] for prompt in prompts]
    return exchange(asker, chats, task, done=lambda _, answer: answered(1, answer.tokens))


def _read(endpoint: Asker, completion: Any) -> Answer:
    """Return P(supported) from a completion."""
    tokens = (completion.usage.total_tokens if completion.usage else 0) or 0
    choice = completion.choices[0] if completion.choices else None
    word = (choice.message.content or "") if choice and choice.message else ""
    first = choice.logprobs.content[0] if choice and choice.logprobs and choice.logprobs.content else None
    if endpoint.server.top_logprobs and word and first is None:
        advice = (
            "use the model as evaluation.reference, with top_logprobs: 0"
            if endpoint.is_member
            else "set top_logprobs: 0, so that the word itself decides"
        )
        raise ModelError(errors.NO_LOGPROBS, where=endpoint.where, advice=advice)
    if endpoint.server.top_logprobs and first is not None:
        return _by_chances(endpoint, first, tokens)
    if word:
        return _by_word(endpoint, word, tokens)
    reason = f"finish_reason {choice.finish_reason}" if choice else "no choices"
    return _without(endpoint, f"the server returned no token ({reason})", tokens)


def _by_chances(endpoint: Asker, first: Any, tokens: int) -> Answer:
    """Read the answer from the first token's alternatives."""
    alternatives = [(alternative.token, alternative.logprob) for alternative in first.top_logprobs or ()]
    if first.token not in [token for token, _ in alternatives]:  # some servers list only the tokens that were not chosen
        alternatives.append((first.token, first.logprob))
    yes = [logprob for token, logprob in alternatives if token.strip() in endpoint.supported]
    no = [logprob for token, logprob in alternatives if token.strip() in endpoint.unsupported]
    if not yes and not no:
        reason = f"none of the {len(alternatives)} likeliest first tokens is a supported or unsupported word"
        return _without(endpoint, f"{reason}{SAID}{first.token[:40]!r}", tokens)
    if any(logprob is None or math.isnan(logprob) for logprob in [*yes, *no]):
        return _without(endpoint, "the server's logprob is not a number", tokens)
    listed = [logprob for _, logprob in alternatives if logprob is not None and not math.isnan(logprob)]
    remaining = 1 - math.fsum(map(math.exp, listed))
    unlisted = min(*listed, math.log(remaining) if remaining > 0 else -math.inf)
    return Answer(_log_sum(yes), _log_sum(no), unlisted, None, tokens)


def _log_sum(logprobs: Sequence[float]) -> float:
    total = math.fsum(map(math.exp, logprobs))
    return math.log(min(1.0, total)) if total else -math.inf


def _by_word(endpoint: Asker, word: str, tokens: int) -> Answer:
    """Read the answer from the word alone."""
    if word.strip() in endpoint.supported:
        return Answer(0.0, -math.inf, -math.inf, None, tokens)
    if word.strip() in endpoint.unsupported:
        return Answer(-math.inf, 0.0, -math.inf, None, tokens)
    return _without(endpoint, f"the answer is neither a supported nor an unsupported word{SAID}{word[:40]!r}", tokens)


def _without(endpoint: Asker, error: str, tokens: int = 0) -> Answer:
    return Answer(None, None, -math.inf, without_secrets(f"{endpoint.who}: {error}"), tokens)
