"""Scores of uncertainty on data with known labels:
`python -m tests.benchmarks.uncertainty OUT.md --data DATA [--model embedded] [--parts logged own cost]
[--ragtruth 279] [--squad 600] [--own 60] [--answers 5] [--threads 2]`.

First the logged texts: RAGTruth's answers of six large models, and SQuAD v2's gold and plausible wrong answers, each read by
the model behind question and context. Then the model's own: it answers SQuAD's answerable questions, an answer is right where
its Rouge-L with a gold answer is at least 0.5 (the paper's measure) or holds one, and several drawn answers are compared too.
AUROC of "right", higher = better, 95 % intervals by resampling contexts, and AUROC of pairs of like length, a value that is
not there counting as the lowest; length and overlap are the baselines. Last, seconds for 1,000 responses beside the default
verifier on vLLM, on the same rows in the same process.
"""

import argparse
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from ragassay.jobs.config.job import Job
from ragassay.pipeline.arrays import Bools, Floats
from ragassay.pipeline.calibration.baselines import collect_words, compute_context_share, extract_words
from ragassay.pipeline.calibration.metrics import compute_auroc, draw_resampling_weights, number_groups
from ragassay.pipeline.cascade.dynamic import select_escalated
from ragassay.pipeline.slm.prompt import PromptEncoder
from ragassay.pipeline.stages.slm import SlmStage
from ragassay.pipeline.stages.split import SplitStage
from ragassay.pipeline.uncertainty.config import Uncertainty
from ragassay.pipeline.uncertainty.model import PromptAndText, TextMeasurement, UncertaintyModel
from ragassay.pipeline.uncertainty.prompt import make_answer_encoder
from ragassay.pipeline.uncertainty.samples import eigenscore, lexical_similarity, rouge_l
from ragassay.pipeline.uncertainty.scores import AttentionWeighting, UncertaintyScore, compute_score
from ragassay.schemas.columns import LOGS
from tests.benchmarks.verifiers import like_auroc

WINDOWS = (5, 10, 16, 20, 40, 10_000)
SINGLE = [score for score in UncertaintyScore if not score.compares_samples]
RESAMPLES = 300
PARTS = ("logged", "own", "cost")
RIGHT = 0.5
ORDERS = 20
DRAWN = 0.5
"""Temperature of drawn answers, as the paper's."""

Row = Mapping[str, Any]


@dataclass
class Asked:
    """A set that was read: its rows, what was read of each, whether it is right, and seconds."""

    name: str
    rows: Sequence[Row]
    reads: Sequence[TextMeasurement]
    good: Bools
    seconds: float

    @property
    def groups(self) -> Any:
        """Number of each row's context."""
        return number_groups([str(row["context"]) for row in self.rows])


def interval(values: Floats, good: Bools, groups: Any) -> str:
    """AUROC with its interval, as text."""
    spread = []
    for weights in draw_resampling_weights(groups, RESAMPLES, 0):
        places = np.repeat(np.arange(len(values)), weights.astype(int))
        if 0 < good[places].sum() < len(places):
            spread.append(compute_auroc(values[places], good[places]))
    low, high = np.quantile(spread, [0.025, 0.975])
    return f"{compute_auroc(values, good):.3f} ({low:.3f} to {high:.3f})"


def values_of(
    asked: Asked, score: UncertaintyScore, window: int = 16, attention: AttentionWeighting = AttentionWeighting.MAX
) -> Floats:
    """A score of every response."""
    return np.array([compute_score(score, read.tokens, window, attention) for read in asked.reads])


def baselines(asked: Asked) -> dict[str, Floats]:
    """Shortness, and the share of words that the context has."""
    return {
        "shortness": np.array([-float(len(row["response"])) for row in asked.rows]),
        "overlap": np.array([compute_context_share(row["response"], collect_words(row["context"])) for row in asked.rows]),
    }


def tables(asked: Asked, more: Mapping[str, Floats]) -> Iterator[str]:
    """The set's tables."""
    good, groups = asked.good, asked.groups
    share = f"{len(good)} responses over {groups.max() + 1} contexts, {good.mean():.0%} right"
    tokens = np.array([len(read.tokens) for read in asked.reads])
    yield f"\n### {asked.name}\n\n{share}, {np.median(tokens):.0f} tokens in the middle; {asked.seconds:.0f} s\n"
    yield "| score | AUROC | at like length |\n| --- | --- | --- |"
    found = {score.value: values_of(asked, score) for score in SINGLE} | dict(more) | baselines(asked)
    for name, values in found.items():
        known = np.where(np.isnan(values), np.nanmin(values), values)
        alike = like_auroc(known, good, found["shortness"])
        yield f"| {name} | {interval(known, good, groups)} | {alike:.3f} |"
    for score in (UncertaintyScore.ATTENHSCORE, UncertaintyScore.SURPRISAL):
        yield f"\n{score.value} by window K and attention:\n\n| attention | " + " | ".join(map(_window, WINDOWS)) + " |"
        yield "| --- " * (len(WINDOWS) + 1) + "|"
        for attention in AttentionWeighting:
            cells = [f"{compute_auroc(values_of(asked, score, window, attention), good):.3f}" for window in WINDOWS]
            yield f"| {attention.value} | " + " | ".join(cells) + " |"
    yield from thresholds(asked)


def thresholds(asked: Asked) -> Iterator[str]:
    """The dynamic threshold beside fixed ones: share asked on, and balanced accuracy of "past it" for "wrong"."""
    wrong = ~asked.good
    yield "\nAttenHScore past a threshold, for wrong responses:\n"
    yield "| threshold | share past it | wrong ones caught | balanced accuracy |\n| --- | --- | --- | --- |"
    doubt = -values_of(asked, UncertaintyScore.ATTENHSCORE).astype(np.float32)
    doubt = np.where(np.isnan(doubt), np.nanmax(doubt), doubt)
    found = []
    for seed in range(ORDERS):
        order = np.random.default_rng(seed).permutation(len(doubt))
        past = np.zeros(len(doubt), dtype=bool)
        past[order] = select_escalated(doubt[order])
        found.append(_rates(past, wrong))
    spread = np.std([rates[2] for rates in found])
    yield _line(f"dynamic, {ORDERS} random orders", np.mean(found, axis=0), f" (sd {spread:.3f})")
    every = [_rates(doubt >= cut, wrong) for cut in np.unique(doubt)]
    yield _line("fixed, the mean of all", _rates(doubt >= doubt.mean(), wrong))
    yield _line("fixed, the median of all", _rates(doubt >= np.median(doubt), wrong))
    yield _line("fixed, the best there is, by the labels", max(every, key=lambda rates: rates[2]))


def _rates(past: Bools, wrong: Bools) -> tuple[float, float, float]:
    caught, alarms = past[wrong].mean(), past[~wrong].mean()
    return float(past.mean()), float(caught), float((caught + 1 - alarms) / 2)


def _line(name: str, rates: Sequence[float] | Floats, more: str = "") -> str:
    return f"| {name} | {rates[0]:.2f} | {rates[1]:.2f} | {rates[2]:.3f}{more} |"


def _window(window: int) -> str:
    return "all" if window > 1000 else f"K = {window}"


def read_logged(name: str, rows: Sequence[Row], encoder: PromptEncoder, reader: UncertaintyModel) -> Asked:
    """Read a set's responses."""
    started = time.perf_counter()
    encoded = encoder.encode([(row["question"], row["context"], [row["response"]]) for row in rows])
    reads = reader.measure([(one.head, one.tails[0]) for one in encoded])
    good = np.array([not row["hallucinated"] for row in rows])
    return Asked(name, rows, reads, good, time.perf_counter() - started)


def read_own(
    rows: Sequence[Row], encoder: PromptEncoder, reader: UncertaintyModel, answers: int
) -> tuple[Asked, dict[str, Floats]]:
    """Let the model answer, and read what it says; and how alike its drawn answers are."""
    started = time.perf_counter()
    heads = [one.head for one in encoder.encode([(row["question"], row["context"], [""]) for row in rows])]
    likeliest = [answer for (answer,) in reader.generate(heads, 32)]
    decode = reader.tokenizer.decode
    said = [{**row, "response": decode(ids).strip()} for row, ids in zip(rows, likeliest, strict=True)]
    good = np.array([_right(row["response"], row["gold"]) for row in said])
    asked = Asked(
        "Own answers to SQuAD v2's questions", said, reader.measure(list(zip(heads, likeliest, strict=True))), good, 0.0
    )
    drawn = reader.generate(heads, 32, answers=answers, temperature=DRAWN)
    prompts: list[PromptAndText] = [(head, ids) for head, mine in zip(heads, drawn, strict=True) for ids in mine]
    states = np.array([read.tokens.state for read in reader.measure(prompts, with_states=True)]).reshape(len(rows), answers, -1)
    more = {
        UncertaintyScore.LEXICAL_SIMILARITY.value: np.array(
            [lexical_similarity([decode(ids) for ids in mine]) for mine in drawn]
        ),
        UncertaintyScore.EIGENSCORE.value: np.array([eigenscore(mine) for mine in states]),
    }
    asked.seconds = time.perf_counter() - started
    return asked, more


def _right(answer: str, gold: Sequence[str]) -> bool:
    return any(rouge_l(extract_words(answer), extract_words(one)) >= RIGHT or one.lower() in answer.lower() for one in gold)


def contexts_of(rows: pl.DataFrame, count: int) -> Sequence[Row]:
    """Rows of whole contexts, in a random order of contexts that is always the same, until there are so many."""
    contexts = rows["context"].unique(maintain_order=True).sample(fraction=1, shuffle=True, seed=0).to_frame()
    return contexts.join(rows, on="context", maintain_order="left").head(count).to_dicts()


def questions_of(rows: pl.DataFrame, count: int) -> Sequence[Row]:
    """Answerable questions, each with all of its gold answers."""
    gold = rows.filter(pl.col("label") == "correct").group_by("context", "question", maintain_order=True)
    return contexts_of(gold.agg(gold=pl.col("response")).with_columns(response=pl.lit("")), count)


def judge_seconds(sets: Sequence[Asked], threads: int) -> Iterator[str]:
    """Seconds for 1,000 responses of the default verifier, beside those of the reading."""
    scorer = SlmStage(Job().members.slms[0], ("sentencizer", "en"), threads)
    scorer.setup()
    yield "\n### Seconds for 1,000 responses, on the same rows\n"
    yield "| set | uncertainty | default verifier | ratio |\n| --- | --- | --- | --- |"
    for asked in sets:
        table = _table(asked.rows)
        started = time.perf_counter()
        scorer(table)
        theirs, factor = time.perf_counter() - started, 1000 / len(asked.rows)
        yield f"| {asked.name} | {asked.seconds * factor:.0f} | {theirs * factor:.0f} | {asked.seconds / theirs:.2f} |"


def _table(rows: Sequence[Row]) -> pa.Table:
    """Rows as the split stage leaves them."""
    keys = ("question", "context", "response")
    known = [{"row_key": i, "row_id": str(i), "status": "ok", **{key: row[key] for key in keys}} for i, row in enumerate(rows)]
    return SplitStage(("sentencizer", "en"), False)(pa.Table.from_pylist(known, schema=LOGS))


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=Path)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--model", default="embedded")
    parser.add_argument("--dtype", default="auto")
    parser.add_argument("--ragtruth", type=int, default=279)
    parser.add_argument("--squad", type=int, default=600)
    parser.add_argument("--own", type=int, default=60)
    parser.add_argument("--answers", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    args = parser.parse_args()
    member = Uncertainty(name="read", model=args.model, engine={"dtype": args.dtype})
    reader = UncertaintyModel(member, member.engine, gpus=0, threads=args.threads)
    encoder = make_answer_encoder(member, reader.tokenizer)
    squad = pl.read_parquet(args.data / "squad_v2.parquet")
    ragtruth = contexts_of(pl.read_parquet(args.data / "ragtruth_qa_dev.parquet"), args.ragtruth)
    with args.out.open("w") as out:

        def say(lines: Iterator[str]) -> None:
            for line in lines:
                print(line, flush=True)
                out.write(line + "\n")
            out.flush()

        sets = []
        if {"logged", "cost"} & set(args.parts):
            logged = {"RAGTruth QA, logged answers": ragtruth, "SQuAD v2, logged answers": contexts_of(squad, args.squad)}
            sets = [read_logged(name, rows, encoder, reader) for name, rows in logged.items()]
        if "logged" in args.parts:
            say(line for asked in sets for line in tables(asked, {}))
        if "own" in args.parts:
            say(tables(*read_own(questions_of(squad, args.own), encoder, reader, args.answers)))
        if "cost" in args.parts:
            say(judge_seconds(sets, args.threads))


if __name__ == "__main__":
    main()
