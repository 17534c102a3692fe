"""Check and encode prompts that a text follows as the model's answer: a response, or a question."""

from typing import Any

from ragassay.pipeline.engines.plain_text import PlainTextEncoder
from ragassay.pipeline.slm.prompt import PromptEncoder, apply_chat_template
from ragassay.pipeline.slm.template import check_prompt_template, make_placeholder, render_placeholders
from ragassay.pipeline.uncertainty.config import UncertaintyModelConfig


def check_answer_prompt(model: UncertaintyModelConfig) -> None:
    """Check that a model's prompt renders, contains all passages, and does not contain the text that follows it.

    Raises:
        ConfigError: The prompt is wrong.
    """
    check_prompt_template(
        f"{model.display_name}, with its {model.TEXT_VARIABLE} at the end",
        model.prompt + "{{ " + model.TEXT_VARIABLE + " }}",
        model.TEXT_VARIABLE,
    )


def make_answer_encoder(model: UncertaintyModelConfig, tokenizer: Any) -> PromptEncoder:
    """Make the encoder of a model's prompts from (question, context, text).

    Args:
        model: Settings with the prompt. If the text is the question, the prompt has no other question.
        tokenizer: A Hugging Face tokenizer.

    Raises:
        ConfigError: The prompt is wrong.
        ModelError: The tokenizer can't be used.
    """
    check_answer_prompt(model)

    def render(passages: int) -> str:
        user = render_placeholders(model.display_name, model.prompt, model.TEXT_VARIABLE, passages)
        prompt = apply_chat_template(user, tokenizer, model.name, model.system) if model.chat else user
        return prompt + make_placeholder(model.TEXT_VARIABLE)

    return PromptEncoder(tokenizer, PlainTextEncoder(tokenizer), render, model.TEXT_VARIABLE, chat=model.chat)


def needs_question(model: UncertaintyModelConfig) -> bool:
    """Return whether a model's prompt contains the row's question."""
    return make_placeholder("question") in render_placeholders(model.display_name, model.prompt, model.TEXT_VARIABLE, 1)
