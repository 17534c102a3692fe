"""Count the tokens that an engine must compute per prompt: `python -m tests.benchmarks.prompt_tokens LOGS [LOGS …] [--rounds
3]`.

Prints a count for each file, prompt and block size of the prefix cache (0: no sharing; 1: the least possible). With --rounds,
the first and the last prompt are also sent to vLLM, in turns, with an empty cache, to measure prompts per second.
"""

import argparse
import statistics
import time
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from ragassay.pipeline.engines.prepare import load_tokenizer
from ragassay.pipeline.slm.config import VERIFIER_PROMPT, Slm
from ragassay.pipeline.slm.prompt import PromptBuilder
from ragassay.pipeline.slm.token_reuse import PrefixTree
from ragassay.pipeline.text.split import load_splitter, split_sentences

BLOCKS = (0, 1, 16, 32)
BEFORE = (
    "Context:\n{% for passage in context %}{{ passage }}\n{% endfor %}\nQuestion: {{ question }}\n"
    "Statement: {{ sentence }}\nDoes the context support the statement, Yes or No?"
)
PROMPTS = {
    "before": BEFORE,
    "padded": BEFORE.replace("Statement:", "{{ padding }}Statement:"),
    "short tail": VERIFIER_PROMPT.replace("{{ padding }}", ""),
    "both: what the verifier has": VERIFIER_PROMPT,
}
Prompt = tuple[int, ...]


def build_prompts(path: str) -> tuple[str, dict[str, list[Prompt]]]:
    """Describe a log, and build the sorted distinct token sequences of each prompt."""
    nlp = load_splitter("sentencizer", "en")
    rows = pl.read_parquet(path, hive_partitioning=False).select("question", "context", "response").to_dicts()
    texts = [row["response"] for row in rows]
    sentences = [[text[a:b] for a, b in spans] for text, spans in zip(texts, split_sentences(nlp, texts), strict=True)]
    requests = [(r["question"] or "", r["context"], row_sentences) for r, row_sentences in zip(rows, sentences, strict=True)]
    prompts_by_kind = {}
    for name, prompt in PROMPTS.items():
        slm = Slm(name="a", prompt=prompt, chat=False)
        builder = PromptBuilder(slm, load_tokenizer(slm))
        prompts_by_kind[name] = sorted({prompt for encoded in builder.encode(requests) for prompt in encoded.prompts()})
    return f"{Path(path).stem}: {len(rows):,} responses, {sum(map(len, sentences)):,} sentences", prompts_by_kind


def time_prompts(prompts_by_kind: dict[str, list[Prompt]], rounds: int) -> None:
    """Print prompts per second of the first and the last kind, measured in turns."""
    from ragassay.pipeline.engines.vllm_engine import VllmEngine

    engine = Slm.model_validate({"name": "a", "chat": False, "engine": "vllm"}).load_engine(threads=2)
    assert isinstance(engine, VllmEngine)
    kinds = [next(iter(prompts_by_kind)), list(prompts_by_kind)[-1]]
    engine.label_logprobs(prompts_by_kind[kinds[0]][:50], [1, 2])
    seconds: dict[str, list[float]] = {name: [] for name in kinds}
    for _ in range(rounds):
        for name in kinds:
            engine._llm.reset_prefix_cache()
            started = time.perf_counter()
            engine.label_logprobs(prompts_by_kind[name], [1, 2])
            seconds[name].append(time.perf_counter() - started)
    for name, times in seconds.items():
        print(f"{name}: {', '.join(f'{len(prompts_by_kind[name]) / elapsed:.1f}' for elapsed in times)} prompts/s")
    first, last = (statistics.median(len(prompts_by_kind[name]) / elapsed for elapsed in seconds[name]) for name in kinds)
    print(f"{last / first:.2f} times as many prompts per second")


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table per file."""
    parser = argparse.ArgumentParser()
    parser.add_argument("logs", nargs="+")
    parser.add_argument("--rounds", type=int, default=0)
    options = parser.parse_args(arguments)
    for path in options.logs:
        description, prompts_by_kind = build_prompts(path)
        columns = " | ".join(f"block {block}" for block in BLOCKS)
        print(f"\n{description}\n\n| prompt | {columns} |\n| --- |{' --- |' * len(BLOCKS)}")
        for name, prompts in prompts_by_kind.items():
            cells = [f"{sum(map(PrefixTree(block).add, prompts)) / len(prompts):.1f}" for block in BLOCKS]
            print(f"| {name} | {' | '.join(cells)} |")
        if options.rounds:
            time_prompts(prompts_by_kind, options.rounds)


if __name__ == "__main__":
    main()
