"""A served model as a judge: prompts as text in, P(yes) and P(no) of one token out.

A server gives the probabilities of its likeliest tokens only, so P(yes) is the sum over the alternatives that came back; what
lies below them (less than the last of them, each) is missing from it.
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
    """Who asks a server what.

    Attributes:
        supported: Words by which the model says "supported"; spaces around a token don't count.
        unsupported: Words by which it says "not supported".
        is_member: Whether its log-probabilities are wanted, so that a word alone won't do.
    """

    supported: tuple[str, ...] = ()
    unsupported: tuple[str, ...] = ()
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


def ask(asker: Asker, prompts: Sequence[str]) -> list[Answer]:
    """Ask a server for P(yes) of prompts; see `engines.server.exchange`.

    Args:
        asker: Who asks, and which server.
        prompts: User messages.

    Returns:
        One answer a prompt, in order.

    Raises:
        ModelError: The server can't be used.
    """
    top = asker.server.top_logprobs
    form = Form(
        settings={"max_tokens": 1, **({"logprobs": True, "top_logprobs": top} if top else {})},
        read=partial(_read, asker),
        refused=partial(_without, asker),
        in_trouble=lambda gave: replace(_without(asker, f"the server gave {gave}"), trouble=True),
    )
    chats = [[{"role": "user", "content": prompt}] for prompt in prompts]
    return exchange(asker, chats, form, done=lambda _, answer: answered(1, answer.tokens))


def _read(asker: Asker, completion: Any) -> Answer:
    """P(supported) from a completion."""
    tokens = (completion.usage.total_tokens if completion.usage else 0) or 0
    choice = completion.choices[0] if completion.choices else None
    word = (choice.message.content or "") if choice and choice.message else ""
    first = choice.logprobs.content[0] if choice and choice.logprobs and choice.logprobs.content else None
    if asker.server.top_logprobs and word and first is None:
        way = (
            "take it as evaluation.reference, with top_logprobs: 0"
            if asker.is_member
            else "set top_logprobs: 0, and the word itself decides"
        )
        raise ModelError(errors.NO_LOGPROBS, where=asker.where, advice=way)
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
        return _without(asker, f"{reason}{SAID}{first.token[:40]!r}", tokens)
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
    return _without(asker, f"the answer is neither a supported nor an unsupported word{SAID}{word[:40]!r}", tokens)


def _without(asker: Asker, error: str, tokens: int = 0) -> Answer:
    return Answer(None, None, -math.inf, without_secrets(f"{asker.who}: {error}"), tokens)
