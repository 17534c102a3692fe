"""Prompt templates: sandboxed Jinja, rendered with placeholders, so that a check can detect changes of log text by a
template."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache

from jinja2 import StrictUndefined, Template
from jinja2.sandbox import ImmutableSandboxedEnvironment

from ragassay.pipeline.engines.template_limits import TemplateLimitError, check_length, check_prompt_limits, limit_steps
from ragassay.pipeline.errors import ConfigError
from ragassay.pipeline.slm import errors

_OPEN, _CLOSE = "\ue000", "\ue001"  # private-use characters around a placeholder's name
_PLACEHOLDER = re.compile(f"{_OPEN}([a-z]+[0-9]*){_CLOSE}")
_JINJA = ImmutableSandboxedEnvironment(trim_blocks=True, keep_trailing_newline=True, undefined=StrictUndefined)


def render_template(owner: str, prompt: str, context: Sequence[str], texts: Mapping[str, str]) -> str:
    """Render a prompt.

    Args:
        owner: Owner of the prompt, for messages, such as `SLM 'a'`.
        prompt: Jinja template.
        context: Passages.
        texts: Its other variables.

    Raises:
        ConfigError: The template is wrong, or exceeds a limit.
    """
    try:
        with limit_steps():
            text = _compile(prompt).render(context=list(context), **texts)
        check_length(text, [*context, *texts.values()])
        return text
    except Exception as error:  # a template's expressions may raise anything
        raise ConfigError(errors.INVALID_TEMPLATE, member=owner, reason=error) from error


def make_placeholder(name: str) -> str:
    """Return the placeholder of a text in a prompt that is rendered without it."""
    return f"{_OPEN}{name}{_CLOSE}"


def render_placeholders(owner: str, prompt: str, judged: str, passages: int, variables: Sequence[str] = ()) -> str:
    """Render a prompt with placeholders for question, passages (`passage0` …), the text to judge and other variables."""
    texts = {name: make_placeholder(name) for name in ("question", judged, *variables)}
    return render_template(owner, prompt, [make_placeholder(f"passage{i}") for i in range(passages)], texts)


def fill_placeholders(text: str, texts: Mapping[str, str]) -> str:
    """Replace placeholders by texts."""
    return _PLACEHOLDER.sub(lambda match: texts[match[1]], text)


def check_prompt_template(owner: str, prompt: str, judged: str, optional: str | None = None) -> None:
    """Check that a prompt renders, contains the text to judge once, and all passages and the question whole.

    Args:
        owner: Owner of the prompt, for messages.
        prompt: Jinja template.
        judged: Variable of the text to judge: sentence or response.
        optional: Variable that may occur once before it.

    Raises:
        ConfigError: The prompt is wrong.
    """
    optional_variables = [optional] if optional else []
    try:
        check_prompt_limits(prompt, {"context": ["a", "b"], **dict.fromkeys(["question", judged, *optional_variables], "text")})
    except TemplateLimitError as error:
        raise ConfigError(errors.INVALID_TEMPLATE, member=owner, reason=error) from error
    text = render_placeholders(owner, prompt, judged, 2, optional_variables)
    occurrences = _PLACEHOLDER.findall(text)
    counts = Counter(occurrences)
    if counts[judged] != 1:
        raise ConfigError(errors.JUDGED_ONCE, member=owner, judged=judged, count=counts[judged])
    if not (counts["passage0"] and counts["passage1"]):
        raise ConfigError(errors.NO_CONTEXT, member=owner)
    if optional and counts[optional] and (counts[optional] > 1 or occurrences.index(optional) > occurrences.index(judged)):
        raise ConfigError(errors.MISPLACED_PADDING, member=owner, optional=optional, judged=judged)
    remainder = _PLACEHOLDER.sub("", text)
    if (
        _OPEN in remainder
        or _CLOSE in remainder
        or not counts.keys() <= {judged, "question", "passage0", "passage1", *optional_variables}
    ):
        raise ConfigError(errors.FILTERED, member=owner, judged=judged)


@lru_cache(maxsize=16)
def _compile(prompt: str) -> Template:
    return _JINJA.from_string(prompt)
