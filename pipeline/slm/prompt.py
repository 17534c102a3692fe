"""Prompts as token ids: the template's own control tokens, and log text that can never become one.

The user message is a template (`pipeline.slm.template`); the model's chat template is put around it. Both are rendered with
placeholders, never with log text. The result is cut at control tokens, the log text is put in, and each piece is encoded as
plain text (`pipeline.engines.plain_text`).
"""

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from ragassay.pipeline.engines.plain_text import Ids, PlainText, Segment
from ragassay.pipeline.engines.template_limits import render_chat
from ragassay.pipeline.errors import ModelError
from ragassay.pipeline.slm import errors
from ragassay.pipeline.slm.config import Slm
from ragassay.pipeline.slm.template import check_prompt, fill, placeholder, render_placeholders

PADDING = "padding"
"""Variable of a prompt: line breaks, as many as make what stands before the sentence end with a block of the prefix cache."""

PADDED_TO = 32
"""Tokens of which the padded part is a multiple: of the engines' own block sizes, so that a prompt is the same everywhere."""

_PADDING = placeholder(PADDING)
_PAD = -1  # stands for the padding among segments and ids


class _Template(NamedTuple):
    """A rendered prompt around the sentence; `gap` are the spaces before it, which are encoded with it."""

    head: list[Segment]
    left: str
    gap: str
    right: str
    tail: list[Segment]


class Encoded(NamedTuple):
    """Prompts of one row as token ids: `head` is shared by all of its sentences, `tails` are the rest from each sentence on."""

    head: Ids
    tails: list[Ids]

    def prompts(self) -> list[tuple[int, ...]]:
        """Each prompt whole."""
        return [(*self.head, *tail) for tail in self.tails]


class PromptEncoder:
    """Turns a template's texts into token ids: (question, context, text behind them).

    The template comes rendered with placeholders, the chat put around it; see `pipeline.slm.template`.
    """

    def __init__(
        self,
        tokenizer: Any,
        text: PlainText,
        rendered: Callable[[int], str],
        judged: str,
        *,
        chat: bool,
        line_break: int | None = None,
    ) -> None:
        """Take a template.

        Args:
            tokenizer: A Hugging Face tokenizer.
            text: It as it encodes plain text.
            rendered: Gives the whole prompt for a number of passages.
            judged: Variable that stands for the text.
            chat: Whether a chat template was put around it, which then brings its own first token.
            line_break: Id of the line break, of which padding is made; None without padding.
        """
        self._text = text
        self._rendered = rendered
        self._mark = placeholder(judged)
        self._line_break = line_break
        bos = tokenizer.bos_token_id
        self._first = [bos] if not chat and bos is not None and tokenizer("x").input_ids[:1] == [bos] else []
        # Tokenizers that put a space before any text would see one more at the cut before the text.
        self._splittable = self._encode("Statement:") + self._encode(" It is") == self._encode("Statement: It is")
        self._template = lru_cache(maxsize=64)(self._compile)

    def encode(self, asked: Sequence[tuple[str, Sequence[str], Sequence[str]]]) -> list[Encoded]:
        """Tokens of many prompts, by one call of the tokenizer; what they share is encoded once.

        Args:
            asked: (question, context, texts to be judged) of each row.

        Returns:
            An entry a row.
        """
        cut = [self._cut_row(*row) for row in asked]
        pieces = {piece for head, judged, tail in cut for piece in (*head, *judged, *tail) if isinstance(piece, str)}
        ids = self._text.encode(list(pieces))

        def joined(segments: Iterable[Segment]) -> Ids:
            return [i for segment in segments for i in ((segment,) if isinstance(segment, int) else ids[segment])]

        found = []
        for head, judged, tail in cut:
            end = joined(tail)
            found.append(Encoded(self._pad(joined(head)), [[*ids[text], *end] for text in judged]))
        return found

    def _pad(self, head: Ids) -> Ids:
        """Put line breaks where the padding stands."""
        if self._line_break is None or _PAD not in head:
            return head
        at = head.index(_PAD)
        return [*head[:at], *[self._line_break] * (-(len(head) - 1) % PADDED_TO), *head[at + 1 :]]

    def count(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text, encoded alone."""
        ids = self._text.encode(texts)
        return [len(ids[text]) for text in texts]

    def token_ends(self, text: str) -> list[int]:
        """Character offset at which each token of a text ends, encoded alone."""
        return self._text.token_ends(text)

    def ends_behind(self, question: str, context: Sequence[str], text: str) -> list[int]:
        """Character offset in a text at which each token of it ends, in its prompt; at most 0 for what stands before it."""
        _, (judged,), _ = self._cut_row(question, context, [text])
        before = judged.rindex(text)
        return [end - before for end in self._text.token_ends(judged)]

    def _cut_row(
        self, question: str, context: Sequence[str], texts: Sequence[str]
    ) -> tuple[list[Segment], list[str], list[Segment]]:
        """A row's prompts in pieces: what is before each text, the texts with what can't be cut from them, what is behind."""
        template = self._template(len(context))
        fields = {"question": question, **{f"passage{i}": passage for i, passage in enumerate(context)}}

        def filled(segments: Sequence[Segment]) -> list[Segment]:
            return [fill(segment, fields) if isinstance(segment, str) else segment for segment in segments]

        head, left, right = filled(template.head), fill(template.left, fields), fill(template.right, fields)
        if self._splittable:
            head.append(left)
            left = ""
        return head, [left + template.gap + text + right for text in texts], filled(template.tail)

    def _compile(self, passages: int) -> "_Template":
        """Cut a rendered template at control tokens and at the text."""
        segments = [*self._first, *self._text.cut(self._rendered(passages), {_PADDING: _PAD})]
        at = next(i for i, s in enumerate(segments) if isinstance(s, str) and self._mark in s)
        segment = segments[at]
        assert isinstance(segment, str)
        left, right = segment.split(self._mark, 1)
        stripped = left.rstrip(" ")
        return _Template(segments[:at], stripped, left[len(stripped) :], right, segments[at + 1 :])

    def _encode(self, text: str) -> Ids:
        return self._text.encode([text])[text]


class PromptBuilder(PromptEncoder):
    """Turns (question, context, sentence) into token ids for one SLM.

    Attributes:
        yes: Token ids that mean "supported".
        no: Token ids that mean "not supported".
    """

    def __init__(self, slm: Slm, tokenizer: Any) -> None:
        """Compile the template and find the label tokens.

        Raises:
            ConfigError: The template is wrong, or has no sentence.
            ModelError: The tokenizer can't be used, or has no single-token yes or no, or none for the padding.
        """
        text = PlainText(tokenizer)
        self.yes = _label_tokens(slm, "supported", slm.supported, text)
        self.no = _label_tokens(slm, "unsupported", slm.unsupported, text)
        check_template(slm)
        line_break = _line_break(slm, text) if PADDING in slm.prompt else None

        def rendered(passages: int) -> str:
            user = _render_user(slm, passages)
            return chat_around(user, tokenizer, slm.name, slm.system) if slm.chat else user

        super().__init__(tokenizer, text, rendered, "sentence", chat=slm.chat, line_break=line_break)


def chat_around(user: str, tokenizer: Any, name: str, system: str | None) -> str:
    """A user message in the chat template of a model, up to where its answer begins.

    Args:
        user: The message.
        tokenizer: A Hugging Face tokenizer.
        name: The SLM's name, for messages.
        system: System message; None leaves the chat template's own.

    Raises:
        ModelError: The chat template fails, or takes too long.
    """
    messages = [{"role": "user", "content": user}]
    if system is not None:
        messages.insert(0, {"role": "system", "content": system})
    try:
        return render_chat(tokenizer, messages)
    except Exception as error:  # whatever a template's expressions raise
        raise ModelError(errors.CHAT_TEMPLATE_FAILS, member=name, reason=error) from error


def check_template(slm: Slm) -> None:
    """Check that an SLM's prompt renders and has the sentence exactly once.

    Raises:
        ConfigError: It does not.
    """
    check_prompt(f"SLM {slm.name!r}", slm.prompt, "sentence", PADDING)


def needs_question(slm: Slm) -> bool:
    """Whether an SLM's prompt uses the question."""
    return placeholder("question") in _render_user(slm, 1)


def _render_user(slm: Slm, passages: int) -> str:
    return render_placeholders(f"SLM {slm.name!r}", slm.prompt, "sentence", passages, [PADDING])


def _line_break(slm: Slm, text: PlainText) -> int:
    """Id of the line break as a token of its own."""
    alone = text.plain.encode("\n", add_special_tokens=False).ids
    known = len(alone) == 1 and alone[0] != text.unknown
    found: int | None = alone[0] if known else text.plain.token_to_id("<0x0A>")
    if found is None:
        raise ModelError(errors.NO_LINE_BREAK, member=slm.name, model=slm.model, padding=PADDING)
    return found


def _label_tokens(slm: Slm, which: str, words: Sequence[str], text: PlainText) -> Ids:
    """Ids of the single-token spellings of words, as they are and with a leading space; words that take more are left out."""
    plain = text.plain
    encoded = (plain.encode(lead + word, add_special_tokens=False).ids for word in words for lead in ("", " "))
    named = (plain.token_to_id(lead + word) for word in words if word.isascii() for lead in ("", "Ġ", "▁"))
    ids = {i[0] for i in encoded if len(i) == 1} | {i for i in named if i is not None}
    ids.discard(text.unknown)
    if not ids:
        raise ModelError(errors.NO_LABEL_TOKEN, member=slm.name, model=slm.model, words=list(words), which=which)
    return sorted(ids)
