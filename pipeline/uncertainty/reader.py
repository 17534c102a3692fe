"""A causal language model that reads texts behind prompts: what it tells of every token; shared beginnings are read once."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ragassay.pipeline.arrays import Floats, Ints
from ragassay.pipeline.engines import errors as engine_errors
from ragassay.pipeline.engines.causal_lm import load_causal_lm
from ragassay.pipeline.engines.model import Model
from ragassay.pipeline.engines.plain_text import TokenIds
from ragassay.pipeline.engines.prepare import load_tokenizer, prepare_model, resolve_window
from ragassay.pipeline.engines.transformers_engine import TransformersSettings, group_by_length
from ragassay.pipeline.errors import ModelError
from ragassay.pipeline.listener import report_answered
from ragassay.pipeline.token_tree.attention import NAME, blocks_of, register
from ragassay.pipeline.token_tree.tree import Tree, grow
from ragassay.pipeline.uncertainty import errors
from ragassay.pipeline.uncertainty.attention import Watch
from ragassay.pipeline.uncertainty.signs import Signs

TOKENS_A_PASS = 4096
"""Tokens of a tree, unless one prompt alone has more."""

TEXT_TOKENS_A_PASS = 1024
"""Tokens of texts of a tree, each of which needs the logits of the whole vocabulary."""

LOGITS_AT_ONCE = 128
"""Tokens whose distributions are looked at together, in float32."""

_DRAWING = ("temperature", "top_p", "top_k")

Prompt = tuple[TokenIds, TokenIds]
"""Token ids of what stands before a text, at least one, and of the text."""


@dataclass(frozen=True)
class Read:
    """What was read of one text.

    Attributes:
        signs: What the model tells of its tokens.
        computed: Tokens of the prompt that were run through the model,
        reused: and those that an earlier prompt of the same tree had.
        seconds: Its part of the time.
    """

    signs: Signs
    computed: int
    reused: int
    seconds: float


class Reader:
    """A loaded model.

    Attributes:
        tokenizer: Its Hugging Face tokenizer.
        max_model_len: Tokens that prompt and text may have together.
    """

    def __init__(self, model: Model, settings: TransformersSettings, *, gpus: float, threads: int) -> None:
        """Load it.

        Raises:
            ModelError: The model can't be found or loaded.
        """
        import torch

        torch.set_num_threads(threads)
        register()
        self._name = model.name
        self.tokenizer = load_tokenizer(model)
        self._model = load_causal_lm(model, prepare_model(model), settings.dtype, gpus, NAME)
        self.max_model_len = resolve_window(model, settings.max_model_len)
        self._layers = self._model.config.get_text_config().num_hidden_layers
        self._try()

    def _try(self) -> None:
        """Read two tokens: what a model can't do must end the run, and not look like the fault of every row."""
        try:
            self.read([([1], [2])])
        except ModelError:
            raise
        except Exception as error:
            raise ModelError(
                errors.NO_TOKEN_READING,
                model=self._name,
                type=type(self._model).__name__,
                error_type=type(error).__name__,
                reason=error,
            ) from error

    def read(self, prompts: Sequence[Prompt], *, states: bool = False) -> list[Read]:
        """Read texts.

        Args:
            prompts: The texts, each with what stands before it.
            states: Whether the middle layer's states are wanted.

        Returns:
            An entry a text, in the order given.

        Raises:
            ModelError: The model gave NaN, or has an attention that can't be looked at.
        """
        found: dict[int, Read] = {}
        for pack in packs(prompts):
            started = time.perf_counter()
            tree = grow([head + text for head, text in (prompts[i] for i in pack)])
            sees = tree.sees()
            paths = [np.flatnonzero(sees[end]) for end in tree.ends]
            signs = self._signs(tree, paths, [len(prompts[i][1]) for i in pack], states)
            sizes = _own_tokens(paths, len(tree.tokens))
            seconds = (time.perf_counter() - started) / max(1, len(tree.tokens))
            for k, i in enumerate(pack):
                size = len(prompts[i][0]) + len(prompts[i][1])
                found[i] = Read(signs[k], sizes[k], size - sizes[k], seconds * sizes[k])
            report_answered(len(pack), len(tree.tokens))
        return [found[i] for i in range(len(prompts))]

    def _signs(self, tree: Tree, paths: Sequence[Ints], lengths: Sequence[int], states: bool) -> list[Signs]:
        """What the model tells of the texts at the ends of a tree's prompts, whose tokens stand at `paths`."""
        import torch

        device = self._model.device
        # Each text's tokens, and the places whose next token they are.
        texts = [path[len(path) - n :] for path, n in zip(paths, lengths, strict=True)]
        before = np.concatenate([path[len(path) - n - 1 : len(path) - 1] for path, n in zip(paths, lengths, strict=True)])
        blocks = blocks_of(tree, device)
        watch = Watch(blocks, texts, device)
        with torch.inference_mode(), _middle_states(self._model, tree.ends if states else None) as middle:
            logits = self._model(
                input_ids=torch.from_numpy(tree.tokens).to(device)[None],
                position_ids=torch.from_numpy(tree.positions).to(device)[None],
                use_cache=False,
                logits_to_keep=torch.from_numpy(before).to(device),
                blocks=blocks,
                look=watch.look,
            ).logits[0]
            tokens = torch.from_numpy(tree.tokens[np.concatenate(texts)]).to(device)
            told = np.concatenate([*_told(logits, tokens), np.empty((5, 0))], axis=1)
        if watch.layers != self._layers:
            raise ModelError(
                errors.PARTIAL_ATTENTION,
                model=self._name,
                shown=watch.layers,
                layers=self._layers,
                type=type(self._model).__name__,
            )
        if not np.isfinite(told).all():
            raise ModelError(engine_errors.GIVES_NAN, member=self._name)
        ends = np.cumsum(lengths)[:-1]
        attention = [
            [array.cpu().numpy().astype(np.float64) for array in all_] for all_ in (watch.highest, watch.means, watch.last)
        ]
        found = [Signs(*arrays, *attended) for arrays, *attended in zip(np.split(told, ends, axis=1), *attention, strict=True)]
        return [replace(one, state=state) for one, state in zip(found, middle, strict=True)] if states else found

    def write(
        self, heads: Sequence[TokenIds], max_tokens: int, *, answers: int = 1, temperature: float = 0.0
    ) -> list[list[TokenIds]]:
        """What the model itself says behind prompts.

        Args:
            heads: Token ids of each prompt.
            max_tokens: Tokens of an answer at most.
            answers: How many to each prompt.
            temperature: 0 takes the likeliest token each time; above, answers are drawn.

        Returns:
            The answers to each prompt, without the token that ends one; perhaps no token at all.
        """
        import torch

        config = self._model.generation_config
        drawn = {"temperature": temperature, "top_p": 0.99, "top_k": 0} if temperature else dict.fromkeys(_DRAWING)
        ends = config.eos_token_id if isinstance(config.eos_token_id, list) else [config.eos_token_id]
        pad = ends[0] or 0
        written: dict[int, list[TokenIds]] = {}
        self._model.set_attn_implementation("sdpa")
        try:
            for batch in group_by_length([answers * (len(head) + max_tokens) for head in heads], TOKENS_A_PASS):
                width = max(len(heads[i]) for i in batch)
                ids = torch.tensor([[pad] * (width - len(heads[i])) + heads[i] for i in batch], device=self._model.device)
                mask = torch.tensor([[0] * (width - len(heads[i])) + [1] * len(heads[i]) for i in batch], device=ids.device)
                with torch.inference_mode():
                    out = self._model.generate(
                        ids, attention_mask=mask, max_new_tokens=max_tokens, do_sample=bool(temperature),
                        num_return_sequences=answers, pad_token_id=pad, repetition_penalty=1.0, **drawn,
                    )  # fmt: skip
                texts = [self._without_end(row, {*ends}) for row in out[:, width:].tolist()]
                written |= {i: texts[k * answers : (k + 1) * answers] for k, i in enumerate(batch)}
        finally:
            self._model.set_attn_implementation(NAME)
        return [written[i] for i in range(len(heads))]

    def _without_end(self, ids: TokenIds, ends: set[int | None]) -> TokenIds:
        control = ends.union(self.tokenizer.all_special_ids)
        return ids[: next((i for i, token in enumerate(ids) if token in control), len(ids))]


def packs(prompts: Sequence[Prompt]) -> Iterator[list[int]]:
    """Prompts that are read together: those with like beginnings, within the limits of a pass."""
    pack: list[int] = []
    tokens = texts = 0
    last: TokenIds = []
    for i in sorted(range(len(prompts)), key=lambda i: prompts[i][0]):
        head, text = prompts[i]
        new = len(text) + (0 if head == last else len(head))
        if pack and (tokens + new > TOKENS_A_PASS or texts + len(text) > TEXT_TOKENS_A_PASS):
            yield pack
            pack, tokens, texts, new = [], 0, 0, len(head) + len(text)
        pack.append(i)
        tokens, texts, last = tokens + new, texts + len(text), head
    if pack:
        yield pack


def _own_tokens(paths: Sequence[Ints], size: int) -> list[int]:
    """Tokens of a tree of some size that each of its prompts brought, the first that has one counted."""
    known = np.zeros(size, dtype=bool)
    counts = []
    for path in paths:
        counts.append(int((~known[path]).sum()))
        known[path] = True
    return counts


def _told(logits: Any, tokens: Any) -> Iterator[Floats]:
    """(5, n) arrays in stretches of n tokens: logprob, top_logprob, spread, entropy, energy."""
    import torch

    for start in range(0, len(tokens), LOGITS_AT_ONCE):
        some = logits[start : start + LOGITS_AT_ONCE].float()
        energy = -some.logsumexp(-1)
        logprobs = some + energy[:, None]
        chances = logprobs.exp()
        own = logprobs.gather(1, tokens[start : start + LOGITS_AT_ONCE, None])[:, 0]
        # What has no chance at all adds nothing to the entropy.
        entropy = -(chances * logprobs.clamp(min=torch.finfo(torch.float32).min)).sum(-1)
        told = torch.stack([own, logprobs.amax(-1), chances.amax(-1) - chances.amin(-1), entropy, energy])
        yield told.double().cpu().numpy()


@contextmanager
def _middle_states(model: Any, places: Ints | None) -> Iterator[list[Floats]]:
    """While a model runs inside, the middle layer's states of some places are put into the list: float64 (size) each."""
    found: list[Floats] = []

    def keep(_: Any, __: Any, output: Any) -> None:
        hidden = output[0] if isinstance(output, tuple) else output  # (1, tokens, size)
        found.extend(hidden[0, places].double().cpu().numpy())

    if places is None:
        yield found
        return
    layers = getattr(model.get_decoder(), "layers", None)
    if layers is None:
        raise ModelError(errors.NO_LAYERS, model=type(model).__name__)
    hook = layers[len(layers) // 2 - 1].register_forward_hook(keep)
    try:
        yield found
    finally:
        hook.remove()
