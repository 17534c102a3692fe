"""Compare methods of ranking passages by the rank of a question's own passage:
`python -m tests.benchmarks.rerank OUT.md --data DATA [--model embedded] [--questions 200]`.

The questions are answerable questions of SQuAD v2 about as many different contexts as possible. Each has its own passage and
the 14 others nearest to the question by TF-IDF, in a fixed random order. Methods: the uncertainty G with each attention, the
log-likelihood of the question, TF-IDF, BM25, and the detectors' sentence embeddings. 95 % intervals are by resampling
contexts.
"""

import argparse
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import polars as pl
from sklearn.feature_extraction.text import TfidfVectorizer

from ragassay.pipeline.arrays import Floats, Ints
from ragassay.pipeline.calibration.metrics import draw_resampling_weights, number_groups
from ragassay.pipeline.detectors.embedding import load_encoder
from ragassay.pipeline.errors import ModelError
from ragassay.pipeline.text.words import extract_words
from ragassay.pipeline.uncertainty.config import Rerank
from ragassay.pipeline.uncertainty.model import UncertaintyModel
from ragassay.pipeline.uncertainty.prompt import make_answer_encoder
from ragassay.pipeline.uncertainty.prompted_text import make_prompt
from ragassay.pipeline.uncertainty.rerank import compute_question_uncertainty
from ragassay.pipeline.uncertainty.scores import AttentionWeighting

PASSAGES = 15
"""Passages per question, as in the paper."""

RESAMPLES = 2000
TIMED = 5
"""Questions that are measured one at a time, as in a log without repeated contexts, to time one question."""

K1, B = 1.2, 0.75

METRICS: dict[str, Callable[[Floats], Floats]] = {
    "MRR@10": lambda ranks: np.where(ranks <= 10, 1 / ranks, 0.0),
    "Hits@1": lambda ranks: (ranks <= 1).astype(float),
    "Hits@2": lambda ranks: (ranks <= 2).astype(float),
    "Hits@4": lambda ranks: (ranks <= 4).astype(float),
}
"""Metrics of the rank (from 1) of each question's own passage."""


class QuestionSet:
    """Questions with their passages.

    Attributes:
        texts: All contexts.
        questions: Questions.
        passages: (questions, PASSAGES): indices of their passages in `texts`.
        own: Column of each question's own passage.
    """

    def __init__(self, squad: pl.DataFrame, count: int) -> None:
        """Choose questions from as many contexts as possible, and their passages."""
        rows = squad.filter(pl.col("label") == "correct").unique("question", maintain_order=True)
        rows = rows.with_columns(context=pl.col("context").list.join("\n"))
        self.texts = rows["context"].unique(maintain_order=True).to_list()
        shuffled = rows.sample(fraction=1, shuffle=True, seed=0)
        numbered = shuffled.with_columns(turn=pl.int_range(pl.len()).over("context"))
        chosen = numbered.sort("turn", maintain_order=True).head(count)
        self.questions: list[str] = chosen["question"].to_list()
        number = {text: i for i, text in enumerate(self.texts)}
        own_texts = np.array([number[text] for text in chosen["context"]])
        self.tfidf = compute_tfidf(self.questions, self.texts)
        rng = np.random.default_rng(0)
        self.passages = np.empty((len(own_texts), PASSAGES), dtype=np.int64)
        for i, own_text in enumerate(own_texts):
            nearest = [k for k in np.argsort(-self.tfidf[i], kind="stable") if k != own_text]
            self.passages[i] = rng.permutation([own_text, *nearest[: PASSAGES - 1]])
        self.own = np.argmax(self.passages == own_texts[:, None], axis=1)
        self.groups = number_groups([str(i) for i in own_texts])

    def select_passages(self, values: Floats) -> Floats:
        """Select the values of each question's passages from (questions, texts)."""
        return np.take_along_axis(values, self.passages, axis=1)

    def rank_own_passages(self, values: Floats) -> Floats:
        """Rank each question's own passage by its value, from 1 for the highest; ties have their mean rank."""
        own_values = np.take_along_axis(values, self.own[:, None], axis=1)
        return np.asarray((values > own_values).sum(1) + ((values == own_values).sum(1) + 1) / 2)


def compute_tfidf(questions: Sequence[str], texts: Sequence[str]) -> Floats:
    """Compute cosines of TF-IDF vectors, (questions, texts)."""
    vectorizer = TfidfVectorizer(sublinear_tf=True, stop_words="english").fit(texts)
    return np.asarray((vectorizer.transform(questions) @ vectorizer.transform(texts).T).toarray())


def compute_bm25(questions: Sequence[str], texts: Sequence[str]) -> Floats:
    """Compute BM25, (questions, texts): sum over words of idf f (k1 + 1) / (f + k1 (1 - b + b length / mean length))."""
    words_of_texts = [extract_words(text) for text in texts]
    lengths = np.array([len(text) for text in words_of_texts], dtype=float)
    norm = K1 * (1 - B + B * lengths / lengths.mean())
    counts = {
        word: np.array([text.count(word) for text in words_of_texts], dtype=float)
        for q in questions
        for word in extract_words(q)
    }

    def score_word(word: str) -> Floats:
        frequency = counts[word]
        texts_with_word = (frequency > 0).sum()
        idf = np.log(1 + (len(texts) - texts_with_word + 0.5) / (texts_with_word + 0.5))
        return np.asarray(idf * frequency * (K1 + 1) / (frequency + norm))

    return np.array(
        [sum((score_word(word) for word in extract_words(question)), np.zeros(len(texts))) for question in questions]
    )


def measure_passages(question_set: QuestionSet, rerank: Rerank) -> tuple[dict[str, Floats], str]:
    """Score every passage by the model's tokens of the question after it; also return the cost per question as text."""
    reader = UncertaintyModel(rerank, rerank.engine, gpus=0, threads=2)
    encoder = make_answer_encoder(rerank, reader.tokenizer)
    prompts = [
        [make_prompt("", [question_set.texts[k]], question, encoder).prompt for k in passages]
        for question, passages in zip(question_set.questions, question_set.passages, strict=True)
    ]
    reader.measure(prompts[0])  # the first call is slower
    started = time.perf_counter()
    measurements = [measurement for question_prompts in prompts[:TIMED] for measurement in reader.measure(question_prompts)]
    seconds = (time.perf_counter() - started) / len(prompts[:TIMED])
    tokens = sum(measurement.computed_tokens for measurement in measurements) / len(prompts[:TIMED])
    cost = f"{seconds:.1f} s and {tokens:,.0f} tokens for one of them alone"
    print(cost, flush=True)
    # In one call, so that a passage of several questions is computed once.
    tokens_of_passages = [
        measurement.tokens
        for measurement in reader.measure([prompt for question_prompts in prompts for prompt in question_prompts])
    ]
    scores = {"log-likelihood": [measurement.logprob.sum() for measurement in tokens_of_passages]}
    for attention in AttentionWeighting:
        scores[f"G ({attention.value})"] = [
            -compute_question_uncertainty(measurement, attention) for measurement in tokens_of_passages
        ]
    return {name: np.array(values).reshape(question_set.passages.shape) for name, values in scores.items()}, cost


def compute_embedding_similarity(question_set: QuestionSet) -> dict[str, Floats]:
    """Compute cosines of sentence embeddings; empty if the model is not installed."""
    try:
        encoder = load_encoder("embedded", 2)
    except ModelError as error:
        print(error)
        return {}
    similarity = encoder(question_set.questions) @ encoder(question_set.texts).T
    return {"embeddings (MiniLM-L6-v2)": question_set.select_passages(np.asarray(similarity, dtype=np.float64))}


def render_table(ranks: Mapping[str, Floats], groups: Ints) -> Iterator[str]:
    """Render the metrics of every method with their intervals, and those of a random order."""
    yield f"| order | {' | '.join(METRICS)} |"
    yield "| --- " * (len(METRICS) + 1) + "|"
    weights = list(draw_resampling_weights(groups, RESAMPLES, 0))
    for name, order_ranks in ranks.items():
        yield f"| {name} | {' | '.join(_render_interval(metric(order_ranks), weights) for metric in METRICS.values())} |"
    random_ranks = np.arange(1, PASSAGES + 1, dtype=float)
    yield f"| random | {' | '.join(f'{metric(random_ranks).mean():.3f}' for metric in METRICS.values())} |"


def _render_interval(values: Floats, weights: Sequence[Floats]) -> str:
    low, high = np.quantile([np.average(values, weights=group_weights) for group_weights in weights], [0.025, 0.975])
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
    question_set = QuestionSet(pl.read_parquet(args.data / "squad_v2.parquet"), args.questions)
    rerank = Rerank(model=args.model, engine={"dtype": args.dtype})
    values, cost = measure_passages(question_set, rerank)
    values |= {
        "TF-IDF": question_set.select_passages(question_set.tfidf),
        "BM25": question_set.select_passages(compute_bm25(question_set.questions, question_set.texts)),
    } | compute_embedding_similarity(question_set)
    ranks = {name: question_set.rank_own_passages(passage_values) for name, passage_values in values.items()}
    contexts = question_set.groups.max() + 1
    lines = [
        f"{len(question_set.questions)} questions over {contexts} contexts, {PASSAGES} passages each; {cost}\n",
        *render_table(ranks, question_set.groups),
    ]
    print("\n".join(lines))
    args.out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
