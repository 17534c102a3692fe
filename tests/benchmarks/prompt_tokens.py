"""Tokens that an engine has to compute a prompt: `python -m tests.benchmarks.prompt_tokens LOGS [LOGS …]`.

For each file, prompt and block size of the prefix cache (0: nothing is shared; 1: the least that can be computed).
"""

import sys
from pathlib import Path

import polars as pl

from pipeline.engines.merge import load_tokenizer
from pipeline.prefix_tree import PrefixTree
from pipeline.prompt import PromptBuilder
from pipeline.slm import VERIFIER_PROMPT, Slm
from pipeline.split import load_splitter, split

BLOCKS = (0, 1, 16, 32)
BEFORE = (
    "Context:\n{% for passage in context %}{{ passage }}\n{% endfor %}\nQuestion: {{ question }}\n"
    "Statement: {{ sentence }}\nDoes the context support the statement, Yes or No?"
)
PROMPTS = {
    "before": BEFORE,
    "padded": BEFORE.replace("Statement:", "{{ padding }}Statement:"),
    "short tail": VERIFIER_PROMPT.replace("{{ padding }}", ""),
    "both: what verifiers have": VERIFIER_PROMPT,
}


def main() -> None:
    """Print a table a file."""
    nlp = load_splitter("sentencizer", "en")
    for path in sys.argv[1:]:
        rows = pl.read_parquet(path).select("question", "context", "response").to_dicts()
        texts = [row["response"] for row in rows]
        sentences = [[text[a:b] for a, b in spans] for text, spans in zip(texts, split(nlp, texts), strict=True)]
        asked = [(r["question"] or "", r["context"], said) for r, said in zip(rows, sentences, strict=True)]
        print(f"\n{Path(path).stem}: {len(rows):,} responses, {sum(map(len, sentences)):,} sentences\n")
        print(f"| prompt | {' | '.join(f'block {block}' for block in BLOCKS)} |\n| --- |{' --- |' * len(BLOCKS)}")
        for name, prompt in PROMPTS.items():
            slm = Slm(name="a", prompt=prompt, chat=False)
            builder = PromptBuilder(slm, load_tokenizer(slm))
            prompts = sorted({prompt for encoded in builder.encode(asked) for prompt in encoded.prompts()})
            cells = []
            for block in BLOCKS:
                tree = PrefixTree(block)
                cells.append(f"{sum(map(tree.add, prompts)) / len(prompts):.1f}")
            print(f"| {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
