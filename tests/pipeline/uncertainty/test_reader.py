"""What is read through token trees is what a naive pass over each prompt alone gives, in float64."""

from typing import Any

import numpy as np
import pytest

from ragassay.pipeline.engines.transformers_engine import TransformersSettings
from ragassay.pipeline.uncertainty.config import Uncertainty
from ragassay.pipeline.uncertainty.reader import TEXT_TOKENS_A_PASS, Prompt, Reader, packs
from ragassay.pipeline.uncertainty.signs import ARRAYS, Signs
from tests.raises import raises

RNG = np.random.default_rng(3)
HEAD, OTHER = (RNG.integers(20, 5000, size=n).tolist() for n in (30, 150))
TEXTS = [RNG.integers(20, 5000, size=n).tolist() for n in (1, 2, 17, 140, 9)]
PROMPTS: list[Prompt] = [
    (HEAD, TEXTS[0]), (OTHER, TEXTS[1]), (HEAD, TEXTS[2]), (OTHER, TEXTS[3]), (HEAD[:20], TEXTS[4]), (HEAD, TEXTS[2]),
    (HEAD, TEXTS[2][:5]), (HEAD, []),
]  # fmt: skip


@pytest.fixture(scope="module")
def reader(tiny_model: str) -> Reader:
    member = Uncertainty(name="a", model=tiny_model)
    return Reader(member, TransformersSettings(dtype="float32"), gpus=0, threads=2)


def naive(model: Any, head: list[int], text: list[int]) -> Signs:
    """Signs of one text, from the whole attention and all logits of its prompt alone, token by token."""
    import torch

    with torch.inference_mode():
        out = model(torch.tensor([head + text]), output_attentions=True, output_hidden_states=True)
    logits = out.logits[0].numpy()
    weights = np.stack([layer[0].numpy() for layer in out.attentions])  # layers, heads, j, i
    found: dict[str, list[float]] = {name: [] for name in ARRAYS}
    size = len(head) + len(text)
    for i in range(len(head), size):
        row = logits[i - 1]
        total = np.log(np.sum(np.exp(row - row.max()))) + row.max()
        logp = row - total
        p = np.exp(logp)
        found["logprob"].append(logp[(head + text)[i]])
        found["top_logprob"].append(logp.max())
        found["spread"].append(p.max() - p.min())
        found["entropy"].append(-float(np.sum(p * logp)))
        found["energy"].append(-total)
        later = weights[:, :, i + 1 :, i]
        found["attention_max"].append(later.max() if later.size else 0.0)
        found["attention_mean"].append(later.mean() if later.size else 0.0)
        found["attention_last"].append(weights[:, :, -1, i].max() if i < size - 1 else 0.0)
    middle = out.hidden_states[len(out.attentions) // 2][0, -1].numpy()
    return Signs(**{name: np.array(values) for name, values in found.items()}, state=middle)


def test_equal_to_a_naive_pass_in_float64(reader: Reader, tiny_model: str) -> None:
    import torch
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(tiny_model, dtype=torch.float64, attn_implementation="eager").eval()
    reads = reader.read(PROMPTS, states=True)
    assert len(reads) == len(PROMPTS)
    for (head, text), read in zip(PROMPTS, reads, strict=True):
        expected = naive(model, head, text)
        assert len(read.signs) == len(text)
        for name in ARRAYS:
            found = getattr(read.signs, name)
            np.testing.assert_allclose(found, getattr(expected, name), rtol=2e-4, atol=2e-5, err_msg=name)
        assert read.signs.state is not None and expected.state is not None
        np.testing.assert_allclose(read.signs.state, expected.state, rtol=1e-3, atol=1e-4)


def test_shared_beginnings_are_read_once(reader: Reader) -> None:
    reads = reader.read(PROMPTS)
    together = {tuple(prompt[: n + 1]) for prompt in (head + text for head, text in PROMPTS) for n in range(len(prompt))}
    assert sum(read.computed for read in reads) == len(together)
    for (head, text), read in zip(PROMPTS, reads, strict=True):
        assert read.computed + read.reused == len(head) + len(text) and read.signs.state is None


def test_neighbours_change_nothing(reader: Reader) -> None:
    together = reader.read(PROMPTS)
    for prompt, read in zip(PROMPTS, together, strict=True):
        (alone,) = reader.read([prompt])
        for name in ARRAYS:
            np.testing.assert_allclose(getattr(alone.signs, name), getattr(read.signs, name), rtol=1e-4, atol=1e-5)


def test_packs_hold_all_prompts_once_within_limits() -> None:
    prompts: list[Prompt] = [([1] * (40 + i % 3), [2] * 300) for i in range(20)] + [([1] * 5000, [3])]
    found = list(packs(prompts))
    assert sorted(i for pack in found for i in pack) == list(range(21))
    assert all(len(pack) == 1 or sum(len(prompts[i][1]) for i in pack) <= TEXT_TOKENS_A_PASS for pack in found)


def test_own_answers_are_the_models_likeliest(reader: Reader) -> None:
    (one,), (other,) = reader.write([HEAD, OTHER], 5)
    for head, answer in ((HEAD, one), (OTHER, other)):
        assert 0 < len(answer) <= 5
        (read,) = reader.read([(head, answer)])
        np.testing.assert_allclose(read.signs.logprob, read.signs.top_logprob, atol=1e-5)
    drawn = reader.write([HEAD], 5, answers=3, temperature=1.0)
    assert len(drawn[0]) == 3


def test_a_model_that_does_not_show_all_its_attention_is_refused(tmp_path: Any, embedded: str) -> None:
    """A window that slides is no full attention: the run ends, before any row."""
    from transformers import AutoTokenizer, MistralConfig, MistralForCausalLM

    config = MistralConfig(
        vocab_size=49152, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=1, sliding_window=8,
    )  # fmt: skip
    MistralForCausalLM(config).save_pretrained(tmp_path)
    AutoTokenizer.from_pretrained(embedded).save_pretrained(tmp_path)
    with raises("train.attention", parts="sliding_window"):
        Reader(Uncertainty(name="a", model=str(tmp_path)), TransformersSettings(dtype="float32"), gpus=0, threads=1)


def test_a_model_that_can_not_be_loaded_is_named(tmp_path: Any) -> None:
    with raises("model.unknown"):
        Reader(Uncertainty(name="a", model=str(tmp_path / "none")), TransformersSettings(), gpus=0, threads=1)
