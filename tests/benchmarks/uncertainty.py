"""Evaluate uncertainty scores on labeled data:
`python -m tests.benchmarks.uncertainty OUT.md --data DATA [--model embedded] [--parts logged own cost]
[--ragtruth 279] [--squad 600] [--own 60] [--answers 5] [--threads 2]`.

Part `logged`: RAGTruth's answers of six large models, and SQuAD v2's gold and plausible wrong answers, scored by the model
after question and context. Part `own`: the model answers SQuAD's answerable questions; an answer is right if its Rouge-L with
a gold answer is at least 0.5 (as in the paper) or if it contains one; several sampled answers are compared too. Prints AUROC
of right answers with 95 % intervals by resampling contexts, and AUROC of pairs of similar length; a missing value counts as
the lowest. Length and overlap are the baselines. Part `cost`: seconds for 1,000 responses next to those of the default
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
from ragassay.pipeline.calibration.metrics import compute_auroc, draw_resampling_weights, number_groups
from ragassay.pipeline.cascade.dynamic import select_escalated
from ragassay.pipeline.slm.prompt import PromptEncoder
from ragassay.pipeline.stages.slm import SlmStage
from ragassay.pipeline.stages.split import SplitStage
from ragassay.pipeline.text.words import collect_words, compute_context_share, extract_words
from ragassay.pipeline.uncertainty.config import Uncertainty
from ragassay.pipeline.uncertainty.model import PromptAndText, TextMeasurement, UncertaintyModel
from ragassay.pipeline.uncertainty.prompt import make_answer_encoder
from ragassay.pipeline.uncertainty.samples import eigenscore, lexical_similarity, rouge_l
from ragassay.pipeline.uncertainty.scores import AttentionWeighting, UncertaintyScore, compute_score
from ragassay.schemas.columns import LOGS
from tests.benchmarks.verifiers import compute_binned_auroc

WINDOWS = (5, 10, 16, 20, 40, 10_000)
SINGLE = [score for score in UncertaintyScore if not score.compares_samples]
RESAMPLES = 300
PARTS = ("logged", "own", "cost")
RIGHT_ROUGE_L = 0.5
ORDERS = 20
SAMPLE_TEMPERATURE = 0.5
"""Temperature of sampled answers, as in the paper."""

Row = Mapping[str, Any]


@dataclass
class MeasuredSet:
    """Measured set: rows, measurement and correctness of each row, and seconds."""

    name: str
    rows: Sequence[Row]
    measurements: Sequence[TextMeasurement]
    is_right: Bools
    seconds: float

    @property
    def groups(self) -> Any:
        """Number of each row's context."""
        return number_groups([str(row["context"]) for row in self.rows])


def render_interval(values: Floats, is_right: Bools, groups: Any) -> str:
    """Render an AUROC with its interval."""
    spread = []
    for weights in draw_resampling_weights(groups, RESAMPLES, 0):
        places = np.repeat(np.arange(len(values)), weights.astype(int))
        if 0 < is_right[places].sum() < len(places):
            spread.append(compute_auroc(values[places], is_right[places]))
    low, high = np.quantile(spread, [0.025, 0.975])
    return f"{compute_auroc(values, is_right):.3f} ({low:.3f} to {high:.3f})"


def compute_values(
    measured: MeasuredSet, score: UncertaintyScore, window: int = 16, attention: AttentionWeighting = AttentionWeighting.MAX
) -> Floats:
    """Compute a score of every response."""
    return np.array([compute_score(score, measurement.tokens, window, attention) for measurement in measured.measurements])


def compute_baselines(measured: MeasuredSet) -> dict[str, Floats]:
    """Compute the baselines: shortness, and the share of words that occur in the context."""
    return {
        "shortness": np.array([-float(len(row["response"])) for row in measured.rows]),
        "overlap": np.array([compute_context_share(row["response"], collect_words(row["context"])) for row in measured.rows]),
    }


def render_tables(measured: MeasuredSet, more: Mapping[str, Floats]) -> Iterator[str]:
    """Render the tables of a set."""
    is_right, groups = measured.is_right, measured.groups
    summary = f"{len(is_right)} responses over {groups.max() + 1} contexts, {is_right.mean():.0%} right"
    tokens = np.array([len(measurement.tokens) for measurement in measured.measurements])
    yield f"\n### {measured.name}\n\n{summary}, {np.median(tokens):.0f} tokens in the middle; {measured.seconds:.0f} s\n"
    yield "| score | AUROC | at like length |\n| --- | --- | --- |"
    values_by_score = (
        {score.value: compute_values(measured, score) for score in SINGLE} | dict(more) | compute_baselines(measured)
    )
    for name, values in values_by_score.items():
        filled = np.where(np.isnan(values), np.nanmin(values), values)
        alike = compute_binned_auroc(filled, is_right, values_by_score["shortness"])
        yield f"| {name} | {render_interval(filled, is_right, groups)} | {alike:.3f} |"
    for score in (UncertaintyScore.ATTENHSCORE, UncertaintyScore.SURPRISAL):
        yield f"\n{score.value} by window K and attention:\n\n| attention | " + " | ".join(map(_render_window, WINDOWS)) + " |"
        yield "| --- " * (len(WINDOWS) + 1) + "|"
        for attention in AttentionWeighting:
            cells = [f"{compute_auroc(compute_values(measured, score, window, attention), is_right):.3f}" for window in WINDOWS]
            yield f"| {attention.value} | " + " | ".join(cells) + " |"
    yield from render_thresholds(measured)


def render_thresholds(measured: MeasuredSet) -> Iterator[str]:
    """Compare the dynamic threshold with fixed ones: share past it, and its balanced accuracy as a sign of wrong responses."""
    wrong = ~measured.is_right
    yield "\nAttenHScore past a threshold, for wrong responses:\n"
    yield "| threshold | share past it | wrong ones caught | balanced accuracy |\n| --- | --- | --- | --- |"
    doubt = -compute_values(measured, UncertaintyScore.ATTENHSCORE).astype(np.float32)
    doubt = np.where(np.isnan(doubt), np.nanmax(doubt), doubt)
    rates_by_order = []
    for seed in range(ORDERS):
        order = np.random.default_rng(seed).permutation(len(doubt))
        past = np.zeros(len(doubt), dtype=bool)
        past[order] = select_escalated(doubt[order])
        rates_by_order.append(_compute_rates(past, wrong))
    spread = np.std([rates[2] for rates in rates_by_order])
    yield _render_line(f"dynamic, {ORDERS} random orders", np.mean(rates_by_order, axis=0), f" (sd {spread:.3f})")
    fixed = [_compute_rates(doubt >= cut, wrong) for cut in np.unique(doubt)]
    yield _render_line("fixed, the mean of all", _compute_rates(doubt >= doubt.mean(), wrong))
    yield _render_line("fixed, the median of all", _compute_rates(doubt >= np.median(doubt), wrong))
    yield _render_line("fixed, the best there is, by the labels", max(fixed, key=lambda rates: rates[2]))


def _compute_rates(past: Bools, wrong: Bools) -> tuple[float, float, float]:
    caught, alarms = past[wrong].mean(), past[~wrong].mean()
    return float(past.mean()), float(caught), float((caught + 1 - alarms) / 2)


def _render_line(name: str, rates: Sequence[float] | Floats, suffix: str = "") -> str:
    return f"| {name} | {rates[0]:.2f} | {rates[1]:.2f} | {rates[2]:.3f}{suffix} |"


def _render_window(window: int) -> str:
    return "all" if window > 1000 else f"K = {window}"


def measure_logged(name: str, rows: Sequence[Row], encoder: PromptEncoder, reader: UncertaintyModel) -> MeasuredSet:
    """Measure the logged responses of a set."""
    started = time.perf_counter()
    encoded = encoder.encode([(row["question"], row["context"], [row["response"]]) for row in rows])
    measurements = reader.measure([(prompt.head, prompt.tails[0]) for prompt in encoded])
    is_right = np.array([not row["hallucinated"] for row in rows])
    return MeasuredSet(name, rows, measurements, is_right, time.perf_counter() - started)


def measure_own(
    rows: Sequence[Row], encoder: PromptEncoder, reader: UncertaintyModel, answers: int
) -> tuple[MeasuredSet, dict[str, Floats]]:
    """Let the model answer, and measure its answers and the similarity of its sampled answers."""
    started = time.perf_counter()
    heads = [prompt.head for prompt in encoder.encode([(row["question"], row["context"], [""]) for row in rows])]
    likeliest = [answer for (answer,) in reader.generate(heads, 32)]
    decode = reader.tokenizer.decode
    answered = [{**row, "response": decode(ids).strip()} for row, ids in zip(rows, likeliest, strict=True)]
    is_right = np.array([_is_right_answer(row["response"], row["gold"]) for row in answered])
    measured = MeasuredSet(
        "Own answers to SQuAD v2's questions", answered, reader.measure(list(zip(heads, likeliest, strict=True))), is_right, 0.0
    )
    drawn = reader.generate(heads, 32, answers=answers, temperature=SAMPLE_TEMPERATURE)
    prompts: list[PromptAndText] = [(head, ids) for head, row_answers in zip(heads, drawn, strict=True) for ids in row_answers]
    states = np.array([measurement.tokens.state for measurement in reader.measure(prompts, with_states=True)]).reshape(
        len(rows), answers, -1
    )
    sample_scores = {
        UncertaintyScore.LEXICAL_SIMILARITY.value: np.array(
            [lexical_similarity([decode(ids) for ids in row_answers]) for row_answers in drawn]
        ),
        UncertaintyScore.EIGENSCORE.value: np.array([eigenscore(row_answers) for row_answers in states]),
    }
    measured.seconds = time.perf_counter() - started
    return measured, sample_scores


def _is_right_answer(answer: str, gold: Sequence[str]) -> bool:
    return any(
        rouge_l(extract_words(answer), extract_words(gold_answer)) >= RIGHT_ROUGE_L or gold_answer.lower() in answer.lower()
        for gold_answer in gold
    )


def sample_contexts(rows: pl.DataFrame, count: int) -> Sequence[Row]:
    """Sample `count` rows by context, in a fixed random order of contexts."""
    contexts = rows["context"].unique(maintain_order=True).sample(fraction=1, shuffle=True, seed=0).to_frame()
    return contexts.join(rows, on="context", maintain_order="left").head(count).to_dicts()


def sample_questions(rows: pl.DataFrame, count: int) -> Sequence[Row]:
    """Sample answerable questions with all of their gold answers."""
    gold = rows.filter(pl.col("label") == "correct").group_by("context", "question", maintain_order=True)
    return sample_contexts(gold.agg(gold=pl.col("response")).with_columns(response=pl.lit("")), count)


def time_verifier(sets: Sequence[MeasuredSet], threads: int) -> Iterator[str]:
    """Compare the default verifier's seconds for 1,000 responses with those of the uncertainty scores."""
    scorer = SlmStage(Job().members.slms[0], ("sentencizer", "en"), threads)
    scorer.setup()
    yield "\n### Seconds for 1,000 responses, on the same rows\n"
    yield "| set | uncertainty | default verifier | ratio |\n| --- | --- | --- | --- |"
    for measured in sets:
        table = _make_table(measured.rows)
        started = time.perf_counter()
        scorer(table)
        verifier_seconds, factor = time.perf_counter() - started, 1000 / len(measured.rows)
        ratio = measured.seconds / verifier_seconds
        seconds = f"{measured.seconds * factor:.0f} | {verifier_seconds * factor:.0f}"
        yield f"| {measured.name} | {seconds} | {ratio:.2f} |"


def _make_table(rows: Sequence[Row]) -> pa.Table:
    """Make a table of rows after the split stage."""
    keys = ("question", "context", "response")
    records = [
        {"row_key": i, "row_id": str(i), "status": "ok", **{key: row[key] for key in keys}} for i, row in enumerate(rows)
    ]
    return SplitStage(("sentencizer", "en"), False)(pa.Table.from_pylist(records, schema=LOGS))


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
    ragtruth = sample_contexts(pl.read_parquet(args.data / "ragtruth_qa_dev.parquet"), args.ragtruth)
    with args.out.open("w") as out:

        def print_and_write(lines: Iterator[str]) -> None:
            for line in lines:
                print(line, flush=True)
                out.write(line + "\n")
            out.flush()

        sets = []
        if {"logged", "cost"} & set(args.parts):
            logged = {"RAGTruth QA, logged answers": ragtruth, "SQuAD v2, logged answers": sample_contexts(squad, args.squad)}
            sets = [measure_logged(name, rows, encoder, reader) for name, rows in logged.items()]
        if "logged" in args.parts:
            print_and_write(line for measured in sets for line in render_tables(measured, {}))
        if "own" in args.parts:
            print_and_write(render_tables(*measure_own(sample_questions(squad, args.own), encoder, reader, args.answers)))
        if "cost" in args.parts:
            print_and_write(time_verifier(sets, args.threads))


if __name__ == "__main__":
    main()
