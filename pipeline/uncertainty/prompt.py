"""Prompts behind which a text stands as the model's own answer: a response, or a question."""

from typing import Any

from ragassay.pipeline.engines.plain_text import PlainTextEncoder
from ragassay.pipeline.slm.prompt import PromptEncoder, apply_chat_template
from ragassay.pipeline.slm.template import check_prompt, make_placeholder, render_placeholders
from ragassay.pipeline.uncertainty.config import ReadingModel


def check_answer_prompt(model: ReadingModel) -> None:
    """Check that a model's prompt renders and holds all passages, and not the text that stands behind it.

    Raises:
        ConfigError: It does not.
    """
    check_prompt(f"{model.who}, with its {model.TEXT} behind it", model.prompt + "{{ " + model.TEXT + " }}", model.TEXT)


def answer_encoder(model: ReadingModel, tokenizer: Any) -> PromptEncoder:
    """What makes a model's prompts of (question, context, text); of no question where the text is the question.

    Args:
        model: Says prompt and chat.
        tokenizer: A Hugging Face tokenizer.

    Raises:
        ConfigError: The prompt is wrong.
        ModelError: The tokenizer can't be used.
    """
    check_answer_prompt(model)

    def rendered(passages: int) -> str:
        user = render_placeholders(model.who, model.prompt, model.TEXT, passages)
        before = apply_chat_template(user, tokenizer, model.name, model.system) if model.chat else user
        return before + make_placeholder(model.TEXT)

    return PromptEncoder(tokenizer, PlainTextEncoder(tokenizer), rendered, model.TEXT, chat=model.chat)


def uses_question(model: ReadingModel) -> bool:
    """Whether a model's prompt uses the row's question."""
    return make_placeholder("question") in render_placeholders(model.who, model.prompt, model.TEXT, 1)
