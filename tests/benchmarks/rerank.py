"""Which order of passages puts the question's own first:
`python -m tests.benchmarks.rerank OUT.md --data DATA [--model embedded] [--questions 200]`.

Answerable questions of SQuAD v2 over as many different contexts as there are; each with its own passage among the 14 others
nearest to the question by TF-IDF, in a random order that is always the same. The uncertainty G with each attention, the plain
log-likelihood of the question, TF-IDF, BM25, and the detectors' sentence embeddings put them in order; 95 % intervals by
resampling contexts.
"""

import argparse
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import polars as pl
from sklearn.feature_extraction.text import TfidfVectorizer

from ragassay.pipeline.arrays import Floats, Ints
from ragassay.pipeline.calibration.baselines import extract_words
from ragassay.pipeline.calibration.metrics import draw_resampling_weights, number_groups
from ragassay.pipeline.detectors.embedding import load_encoder
from ragassay.pipeline.errors import ModelError
from ragassay.pipeline.uncertainty.config import Rerank
from ragassay.pipeline.uncertainty.model import UncertaintyModel
from ragassay.pipeline.uncertainty.prompt import make_answer_encoder
from ragassay.pipeline.uncertainty.prompted_text import make_prompt
from ragassay.pipeline.uncertainty.rerank import compute_question_uncertainty
from ragassay.pipeline.uncertainty.scores import AttentionWeighting

PASSAGES = 15
"""Passages of a question, as in the paper."""

RESAMPLES = 2000
TIMED = 5
"""Questions whose passages are read alone, as in a log without repeated contexts, to see how long one takes."""

K1, B = 1.2, 0.75

METRICS: dict[str, Callable[[Floats], Floats]] = {
    "MRR@10": lambda places: np.where(places <= 10, 1 / places, 0.0),
    "Hits@1": lambda places: (places <= 1).astype(float),
    "Hits@2": lambda places: (places <= 2).astype(float),
    "Hits@4": lambda places: (places <= 4).astype(float),
}
"""Of the place, from 1, of each question's own passage."""


class Asked:
    """Questions, each with its passages.

    Attributes:
        texts: All contexts there are.
        questions: The questions.
        passages: (questions, PASSAGES): places of their passages in `texts`.
        own: Column of each question's own passage.
    """

    def __init__(self, squad: pl.DataFrame, count: int) -> None:
        """Choose questions, from context after context, and their passages."""
        rows = squad.filter(pl.col("label") == "correct").unique("question", maintain_order=True)
        rows = rows.with_columns(context=pl.col("context").list.join("\n"))
        self.texts = rows["context"].unique(maintain_order=True).to_list()
        shuffled = rows.sample(fraction=1, shuffle=True, seed=0)
        turns = shuffled.with_columns(turn=pl.int_range(pl.len()).over("context"))
        chosen = turns.sort("turn", maintain_order=True).head(count)
        self.questions: list[str] = chosen["question"].to_list()
        number = {text: i for i, text in enumerate(self.texts)}
        own = np.array([number[text] for text in chosen["context"]])
        self.tfidf = _tfidf(self.questions, self.texts)
        rng = np.random.default_rng(0)
        self.passages = np.empty((len(own), PASSAGES), dtype=np.int64)
        for i, mine in enumerate(own):
            others = [k for k in np.argsort(-self.tfidf[i], kind="stable") if k != mine]
            self.passages[i] = rng.permutation([mine, *others[: PASSAGES - 1]])
        self.own = np.argmax(self.passages == own[:, None], axis=1)
        self.groups = number_groups([str(i) for i in own])

    def among(self, of_all: Floats) -> Floats:
        """Values of (questions, texts) of each question's passages."""
        return np.take_along_axis(of_all, self.passages, axis=1)

    def places(self, values: Floats) -> Floats:
        """Place, from 1, of each question's own passage, the highest value first; of equals, the mean of their places."""
        mine = np.take_along_axis(values, self.own[:, None], axis=1)
        return np.asarray((values > mine).sum(1) + ((values == mine).sum(1) + 1) / 2)


def _tfidf(questions: Sequence[str], texts: Sequence[str]) -> Floats:
    """Cosine of TF-IDF vectors, (questions, texts)."""
    vectorizer = TfidfVectorizer(sublinear_tf=True, stop_words="english").fit(texts)
    return np.asarray((vectorizer.transform(questions) @ vectorizer.transform(texts).T).toarray())


def bm25(questions: Sequence[str], texts: Sequence[str]) -> Floats:
    """BM25, (questions, texts): sum over words of idf f (k1 + 1) / (f + k1 (1 - b + b length / mean length))."""
    said = [extract_words(text) for text in texts]
    lengths = np.array([len(text) for text in said], dtype=float)
    norm = K1 * (1 - B + B * lengths / lengths.mean())
    counts = {word: np.array([text.count(word) for text in said], dtype=float) for q in questions for word in extract_words(q)}

    def term(word: str) -> Floats:
        frequency = counts[word]
        holding = (frequency > 0).sum()
        idf = np.log(1 + (len(texts) - holding + 0.5) / (holding + 0.5))
        return np.asarray(idf * frequency * (K1 + 1) / (frequency + norm))

    return np.array([sum((term(word) for word in extract_words(question)), np.zeros(len(texts))) for question in questions])


def read(asked: Asked, rerank: Rerank) -> tuple[dict[str, Floats], str]:
    """Values of every passage by what the model tells of the question behind it; and what a question takes, as text."""
    reader = UncertaintyModel(rerank, rerank.engine, gpus=0, threads=2)
    encoder = make_answer_encoder(rerank, reader.tokenizer)
    prompts = [
        [make_prompt("", [asked.texts[k]], question, encoder).prompt for k in passages]
        for question, passages in zip(asked.questions, asked.passages, strict=True)
    ]
    reader.measure(prompts[0])  # the first call is slower
    started = time.perf_counter()
    alone = [one for mine in prompts[:TIMED] for one in reader.measure(mine)]
    seconds = (time.perf_counter() - started) / len(prompts[:TIMED])
    tokens = sum(one.computed_tokens for one in alone) / len(prompts[:TIMED])
    took = f"{seconds:.1f} s and {tokens:,.0f} tokens for one of them alone"
    print(took, flush=True)
    # All at once: a passage of several questions is read once.
    signs = [one.tokens for one in reader.measure([prompt for mine in prompts for prompt in mine])]
    found = {"log-likelihood": [one.logprob.sum() for one in signs]}
    for attention in AttentionWeighting:
        found[f"G ({attention.value})"] = [-compute_question_uncertainty(one, attention) for one in signs]
    return {name: np.array(values).reshape(asked.passages.shape) for name, values in found.items()}, took


def embeddings(asked: Asked) -> dict[str, Floats]:
    """Cosine of sentence embeddings; nothing where the model is not installed."""
    try:
        encoder = load_encoder("embedded", 2)
    except ModelError as error:
        print(error)
        return {}
    found = encoder(asked.questions) @ encoder(asked.texts).T
    return {"embeddings (MiniLM-L6-v2)": asked.among(np.asarray(found, dtype=np.float64))}


def table(places: Mapping[str, Floats], groups: Ints) -> Iterator[str]:
    """The metrics of every order, with their intervals, and of a random one."""
    yield f"| order | {' | '.join(METRICS)} |"
    yield "| --- " * (len(METRICS) + 1) + "|"
    weights = list(draw_resampling_weights(groups, RESAMPLES, 0))
    for name, mine in places.items():
        yield f"| {name} | {' | '.join(_interval(metric(mine), weights) for metric in METRICS.values())} |"
    anywhere = np.arange(1, PASSAGES + 1, dtype=float)
    yield f"| random | {' | '.join(f'{metric(anywhere).mean():.3f}' for metric in METRICS.values())} |"


def _interval(values: Floats, weights: Sequence[Floats]) -> str:
    low, high = np.quantile([np.average(values, weights=each) for each in weights], [0.025, 0.975])
    return f"{values.mean():.3f} ({low:.3f} to {high:.3f})"


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--model", default="embedded")
    parser.add_argument("--dtype", default="auto")
    parser.add_argument("--questions", type=int, default=200)
    args = parser.parse_args()
    asked = Asked(pl.read_parquet(args.data / "squad_v2.parquet"), args.questions)
    rerank = Rerank(model=args.model, engine={"dtype": args.dtype})
    values, took = read(asked, rerank)
    values |= {"TF-IDF": asked.among(asked.tfidf), "BM25": asked.among(bm25(asked.questions, asked.texts))} | embeddings(asked)
    places = {name: asked.places(mine) for name, mine in values.items()}
    lines = [
        f"{len(asked.questions)} questions over {asked.groups.max() + 1} contexts, {PASSAGES} passages each; {took}\n",
        *table(places, asked.groups),
    ]
    print("\n".join(lines))
    args.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
