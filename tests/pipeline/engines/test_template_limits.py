"""Templates with endless loops or unbounded output are errors; other templates render the same bytes as without limits."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from jinja2.sandbox import ImmutableSandboxedEnvironment
from transformers.utils.chat_template_utils import render_jinja_template

from ragassay.pipeline.engines import template_limits
from ragassay.pipeline.engines.plain_text import PlainTextEncoder
from ragassay.pipeline.engines.template_limits import TemplateLimitError, limit_steps, render_chat
from ragassay.pipeline.engines.vllm_text import encode_chat
from ragassay.pipeline.slm.config import Slm
from ragassay.pipeline.slm.prompt import apply_chat_template, check_slm_prompt
from tests.raises import raises

LOOPS = {
    "range": "{% for i in range(10**9) %}{% endfor %}",  # the sandbox itself raises
    "nested": "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
    "macros": "{% macro f(n) %}{{ f(n - 1) ~ f(n - 1) if n }}{% endmacro %}{{ f(60) }}",
    "recursion": "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
}
GROWTH = {
    "times": "{{ 'a' * 10**10 }}",
    "center": "{{ 'a' | center(10**10) }}",
    "format": "{{ '%9999999999d' % 1 }}",
    "method": "{{ 'a'.ljust(10**10) }}",
    "list": "{{ [1] * 10**10 }}",
    "power": "{{ 10**(10**10) }}",
    "doubling": "{% set n = namespace(x='ab') %}{% for i in range(60) %}{% set n.x = n.x ~ n.x %}{% endfor %}{{ n.x }}",
    "output": "{% for i in range(99999) %}" + "a" * 200 + "{% endfor %}",
}
VALID_PROMPT = "{{ question }} {{ context | join }} {{ sentence }}"


@pytest.fixture(autouse=True)
def short_limits(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(template_limits, "TRIAL_SECONDS", 1)
    monkeypatch.setenv("RAGASSAY_HOME", str(tmp_path))
    template_limits._run_trial_once.cache_clear()


def make_tokenizer(template: str, rendered: list[str]) -> Any:
    """Return a tokenizer with a chat template; it records renderings in this process, after the trial."""

    def apply(chat: Any, **options: Any) -> str:
        rendered.append(template)
        [text], _ = render_jinja_template([chat], chat_template=template, add_generation_prompt=True, bos_token="<s>")
        return str(text)

    return SimpleNamespace(
        chat_template=template,
        get_chat_template=lambda: template,
        special_tokens_map={"bos_token": "<s>"},
        apply_chat_template=apply,
    )


@pytest.mark.parametrize("hostile_template", [*LOOPS.values(), *GROWTH.values()], ids=[*LOOPS, *GROWTH])
def test_attack_a_prompt_that_loops_or_grows_is_refused(hostile_template: str) -> None:
    with raises("prompt.unusable", member="SLM 'm'"):
        check_slm_prompt(Slm(name="m", prompt=hostile_template + VALID_PROMPT))


@pytest.mark.parametrize("hostile_template", ["nested", "times", "output"])
def test_attack_a_chat_template_that_loops_or_grows_is_refused(hostile_template: str) -> None:
    rendered: list[str] = []
    tokenizer = make_tokenizer({**LOOPS, **GROWTH}[hostile_template] + "{{ messages[0].content }}", rendered)
    with raises("model.chat-template-fails") as error:
        apply_chat_template("x", tokenizer, "m", None)
    assert isinstance(error.value.__cause__, TemplateLimitError) and rendered == []
    with raises("model.template-fails"):
        encode_chat("model 'm'", tokenizer, PlainTextEncoder.__new__(PlainTextEncoder), [{"role": "user", "content": "x"}])


def test_attack_a_chat_template_that_loops_only_for_some_texts_is_refused() -> None:
    rendered: list[str] = []
    template = "{% if 'passage7' in messages[0].content %}" + LOOPS["nested"] + "{% endif %}{{ messages[0].content }}"
    tokenizer = make_tokenizer(template, rendered)
    assert render_chat(tokenizer, [{"role": "user", "content": "passage6"}]) == "passage6"
    with pytest.raises(TemplateLimitError, match="steps"):
        render_chat(tokenizer, [{"role": "user", "content": "passage7"}])
    assert len(rendered) == 2


def test_a_chat_template_is_tried_once_and_renders_the_same_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    template = (
        "{%- macro turn(m) %}{{ '<|' ~ m.role ~ '|>\\n' ~ (m.content | trim) }}{% endmacro %}\n{{ bos_token }}"
        "{% for m in messages %}{% if loop.index0 > 9 %}{% break %}{% endif %}\n  {{ turn(m) }}\n{% endfor %}\n"
        "{% generation %}{{ {'a': 'é'} | tojson }}{% endgeneration %}{% if add_generation_prompt %}<|assistant|>{% endif %}\n"
    )
    chat = [{"role": "system", "content": " Be brief. \n"}, {"role": "user", "content": "\ue000passage0\ue001" * 3}]
    [[expected], _] = render_jinja_template([chat], chat_template=template, add_generation_prompt=True, bos_token="<s>")
    assert render_chat(make_tokenizer(template, []), chat) == expected
    template_limits._run_trial_once.cache_clear()
    monkeypatch.setattr(template_limits, "_run_trial", lambda trial: pytest.fail("the template is tried again"))
    assert render_chat(make_tokenizer(template, []), chat) == expected


def test_only_steps_of_templates_are_counted() -> None:
    template = ImmutableSandboxedEnvironment().from_string("{% for i in range(n) %}{{ i }}{% endfor %}")
    with limit_steps(1000):
        assert sum(i for i in range(100_000)) and len(template.render(n=100)) == 190
    with pytest.raises(TemplateLimitError), limit_steps(1000):
        template.render(n=1000)
    with limit_steps(1000):  # each block starts a new count
        assert len(template.render(n=100)) == 190
