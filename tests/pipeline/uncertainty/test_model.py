"""Measurements through token trees equal those of a plain float64 pass over each prompt."""

from typing import Any

import numpy as np
import pytest

from ragassay.pipeline.engines.transformers_engine import TransformersSettings
from ragassay.pipeline.uncertainty.config import Uncertainty
from ragassay.pipeline.uncertainty.model import MAX_PASS_TEXT_TOKENS, PromptAndText, UncertaintyModel, pack_prompts
from ragassay.pipeline.uncertainty.token_statistics import TOKEN_ARRAYS, TokenStatistics
from tests.raises import raises

RNG = np.random.default_rng(3)
HEAD, OTHER = (RNG.integers(20, 5000, size=n).tolist() for n in (30, 150))
TEXTS = [RNG.integers(20, 5000, size=n).tolist() for n in (1, 2, 17, 140, 9)]
PROMPTS: list[PromptAndText] = [
    (HEAD, TEXTS[0]), (OTHER, TEXTS[1]), (HEAD, TEXTS[2]), (OTHER, TEXTS[3]), (HEAD[:20], TEXTS[4]), (HEAD, TEXTS[2]),
    (HEAD, TEXTS[2][:5]), (HEAD, []),
]  # fmt: skip


@pytest.fixture(scope="module")
def reader(tiny_model: str) -> UncertaintyModel:
    member = Uncertainty(name="a", model=tiny_model)
    return UncertaintyModel(member, TransformersSettings(dtype="float32"), gpus=0, threads=2)


def measure_plainly(model: Any, head: list[int], text: list[int]) -> TokenStatistics:
    """Statistics of one text, token by token, from the full attention and logits of its prompt alone."""
    import torch

    with torch.inference_mode():
        out = model(torch.tensor([head + text]), output_attentions=True, output_hidden_states=True)
    logits = out.logits[0].numpy()
    weights = np.stack([layer[0].numpy() for layer in out.attentions])  # layers, heads, j, i
    columns: dict[str, list[float]] = {name: [] for name in TOKEN_ARRAYS}
    size = len(head) + len(text)
    for i in range(len(head), size):
        row = logits[i - 1]
        total = np.log(np.sum(np.exp(row - row.max()))) + row.max()
        logp = row - total
        p = np.exp(logp)
        columns["logprob"].append(logp[(head + text)[i]])
        columns["top_logprob"].append(logp.max())
        columns["spread"].append(p.max() - p.min())
        columns["entropy"].append(-float(np.sum(p * logp)))
        columns["energy"].append(-total)
        later = weights[:, :, i + 1 :, i]
        columns["attention_max"].append(later.max() if later.size else 0.0)
        columns["attention_mean"].append(later.mean() if later.size else 0.0)
        columns["attention_last"].append(weights[:, :, -1, i].max() if i < size - 1 else 0.0)
    middle = out.hidden_states[len(out.attentions) // 2][0, -1].numpy()
    return TokenStatistics(**{name: np.array(values) for name, values in columns.items()}, state=middle)


def test_measurements_equal_a_plain_pass_in_float64(reader: UncertaintyModel, tiny_model: str) -> None:
    import torch
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(tiny_model, dtype=torch.float64, attn_implementation="eager").eval()
    measurements = reader.measure(PROMPTS, with_states=True)
    assert len(measurements) == len(PROMPTS)
    for (head, text), measurement in zip(PROMPTS, measurements, strict=True):
        expected = measure_plainly(model, head, text)
        assert len(measurement.tokens) == len(text)
        for name in TOKEN_ARRAYS:
            actual = getattr(measurement.tokens, name)
            np.testing.assert_allclose(actual, getattr(expected, name), rtol=2e-4, atol=2e-5, err_msg=name)
        assert measurement.tokens.state is not None and expected.state is not None
        np.testing.assert_allclose(measurement.tokens.state, expected.state, rtol=1e-3, atol=1e-4)


def test_shared_prefixes_are_computed_once(reader: UncertaintyModel) -> None:
    measurements = reader.measure(PROMPTS)
    prefixes = {tuple(prompt[: n + 1]) for prompt in (head + text for head, text in PROMPTS) for n in range(len(prompt))}
    assert sum(measurement.computed_tokens for measurement in measurements) == len(prefixes)
    for (head, text), measurement in zip(PROMPTS, measurements, strict=True):
        assert (
            measurement.computed_tokens + measurement.reused_tokens == len(head) + len(text)
            and measurement.tokens.state is None
        )


def test_other_prompts_do_not_change_a_measurement(reader: UncertaintyModel) -> None:
    together = reader.measure(PROMPTS)
    for prompt, measurement in zip(PROMPTS, together, strict=True):
        (alone,) = reader.measure([prompt])
        for name in TOKEN_ARRAYS:
            np.testing.assert_allclose(getattr(alone.tokens, name), getattr(measurement.tokens, name), rtol=1e-4, atol=1e-5)


def test_packs_contain_every_prompt_once_within_limits() -> None:
    prompts: list[PromptAndText] = [([1] * (40 + i % 3), [2] * 300) for i in range(20)] + [([1] * 5000, [3])]
    packs = list(pack_prompts(prompts))
    assert sorted(i for pack in packs for i in pack) == list(range(21))
    assert all(len(pack) == 1 or sum(len(prompts[i][1]) for i in pack) <= MAX_PASS_TEXT_TOKENS for pack in packs)


def test_own_answers_consist_of_the_most_likely_tokens(reader: UncertaintyModel) -> None:
    (first,), (second,) = reader.generate([HEAD, OTHER], 5)
    for head, answer in ((HEAD, first), (OTHER, second)):
        assert 0 < len(answer) <= 5
        (measurement,) = reader.measure([(head, answer)])
        np.testing.assert_allclose(measurement.tokens.logprob, measurement.tokens.top_logprob, atol=1e-5)
    sampled = reader.generate([HEAD], 5, answers=3, temperature=1.0)
    assert len(sampled[0]) == 3


def test_a_model_without_full_attention_is_refused(tmp_path: Any, embedded: str) -> None:
    """A sliding window is not full attention: the run ends before any row."""
    from transformers import AutoTokenizer, MistralConfig, MistralForCausalLM

    config = MistralConfig(
        vocab_size=49152, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=1, sliding_window=8,
    )  # fmt: skip
    MistralForCausalLM(config).save_pretrained(tmp_path)
    AutoTokenizer.from_pretrained(embedded).save_pretrained(tmp_path)
    with raises("train.attention", parts="sliding_window"):
        UncertaintyModel(Uncertainty(name="a", model=str(tmp_path)), TransformersSettings(dtype="float32"), gpus=0, threads=1)


def test_a_model_that_cannot_be_loaded_is_refused(tmp_path: Any) -> None:
    with raises("model.unknown"):
        UncertaintyModel(Uncertainty(name="a", model=str(tmp_path / "none")), TransformersSettings(), gpus=0, threads=1)
