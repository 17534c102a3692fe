"""Prompt templates: sandboxed Jinja, rendered with placeholders so that a check can see what a template does to log text."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache

from jinja2 import StrictUndefined, Template
from jinja2.sandbox import ImmutableSandboxedEnvironment

from ragassay.pipeline.engines.template_limits import TemplateLimitError, check_length, limited_steps, try_prompt
from ragassay.pipeline.errors import ConfigError
from ragassay.pipeline.slm import errors

_OPEN, _CLOSE = "\ue000", "\ue001"  # private-use characters around a placeholder's name
_PLACEHOLDER = re.compile(f"{_OPEN}([a-z]+[0-9]*){_CLOSE}")
_JINJA = ImmutableSandboxedEnvironment(trim_blocks=True, keep_trailing_newline=True, undefined=StrictUndefined)


def render(who: str, prompt: str, context: Sequence[str], texts: Mapping[str, str]) -> str:
    """Render a prompt.

    Args:
        who: Whose it is, for the message: such as `SLM 'a'`.
        prompt: Jinja template.
        context: Passages.
        texts: Its other variables.

    Raises:
        ConfigError: The template is wrong, or takes too long.
    """
    try:
        with limited_steps():
            text = _compiled(prompt).render(context=list(context), **texts)
        check_length(text, [*context, *texts.values()])
        return text
    except Exception as error:  # whatever a template's expressions raise
        raise ConfigError(errors.UNUSABLE, member=who, reason=error) from error


def placeholder(name: str) -> str:
    """What stands for a text in a prompt that is rendered without it."""
    return f"{_OPEN}{name}{_CLOSE}"


def render_placeholders(who: str, prompt: str, judged: str, passages: int, others: Sequence[str] = ()) -> str:
    """A prompt with placeholders for question, passages (`passage0` …), the judged text and other variables."""
    texts = {name: placeholder(name) for name in ("question", judged, *others)}
    return render(who, prompt, [placeholder(f"passage{i}") for i in range(passages)], texts)


def fill(text: str, texts: Mapping[str, str]) -> str:
    """Put texts in the place of their placeholders."""
    return _PLACEHOLDER.sub(lambda match: texts[match[1]], text)


def check_prompt(who: str, prompt: str, judged: str, before: str | None = None) -> None:
    """Check that a prompt renders, holds the judged text once, and all passages and the question whole.

    Args:
        who: Whose it is, for the message.
        prompt: Jinja template.
        judged: Variable of what is judged: sentence or response.
        before: A variable that may stand once before it.

    Raises:
        ConfigError: It does not.
    """
    others = [before] if before else []
    try:
        try_prompt(prompt, {"context": ["a", "b"], **dict.fromkeys(["question", judged, *others], "text")})
    except TemplateLimitError as error:
        raise ConfigError(errors.UNUSABLE, member=who, reason=error) from error
    text = render_placeholders(who, prompt, judged, 2, others)
    found = _PLACEHOLDER.findall(text)
    names = Counter(found)
    if names[judged] != 1:
        raise ConfigError(errors.JUDGED_ONCE, member=who, judged=judged, times=names[judged])
    if not (names["passage0"] and names["passage1"]):
        raise ConfigError(errors.NO_CONTEXT, member=who)
    if before and names[before] and (names[before] > 1 or found.index(before) > found.index(judged)):
        raise ConfigError(errors.ORDER, member=who, before=before, judged=judged)
    rest = _PLACEHOLDER.sub("", text)
    if _OPEN in rest or _CLOSE in rest or not names.keys() <= {judged, "question", "passage0", "passage1", *others}:
        raise ConfigError(errors.FILTERED, member=who, judged=judged)


@lru_cache(maxsize=16)
def _compiled(prompt: str) -> Template:
    return _JINJA.from_string(prompt)
