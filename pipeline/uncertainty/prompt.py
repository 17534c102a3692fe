"""Prompts behind which a response stands as the model's own answer."""

from typing import Any

from ragassay.pipeline.engines.plain_text import PlainText
from ragassay.pipeline.slm.prompt import PromptEncoder, chat_around
from ragassay.pipeline.slm.template import check_prompt, placeholder, render_placeholders
from ragassay.pipeline.uncertainty.config import Uncertainty

_RESPONSE = "response"


def check_answer_prompt(member: Uncertainty) -> None:
    """Check that a member's prompt renders and holds all passages.

    Raises:
        ConfigError: It does not.
    """
    check_prompt(_who(member), member.prompt + "{{ response }}", _RESPONSE)


def answer_encoder(member: Uncertainty, tokenizer: Any) -> PromptEncoder:
    """What makes a member's prompts of (question, context, response).

    Args:
        member: Says prompt and chat.
        tokenizer: A Hugging Face tokenizer.

    Raises:
        ConfigError: The prompt is wrong.
        ModelError: The tokenizer can't be used.
    """
    check_answer_prompt(member)

    def rendered(passages: int) -> str:
        user = render_placeholders(_who(member), member.prompt, _RESPONSE, passages)
        before = chat_around(user, tokenizer, member.name, member.system) if member.chat else user
        return before + placeholder(_RESPONSE)

    return PromptEncoder(tokenizer, PlainText(tokenizer), rendered, _RESPONSE, chat=member.chat)


def _who(member: Uncertainty) -> str:
    return f"uncertainty {member.name!r}"
