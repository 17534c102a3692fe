"""Prompts of the bundled verifier for the sentences of a labeled set, as `tests.benchmarks.dev_sets` writes it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from sklearn.metrics import roc_auc_score

from ragassay.pipeline.arrays import Floats
from ragassay.pipeline.engines.protocol import Engine
from ragassay.pipeline.slm.prompt import EncodedPrompts, PromptBuilder

RESAMPLES = 300


@dataclass(frozen=True)
class LabeledPrompts:
    """Prompts of one response, and whether each of its sentences is supported."""

    prompts: EncodedPrompts
    supported: list[bool]


def read_set(folder: Path, name: str, rows: int, builder: PromptBuilder) -> list[LabeledPrompts]:
    """Read a random sample of a set's responses with labeled sentences; readers' labels come before a data set's own.

    Args:
        folder: Folder of the sets.
        name: Name of a set.
        rows: Maximum number of responses.
        builder: Prompt builder of the SLM.
    """
    frame = pl.read_parquet(folder / f"set={name}" / "*.parquet")
    if frame["reader_sentences"].null_count() < frame.height:
        frame = frame.filter(pl.col("reader_sentences").is_not_null()).with_columns(sentence_labels="reader_sentences")
    frame = frame.filter(pl.col("sentence_labels").list.len() > 0)
    labeled = []
    for row in frame.sample(min(rows, frame.height), seed=1).to_dicts():
        sentences: list[dict[str, Any]] = [part for part in row["sentence_labels"] if part["supported"] is not None]
        texts = [row["response"][part["start"] : part["end"]] for part in sentences]
        (encoded,) = builder.encode([(row["question"], row["context"], texts)])
        labeled.append(LabeledPrompts(encoded, [part["supported"] for part in sentences]))
    return labeled


def compute_log_odds(engine: Engine, builder: PromptBuilder, prompts: list[tuple[int, ...]]) -> tuple[Floats, int]:
    """Return log P(yes) - log P(no) of each prompt, and the tokens computed; identical prompts are computed once."""
    distinct = sorted(set(prompts))
    output = engine.label_logprobs(distinct, [*builder.yes_ids, *builder.no_ids])
    yes, no = (np.logaddexp.reduce(part, axis=1) for part in np.split(output.logprobs, [len(builder.yes_ids)], axis=1))
    odds = dict(zip(distinct, yes - no, strict=True))
    return np.array([odds[prompt] for prompt in prompts]), int(output.tokens_computed.sum())


def resample_difference(labels: list[list[bool]], first: list[Floats], second: list[Floats]) -> tuple[float, float]:
    """Return the 95 % interval of AUROC(second) - AUROC(first), resampled by response.

    Raises:
        ValueError: All labels are the same.
    """
    if len(set(np.concatenate(labels).tolist())) < 2:
        raise ValueError("AUROC needs supported and unsupported sentences")
    rng = np.random.default_rng(0)
    differences: list[float] = []
    while len(differences) < RESAMPLES:
        chosen = rng.integers(len(labels), size=len(labels))
        truth = np.concatenate([labels[i] for i in chosen])
        if truth.all() or not truth.any():
            continue
        before, after = (roc_auc_score(truth, np.concatenate([values[i] for i in chosen])) for values in (first, second))
        differences.append(after - before)
    low, high = np.quantile(differences, [0.025, 0.975])
    return float(low), float(high)
